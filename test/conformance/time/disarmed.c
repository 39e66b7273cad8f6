/* Once a timer is disarmed, or has been deleted, its signal has come or does not come any more: what a handler uses may go. */
#include "t.h"
static volatile long handled;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static long nanos(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void spin(long for_nanos)
{
	for (long end = nanos() + for_nanos; nanos() < end;)
		;
}

int main(void)
{
	long late = 0;
	struct itimerval never = {0};
	t_handle(SIGALRM, on_signal, 0);
	for (long n = 0; n < 12000; n++) {
		struct itimerval soon = {.it_value = {0, 30 + n % 40}};
		setitimer(ITIMER_REAL, &soon, 0);
		spin(30000 + n % 97 * 1000);
		setitimer(ITIMER_REAL, &never, 0);
		long before = handled;
		spin(20000);
		late += handled != before;
	}
	N(late);
	T(handled > 0);
	return t_done();
}
