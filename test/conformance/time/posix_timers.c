/* POSIX timers: signal, thread, none; overrun, absolute, deletion, limits of arguments, inheritance. */
#include "t.h"
static volatile int hits, value, who;
static void h(int s, siginfo_t *i, void *u)
{
	(void)s, (void)u;
	hits++;
	value = i->si_value.sival_int;
	who = t_gettid();
}
static volatile pid_t tid;
static void *th(void *a)
{
	(void)a;
	tid = t_gettid();
	for (int i = 0; i < 400 && !hits; i++)
		t_ms(5);
	return 0;
}
static void notify(union sigval v) { __atomic_add_fetch(&hits, v.sival_int, __ATOMIC_SEQ_CST); }
static struct itimerspec its(long ms, long every) { return (struct itimerspec){{every / 1000, every % 1000 * 1000000}, {ms / 1000, ms % 1000 * 1000000}}; }
static void *thread_time(void *sig)
{
	timer_t t;
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = *(int *)sig, .sigev_value.sival_int = 66};
	struct itimerspec v = its(30, 0);
	struct timespec used;
	R(timer_create(CLOCK_THREAD_CPUTIME_ID, &e, &t));
	hits = 0;
	must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used));
	R(timer_settime(t, 0, &v, 0));
	long before = used.tv_sec * 1000000000 + used.tv_nsec;
	for (long n = t_now(); !hits && t_now() - n < 20000;)
		;
	must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used));
	say("hits %d value %d\n", hits, value);
	T(used.tv_sec * 1000000000 + used.tv_nsec - before >= 30000000);
	R(timer_delete(t));
	return 0;
}
int main(void)
{
	timer_t t;
	int sig = SIGRTMIN + 2;
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig, .sigev_value.sival_int = 33};
	struct itimerspec v = its(20, 0), o;
	t_info(sig, h, 0);
	R(timer_create(99, &e, &t));
	e.sigev_signo = 99;
	R(syscall(SYS_timer_create, CLOCK_MONOTONIC, &e, &t));
	e.sigev_signo = sig;
	R(timer_create(CLOCK_MONOTONIC, &e, &t));
	R(timer_settime(t, 0, &v, &o));
	N(o.it_value.tv_nsec);
	R(timer_gettime(t, &o));
	T(o.it_value.tv_nsec > 0 && o.it_value.tv_nsec <= 20000000);
	R(pause());
	say("hits %d value %d\n", hits, value);
	N(timer_getoverrun(t));
	/* Overruns while the signal is blocked. */
	sigset_t m;
	sigemptyset(&m), sigaddset(&m, sig);
	sigprocmask(SIG_BLOCK, &m, 0);
	v = its(10, 10);
	R(timer_settime(t, 0, &v, 0));
	t_ms(120);
	siginfo_t i;
	T(sigwaitinfo(&m, &i) == sig && i.si_code == SI_TIMER);
	T(timer_getoverrun(t) >= 5 && timer_getoverrun(t) < 1000);
	v = its(0, 0);
	R(timer_settime(t, 0, &v, &o));
	T(o.it_interval.tv_nsec == 10000000);
	struct timespec z = {0, 0};
	sigtimedwait(&m, &i, &z);
	/* Absolute, and long past. */
	v.it_value = (struct timespec){0, 1};
	R(timer_settime(t, TIMER_ABSTIME, &v, 0));
	T(sigwaitinfo(&m, &i) == sig);
	v.it_value.tv_nsec = 1000000000;
	R(timer_settime(t, 0, &v, 0));
	CHILD("not inherited", R(syscall(SYS_timer_gettime, 0, &o)));
	/* Deleting takes the pending signal along. */
	v = its(1, 0);
	R(timer_settime(t, 0, &v, 0));
	t_ms(30);
	R(timer_delete(t));
	R(sigtimedwait(&m, &i, &z));
	R(syscall(SYS_timer_delete, 12345));
	R(syscall(SYS_timer_settime, 12345, 0, &v, 0));
	sigprocmask(SIG_UNBLOCK, &m, 0);
	/* For one thread. */
	hits = 0;
	pthread_t p;
	pthread_create(&p, 0, th, 0);
	while (!tid)
		t_ms(1);
	struct { union sigval v; int signo, notify, tid, pad[11]; } k = {{.sival_int = 44}, sig, 4 /* SIGEV_THREAD_ID */, tid, {0}};
	int id;
	R(syscall(SYS_timer_create, CLOCK_MONOTONIC, &k, &id));
	v = its(20, 0);
	R(syscall(SYS_timer_settime, id, 0, &v, 0));
	pthread_join(p, 0);
	T(who == tid && value == 44);
	R(syscall(SYS_timer_delete, id));
	k.tid = 0x3ffffff;
	R(syscall(SYS_timer_create, CLOCK_MONOTONIC, &k, &id));
	/* No notice at all, only to be read. */
	e.sigev_notify = SIGEV_NONE;
	R(timer_create(CLOCK_REALTIME, &e, &t));
	v = its(50000, 0);
	R(timer_settime(t, 0, &v, 0));
	R(timer_gettime(t, &o));
	T(o.it_value.tv_sec >= 49);
	R(timer_delete(t));
	/* By thread, as the C library does it. */
	hits = 0;
	e.sigev_notify = SIGEV_THREAD, e.sigev_notify_function = notify, e.sigev_value.sival_int = 7, e.sigev_notify_attributes = 0;
	R(timer_create(CLOCK_MONOTONIC, &e, &t));
	v = its(20, 0);
	R(timer_settime(t, 0, &v, 0));
	for (int q = 0; q < 400 && !hits; q++)
		t_ms(5);
	N(hits);
	R(timer_delete(t));
	/* No event given: SIGALRM with the timer's number. */
	t_info(SIGALRM, h, 0);
	R(syscall(SYS_timer_create, CLOCK_MONOTONIC, 0, &id));
	hits = 0;
	R(syscall(SYS_timer_settime, id, 0, &v, 0));
	pause();
	T(hits == 1 && value == id);
	/* Processor time. */
	e.sigev_notify = SIGEV_SIGNAL, e.sigev_signo = sig, e.sigev_value.sival_int = 55;
	R(timer_create(CLOCK_PROCESS_CPUTIME_ID, &e, &t));
	hits = 0;
	v = its(50, 0);
	R(timer_settime(t, 0, &v, 0));
	for (long n = t_now(); !hits && t_now() - n < 10000;)
		;
	N(hits);
	/* The same of one thread: of the only one, and of one of several. */
	CHILD("alone", thread_time(&sig));
	pthread_create(&p, 0, thread_time, &sig);
	pthread_join(p, 0);
	return t_done();
}
