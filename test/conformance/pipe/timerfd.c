/* timerfd: one-shot, interval, absolute, cancel, non-blocking, poll. */
/* not: i386 */
#include "t.h"
#include <sys/timerfd.h>
static long get(int f)
{
	uint64_t v = 0;
	return read(f, &v, 8) == 8 ? (long)v : -1;
}
static struct itimerspec its(long ms, long every) { return (struct itimerspec){{every / 1000, every % 1000 * 1000000}, {ms / 1000, ms % 1000 * 1000000}}; }
int main(void)
{
	R(timerfd_create(99, 0));
	R(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
	R(timerfd_create(CLOCK_MONOTONIC, 0x7777));
	int f = must(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
	struct itimerspec v = its(300, 0), o;
	R(get(f));
	long t = t_now();
	R(timerfd_settime(f, 0, &v, &o));
	T(o.it_value.tv_sec == 0 && o.it_value.tv_nsec == 0);
	R(timerfd_gettime(f, &o));
	T(o.it_value.tv_nsec > 0 && o.it_value.tv_nsec <= 300000000);
	struct pollfd p = {f, POLLIN, 0};
	R(poll(&p, 1, 30000));
	T(t_now() - t >= 295);
	R(get(f));
	R(get(f));
	R(timerfd_gettime(f, &o));
	N(o.it_value.tv_nsec);
	v = its(10, 10);
	R(timerfd_settime(f, 0, &v, 0));
	t_ms(105);
	long n = get(f);
	T(n >= 9);
	T(timerfd_gettime(f, &o) == 0 && o.it_interval.tv_nsec == 10000000);
	v = its(0, 10);
	R(timerfd_settime(f, 0, &v, &o)); /* a zero value stops it */
	t_ms(30);
	R(get(f));
	fcntl(f, F_SETFL, 0);
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	v = its(0, 0);
	v.it_value = now;
	v.it_value.tv_nsec += 40000000;
	if (v.it_value.tv_nsec >= 1000000000)
		v.it_value.tv_sec++, v.it_value.tv_nsec -= 1000000000;
	R(timerfd_settime(f, TFD_TIMER_ABSTIME, &v, 0));
	t = now.tv_sec * 1000 + now.tv_nsec / 1000000;
	R(get(f));
	T(t_now() - t >= 35);
	v.it_value.tv_sec = 0; /* long ago; not zero, which disarms */
	v.it_value.tv_nsec = 1;
	R(timerfd_settime(f, TFD_TIMER_ABSTIME, &v, 0));
	R(get(f));
	v.it_value.tv_nsec = 1000000000;
	R(timerfd_settime(f, 0, &v, 0));
	R(timerfd_settime(f, 0x100, &v, 0));
	R(timerfd_settime(0, 0, &v, 0));
	R(timerfd_settime(f, 0, (void *)8, 0));
	R(read(f, &v, 4));
	R(write(f, &v, 8));
	int r = must(timerfd_create(CLOCK_REALTIME, 0));
	v = its(20, 0);
	R(timerfd_settime(r, 0, &v, 0));
	CHILD("shared with a child", R(get(r)));
	return t_done();
}
