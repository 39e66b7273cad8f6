/* futex_waitv: any of several words, timeouts, what it refuses. */
/* not: i386 */
#include "t.h"
#include <sys/syscall.h>
struct word {
	uint64_t val, addr;
	uint32_t flags, reserved;
};
static uint32_t words[4];
static struct word v[4];
static long waitv(void *at, unsigned n, unsigned flags, struct timespec *end, int clock)
{
	return syscall(449, at, n, flags, end, clock);
}
static void *waker(void *a)
{
	t_ms(30);
	words[2] = 1;
	return (void *)syscall(SYS_futex, &words[2], 129 /* FUTEX_WAKE_PRIVATE */, 1, 0, 0, 0);
}
int main(void)
{
	for (int i = 0; i < 4; i++)
		v[i] = (struct word){0, (uintptr_t)&words[i], 2 | 128, 0};
	pthread_t t;
	void *woken;
	pthread_create(&t, 0, waker, 0);
	R(waitv(v, 4, 0, 0, 0));
	pthread_join(t, &woken);
	N((long)woken);
	R(waitv(v, 4, 0, 0, 0)); /* a word has changed */
	words[2] = 0;
	struct timespec end;
	for (int clock = 0; clock < 2; clock++) {
		clock_gettime(clock ? CLOCK_MONOTONIC : CLOCK_REALTIME, &end);
		end.tv_nsec += 20000000;
		if (end.tv_nsec > 999999999)
			end.tv_sec++, end.tv_nsec -= 1000000000;
		R(waitv(v, 4, 0, &end, clock));
	}
	R(waitv(v, 4, 0, &end, CLOCK_PROCESS_CPUTIME_ID));
	R(waitv(v, 129, 0, 0, 0));
	R(waitv(v, 0, 0, 0, 0));
	R(waitv(v, 1, 1, 0, 0));
	R(waitv(0, 1, 0, 0, 0));
	v[0].flags = 0;
	R(waitv(v, 1, 0, &end, CLOCK_MONOTONIC));
	v[0].flags = 2 | 128, v[0].reserved = 1;
	R(waitv(v, 1, 0, &end, CLOCK_MONOTONIC));
	v[0].reserved = 0, v[0].addr += 1;
	R(waitv(v, 1, 0, &end, CLOCK_MONOTONIC));
	v[0].addr = 16;
	R(waitv(v, 1, 0, &end, CLOCK_MONOTONIC));
	return t_done();
}
