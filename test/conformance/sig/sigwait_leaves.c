/* A signal that is sent to a process while one thread leaves its wait for it is another's that waits. */
#include "t.h"
#include <stdatomic.h>

static sigset_t set;
static pthread_barrier_t turn;
static atomic_long taken;
#define WAIT 60000

static long nanos(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *waits_for_a_while(void *arg)
{
	(void)arg;
	for (;;) {
		pthread_barrier_wait(&turn);
		struct timespec t = {0, WAIT};
		if (sigtimedwait(&set, 0, &t) > 0)
			taken++;
		pthread_barrier_wait(&turn);
	}
	return 0;
}

static void *waits_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		if (sigwaitinfo(&set, 0) > 0)
			taken++;
	return 0;
}

int main(void)
{
	pthread_t one, other;
	long lost = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(pthread_sigmask(SIG_BLOCK, &set, 0));
	must(pthread_barrier_init(&turn, 0, 2));
	must(pthread_create(&one, 0, waits_for_a_while, 0));
	must(pthread_create(&other, 0, waits_for_ever, 0));
	usleep(20000);
	for (long n = 0; n < 20000 && !lost; n++) {
		long before = taken;
		pthread_barrier_wait(&turn);
		for (long end = nanos() + WAIT / 2 + n % 200 * 1000; nanos() < end;)
			;
		kill(getpid(), SIGUSR1);
		pthread_barrier_wait(&turn);
		for (long end = nanos() + 2000000000; taken == before && nanos() < end;)
			usleep(10);
		lost += taken == before;
	}
	N(lost);
	fflush(stdout);
	_exit(t_done());
}
