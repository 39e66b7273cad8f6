/* Interval timers and alarm: real, virtual, profiling; replacing, reading back, inheritance. */
/* not: i386 */
#include "t.h"
static volatile int n[65];
static void h(int s) { n[s]++; }
static void burn(long ms)
{
	struct timespec a, b;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
}
int main(void)
{
	struct itimerval v = {{0, 0}, {0, 50000}}, o;
	t_handle(SIGALRM, h, 0), t_handle(SIGVTALRM, h, 0), t_handle(SIGPROF, h, 0);
	R(setitimer(ITIMER_REAL, &v, &o));
	N(o.it_value.tv_sec + o.it_value.tv_usec);
	R(getitimer(ITIMER_REAL, &o));
	T(o.it_value.tv_usec > 0 && o.it_value.tv_usec <= 50000);
	R(pause());
	N(n[SIGALRM]);
	R(getitimer(ITIMER_REAL, &o));
	N(o.it_value.tv_usec);
	v.it_interval.tv_usec = 10000;
	setitimer(ITIMER_REAL, &v, 0);
	for (int i = 0; i < 5; i++)
		pause();
	/* On a slow machine one may come between two waits. */
	T(n[SIGALRM] >= 6);
	v.it_value.tv_usec = 0;
	R(setitimer(ITIMER_REAL, &v, 0));
	n[SIGALRM] = 0;
	t_ms(30);
	N(n[SIGALRM]);
	N(alarm(100));
	T(alarm(0) >= 99);
	N(alarm(0));
	alarm(1);
	CHILD("not inherited", T(alarm(0) == 0));
	R(pause());
	N(n[SIGALRM]);
	v = (struct itimerval){{0, 0}, {0, 30000}};
	R(setitimer(ITIMER_VIRTUAL, &v, 0));
	R(setitimer(ITIMER_PROF, &v, 0));
	t_ms(60); /* sleeping does not count */
	say("%d %d\n", n[SIGVTALRM], n[SIGPROF]);
	burn(400);
	say("%d %d\n", n[SIGVTALRM], n[SIGPROF]);
	R(setitimer(9, &v, 0));
	R(getitimer(9, &v));
	R(setitimer(ITIMER_REAL, (void *)8, 0));
	v.it_value.tv_usec = 1000000;
	R(setitimer(ITIMER_REAL, &v, 0));
	CHILD("default SIGALRM", signal(SIGALRM, SIG_DFL); v.it_value.tv_usec = 1000; setitimer(ITIMER_REAL, &v, 0); pause());
	return t_done();
}
