/* A thread that is refused since another one ends the process has a descriptor table of its own by then, in which a file is open that a third one closes
 * meanwhile: who is to learn of its end by a signal does, and processes go on. */
#include "t.h"
#include <stdatomic.h>
#include <sys/eventfd.h>
#define TURNS 100

static atomic_int ready, go;
static long begin, end_after, close_after;
static int files, last;

static long nanos(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void until(long time)
{
	while (nanos() < time)
		;
}

static void wait_for_turn(long after)
{
	ready++;
	while (!go)
		;
	until(begin + after);
}

static void *ends_all(void *arg)
{
	(void)arg;
	wait_for_turn(end_after);
	syscall(SYS_exit_group, 0);
	return 0;
}

static void *closes(void *arg)
{
	(void)arg;
	wait_for_turn(close_after);
	close(last);
	return 0;
}

static void turn(void)
{
	static char stack[65536];
	int ends[2];
	pthread_t one, other;
	must(pipe(ends));
	must(fcntl(ends[0], F_SETOWN, getpid()));
	must(fcntl(ends[0], F_SETFL, O_ASYNC));
	signal(SIGIO, SIG_IGN);
	last = must(fcntl(ends[1], F_DUPFD, files));
	must(close(ends[1]));
	must(pthread_create(&one, 0, ends_all, 0));
	must(pthread_create(&other, 0, closes, 0));
	while (ready < 2)
		sched_yield();
	begin = nanos() + 20000;
	go = 1;
	until(begin);
	syscall(SYS_clone, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, stack + 65000, 0, 0, 0);
	for (;;)
		pause();
}

int main(void)
{
	/* The more there are, the longer they take to be copied. */
	struct rlimit most;
	must(getrlimit(RLIMIT_NOFILE, &most));
	most.rlim_cur = most.rlim_max < 20000 ? most.rlim_max : 20000;
	must(setrlimit(RLIMIT_NOFILE, &most));
	files = most.rlim_cur - 100;
	for (int n = 10; n < files; n++)
		must(eventfd(0, 0));
	int ended = 0;
	for (int n = 0; n < TURNS; n++) {
		end_after = n % 10 * 40000 + 40000;
		close_after = n / 10 % 5 * 30000 + 20000;
		pid_t child = must(fork());
		if (!child)
			turn();
		ended += waitpid(child, 0, 0) == child;
	}
	N(ended);
	return t_done();
}
