/* Of two processes that want the same processor, the nicer one gets much less of it; of two equal ones each about half. */
#include "t.h"

static double used(clockid_t clock)
{
	struct timespec t;
	must(clock_gettime(clock, &t));
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Uses the processor until it has used this much, or for ever. */
static pid_t worker(int niceness, double until, const int *start)
{
	pid_t child = must(fork());
	if (!child) {
		char c;
		must(nice(niceness));
		close(start[1]);
		read(start[0], &c, 1);
		while (until == 0 || used(CLOCK_PROCESS_CPUTIME_ID) < until)
			;
		_exit(0);
	}
	return child;
}

/* How much of what the first had the second has had. */
static double share(int niceness)
{
	int start[2];
	must(pipe(start));
	pid_t first = worker(0, 1.0, start), second = worker(niceness, 0, start);
	usleep(50000);
	close(start[1]);
	close(start[0]);
	must(waitpid(first, 0, 0));
	kill(second, SIGKILL);
	struct rusage usage;
	must(wait4(second, 0, 0, &usage));
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
}

int main(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	must(sched_getaffinity(0, sizeof one, &one));
	for (int cpu = 0, found = 0; cpu < CPU_SETSIZE; cpu++) {
		if (found)
			CPU_CLR(cpu, &one);
		found |= CPU_ISSET(cpu, &one);
	}
	must(sched_setaffinity(0, sizeof one, &one));
	double equal = share(0), nicer = share(10);
	/* A processor of an emulated machine may be paused for a while, and somebody is charged for it. */
	T(equal > 0.4 && equal < 2.5);
	T(nicer < 0.6 && nicer < equal);
	return t_done();
}
