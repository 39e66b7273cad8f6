/* Clocks: the kinds there are, that they go forward, resolutions, settings refused, the calls beside clock_gettime. */
#include "t.h"
#include <sys/timex.h>
static int64_t ns(clockid_t c)
{
	struct timespec t;
	return clock_gettime(c, &t) ? -1 : t.tv_sec * 1000000000ll + t.tv_nsec;
}
static void *th(void *a)
{
	(void)a;
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	T(t.tv_sec == 0 && t.tv_nsec < 200000000);
	return 0;
}
int main(void)
{
	struct timespec t;
	struct timeval v;
	clockid_t all[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI};
	for (int i = 0; i < 9; i++) {
		int64_t last = 0, back = 0;
		for (int k = 0; k < 2000; k++) {
			int64_t n = ns(all[i]);
			back += n < last;
			last = n;
		}
		say("clock %d: there %d, went back %ld\n", all[i], last > 0, (long)back);
		T(clock_getres(all[i], &t) == 0 && t.tv_sec == 0 && t.tv_nsec >= 1);
	}
	R(clock_gettime(99, &t));
	R(clock_getres(99, &t));
	R(syscall(SYS_clock_gettime, CLOCK_REALTIME, 8));
	R(clock_getres(CLOCK_REALTIME, 0));
	R(gettimeofday(&v, 0));
	int64_t d = ns(CLOCK_REALTIME) / 1000 - (v.tv_sec * 1000000ll + v.tv_usec);
	T(d >= 0 && d < 2000000);
	d = time(0) - ns(CLOCK_REALTIME) / 1000000000;
	T(d >= -1 && d <= 1);
	d = (ns(CLOCK_BOOTTIME) - ns(CLOCK_MONOTONIC)) / 1000000000;
	T(d >= 0);
	/* By system call and by the vDSO it is the same clock. */
	int64_t a = ns(CLOCK_MONOTONIC);
	must(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t));
	int64_t b = t.tv_sec * 1000000000ll + t.tv_nsec, c = ns(CLOCK_MONOTONIC);
	T(a <= b && b <= c);
	a = ns(CLOCK_REALTIME);
	must(syscall(SYS_clock_gettime, CLOCK_REALTIME, &t));
	b = t.tv_sec * 1000000000ll + t.tv_nsec, c = ns(CLOCK_REALTIME);
	T(a <= b && b <= c);
	a = ns(CLOCK_MONOTONIC);
	t_ms(50);
	c = ns(CLOCK_MONOTONIC) - a;
	T(c >= 50000000 && c < 5000000000);
	pthread_t p;
	int64_t cpu = ns(CLOCK_THREAD_CPUTIME_ID);
	while (ns(CLOCK_THREAD_CPUTIME_ID) - cpu < 250000000)
		;
	T(ns(CLOCK_PROCESS_CPUTIME_ID) >= 250000000);
	pthread_create(&p, 0, th, 0);
	pthread_join(p, 0);
	clockid_t id;
	N(clock_getcpuclockid(getpid(), &id));
	T(ns(id) >= 250000000);
	N(pthread_getcpuclockid(pthread_self(), &id));
	T(ns(id) >= 250000000);
	t.tv_sec = 0, t.tv_nsec = 1000000000;
	R(clock_settime(CLOCK_REALTIME, &t));
	R(clock_settime(CLOCK_MONOTONIC, &t));
	struct timex x = {0};
	T(adjtimex(&x) >= 0);
	return t_done();
}
