/* A timer on the process' processor time interrupts a thread that uses it, not one that waits: what profilers live by. */
#include "t.h"
#include <pthread.h>
static volatile int stop, tid_burner, on_burner, elsewhere;
static void h(int s)
{
	(void)s;
	int *n = (int *)(gettid() == tid_burner ? &on_burner : &elsewhere);
	__atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST);
}
static void *burn(void *p)
{
	tid_burner = gettid();
	while (!stop)
		;
	return p;
}
static void sample(const char *name)
{
	on_burner = elsewhere = 0;
	while (on_burner + elsewhere < 20)
		t_ms(10);
	say("%s: a thread that runs is interrupted: %d\n", name, on_burner > elsewhere);
}
int main(void)
{
	pthread_t t;
	struct itimerval v = {{0, 10000}, {0, 10000}}, off = {0};
	t_handle(SIGPROF, h, SA_RESTART), t_handle(SIGVTALRM, h, SA_RESTART), t_handle(SIGUSR1, h, SA_RESTART);
	pthread_create(&t, 0, burn, 0);
	while (!tid_burner)
		t_ms(1);
	R(setitimer(ITIMER_PROF, &v, 0));
	sample("ITIMER_PROF");
	R(setitimer(ITIMER_PROF, &off, 0));
	R(setitimer(ITIMER_VIRTUAL, &v, 0));
	sample("ITIMER_VIRTUAL");
	R(setitimer(ITIMER_VIRTUAL, &off, 0));
	timer_t id;
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec w = {{0, 10000000}, {0, 10000000}};
	R(timer_create(CLOCK_PROCESS_CPUTIME_ID, &e, &id));
	R(timer_settime(id, 0, &w, 0));
	sample("CLOCK_PROCESS_CPUTIME_ID");
	R(timer_delete(id));
	stop = 1;
	return t_done();
}
