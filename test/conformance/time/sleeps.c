/* nanosleep and clock_nanosleep: length, what remains, absolute, refusals. */
/* not: i386 */
#include "t.h"
static void h(int s) { (void)s; }
static void later(int ms)
{
	pid_t me = getpid();
	if (!must(fork())) {
		t_ms(ms);
		kill(me, SIGUSR1);
		_exit(0);
	}
}
int main(void)
{
	struct timespec t = {0, 30000000}, r = {9, 9};
	long n = t_now();
	R(nanosleep(&t, &r));
	T(t_now() - n >= 30);
	N(r.tv_sec);
	t.tv_nsec = 1000000000;
	R(nanosleep(&t, 0));
	t.tv_nsec = -1;
	R(nanosleep(&t, 0));
	t.tv_sec = -1, t.tv_nsec = 0;
	R(nanosleep(&t, 0));
	R(nanosleep((void *)8, 0));
	t.tv_sec = 0;
	R(nanosleep(&t, 0));
	t_handle(SIGUSR1, h, SA_RESTART);
	later(60);
	t.tv_sec = 50;
	n = t_now();
	R(nanosleep(&t, &r));
	T(t_now() - n < 50000);
	T(r.tv_sec > 0 && r.tv_sec < 50);
	wait(0);
	later(60);
	R(nanosleep(&t, (void *)8));
	wait(0);
	t.tv_sec = 0, t.tv_nsec = 30000000;
	N(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0));
	N(clock_nanosleep(CLOCK_REALTIME, 0, &t, 0));
	N(clock_nanosleep(CLOCK_BOOTTIME, 0, &t, 0));
	S(t_errno(clock_nanosleep(99, 0, &t, 0)));
	S(t_errno(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &t, 0)));
	/* What the C library reports by itself, the call reports otherwise; the others are clocks to be read. */
	R(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &t, 0));
	R(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC_RAW, 0, &t, 0));
	R(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, 8, 0));
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += 40000000;
	if (t.tv_nsec >= 1000000000)
		t.tv_sec++, t.tv_nsec -= 1000000000;
	n = t_now();
	N(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0));
	T(t_now() - n >= 35);
	N(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0)); /* past */
	later(60);
	t.tv_sec += 5;
	r.tv_sec = 77;
	S(t_errno(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, &r)));
	N(r.tv_sec); /* untouched */
	wait(0);
	/* A stop does not lengthen or cut a sleep. */
	pid_t p = must(fork());
	if (!p) {
		t.tv_sec = 0, t.tv_nsec = 200000000;
		n = t_now();
		R(nanosleep(&t, 0));
		T(t_now() - n >= 200);
		_exit(t_failed);
	}
	t_asleep(p, p);
	kill(p, SIGSTOP), t_ms(30), kill(p, SIGCONT);
	t_reap("sleeper", p);
	N(sleep(0));
	N(usleep(1000));
	return t_done();
}
