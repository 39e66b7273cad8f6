/* Timers far shorter than any look at them: they run on when their signal is taken, and only then. */
#include "t.h"
static volatile int hits;
static void h(int s) { (void)s, hits++; }
static int pending(int sig)
{
	sigset_t m;
	sigpending(&m);
	return sigismember(&m, sig);
}
static void until_hit(int more)
{
	for (int i = 0; i < 4000 && hits < more; i++)
		t_ms(5);
	T(hits >= more);
}
int main(void)
{
	struct sigevent none = {.sigev_notify = SIGEV_NONE}, by = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec nano = {{0, 1}, {0, 1}}, milli = {{0, 1000000}, {0, 1000000}}, never = {{0, 0}, {0, 0}}, once = {{0, 0}, {0, 1}}, o;
	struct itimerval micro = {{0, 1000}, {0, 1}}, stop = {{0, 0}, {0, 0}}, was;
	struct timespec z = {0, 0};
	timer_t t, second;
	siginfo_t i;
	sigset_t m;
	/* One that notifies nobody. */
	R(timer_create(CLOCK_MONOTONIC, &none, &t));
	R(timer_settime(t, 0, &nano, 0));
	t_ms(5);
	R(timer_gettime(t, &o));
	T(o.it_value.tv_nsec > 0 && o.it_interval.tv_nsec == 1);
	N(timer_getoverrun(t));
	R(timer_settime(t, 0, &once, 0));
	t_ms(5);
	R(timer_gettime(t, &o));
	N(o.it_value.tv_nsec);
	R(timer_delete(t));
	/* Blocked: one signal waits, whatever else of its number does, and has counted all when it is taken. */
	sigemptyset(&m), sigaddset(&m, SIGUSR1), sigaddset(&m, SIGALRM);
	sigprocmask(SIG_BLOCK, &m, 0);
	t_handle(SIGUSR1, h, 0), t_handle(SIGALRM, h, 0);
	kill(getpid(), SIGUSR1);
	R(timer_create(CLOCK_MONOTONIC, &by, &t));
	R(timer_settime(t, 0, &nano, 0));
	t_ms(20);
	T(sigtimedwait(&m, &i, &z) == SIGUSR1 && i.si_code == SI_USER);
	T(sigwaitinfo(&m, &i) == SIGUSR1 && i.si_code == SI_TIMER && i.si_overrun > 1000000);
	T(sigwaitinfo(&m, &i) == SIGUSR1 && i.si_code == SI_TIMER);
	T(timer_getoverrun(t) == i.si_overrun);
	/* Disarmed and deleted it has nothing pending. */
	R(timer_create(CLOCK_MONOTONIC, &by, &second));
	R(timer_settime(second, 0, &nano, 0));
	t_ms(20);
	R(timer_delete(second));
	R(timer_settime(t, 0, &nano, 0));
	T(sigwaitinfo(&m, &i) == SIGUSR1 && i.si_timerid == (long)t);
	R(timer_delete(t));
	R(sigtimedwait(&m, &i, &z));
	/* Ignored it pauses, and goes on with a handler. (Handled at each nanosecond it would leave its program no time.) */
	sigprocmask(SIG_UNBLOCK, &m, 0);
	signal(SIGUSR1, SIG_IGN);
	R(timer_create(CLOCK_MONOTONIC, &by, &t));
	R(timer_settime(t, 0, &milli, 0));
	t_ms(20);
	hits = 0;
	t_handle(SIGUSR1, h, 0);
	until_hit(3);
	R(timer_settime(t, 0, &never, &o));
	N(o.it_interval.tv_nsec);
	R(timer_delete(t));
	/* Places for signals are limited, and a timer takes one when it is made. */
	struct rlimit few = {0, 0};
	CHILD("no place", R(setrlimit(RLIMIT_SIGPENDING, &few)); R(timer_create(CLOCK_MONOTONIC, &by, &t)); R(timer_create(CLOCK_MONOTONIC, &none, &t)));
	/* The interval timer likewise. */
	sigprocmask(SIG_BLOCK, &m, 0);
	R(setitimer(ITIMER_REAL, &micro, 0));
	while (!pending(SIGALRM))
		t_ms(1);
	R(getitimer(ITIMER_REAL, &was));
	say("%ld %ld\n", (long)was.it_value.tv_usec, (long)was.it_interval.tv_usec);
	hits = 0;
	sigprocmask(SIG_UNBLOCK, &m, 0);
	until_hit(3);
	R(setitimer(ITIMER_REAL, &stop, 0));
	return t_done();
}
