// Time that is promised (SCHED_DEADLINE): what is admitted, that it is kept among others and not exceeded, and where a turn ends. The argument is the
// number of processors.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static int processors;

static long long at(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* So many milliseconds in each of so many: 0, or the error. */
static int promise(pid_t pid, int budget, int period)
{
	struct attr attr = {sizeof attr, 6, 0, 0, 0, budget * 1000000LL, period * 1000000LL, 0};
	return syscall(SYS_sched_setattr, pid, &attr, 0) ? errno : 0;
}

static int ordinary(pid_t pid)
{
	struct attr attr = {sizeof attr};
	return syscall(SYS_sched_setattr, pid, &attr, 0) ? errno : 0;
}

static void yes(const char *what, int is) { printf("%s: %s\n", what, is ? "yes" : "no"); fflush(stdout); }

static pid_t sleeper(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Where one has just left, its time is free when its period is over; one that had not begun leaves it when it would have begun. */
static int promise_soon(pid_t pid, int budget, int period)
{
	int error = EBUSY;
	for (int i = 0; i < 500 && error == EBUSY; i++) {
		error = promise(pid, budget, period);
		if (error == EBUSY)
			usleep(20000);
	}
	return error;
}

static void admission(void)
{
	struct attr now;
	yes("more than there is is refused", promise(0, 91, 100) == EBUSY);
	yes("what makes no sense is refused", promise(0, 101, 0) == EINVAL);
	pid_t pids[64];
	int count = 0, error = 0;
	while (count < 64 && !error) {
		pids[count] = sleeper();
		error = promise(pids[count++], 80, 100);
	}
	yes("each processor has room for one", error == EBUSY && count == processors + 1);
	yes("another demand in its place", promise(pids[0], 85, 100) == 0 && promise(pids[0], 96, 100) == EBUSY);
	syscall(SYS_sched_getattr, pids[0], &now, sizeof now, 0);
	yes("what was refused changes nothing", now.policy == 6 && now.runtime == 85000000);
	end(pids[0]);
	yes("what has ended leaves its time", promise_soon(pids[count - 1], 80, 100) == 0);
	yes("so does what is ordinary again", ordinary(pids[count - 1]) == 0 && promise_soon(0, 80, 100) == 0 && ordinary(0) == 0);
	while (--count > 0)
		end(pids[count]);
	usleep(200000);
}

/* What part of a second or more, in percent, it has had while it never slept. */
static int share(void)
{
	long long start = at(CLOCK_MONOTONIC), used = at(CLOCK_THREAD_CPUTIME_ID), end;
	do
		end = at(CLOCK_MONOTONIC);
	while (end - start < 1500000000LL);
	return (at(CLOCK_THREAD_CPUTIME_ID) - used) * 100 / (end - start);
}

/* Nine others for each processor leave a tenth. The bounds leave room for a host that is late: where it stops the machine while another runs, periods are lost. */
static void among_others(void)
{
	pid_t pids[64];
	int count = 0;
	while (count < 9 * processors && count < 64)
		if ((pids[count++] = fork()) == 0)
			for (;;)
				;
	usleep(100000);
	int alike = share(), error = promise(0, 40, 100), promised = share();
	struct attr more = {sizeof more, 6, 0, 0, 0, 60000000, 100000000, 0};
	error |= syscall(SYS_sched_setattr, 0, &more, 0);
	share();
	int changed = share();
	cpu_set_t one, all;
	sched_getaffinity(0, sizeof all, &all);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	int bound = sched_setaffinity(0, sizeof one, &one) ? errno : 0;
	error |= ordinary(0);
	share();
	int again = share();
	yes("among others", !error && alike < 25 && again < 25);
	yes("what was promised is kept", promised >= 25 && changed >= 30);
	yes("and not exceeded", promised <= 50 && changed <= 70);
	yes("it may run everywhere", CPU_COUNT(&all) == processors && bound == (processors > 1 ? EBUSY : 0));
	if (promised < 25 || changed < 30 || promised > 50 || changed > 70 || alike >= 25 || again >= 25)
		printf("%d %d %d %d\n", alike, promised, changed, again);
	while (count > 0)
		end(pids[--count]);
}

static void turns(void)
{
	int error = promise(0, 5, 50);
	sched_yield();
	long long start = at(CLOCK_MONOTONIC);
	for (int i = 0; i < 5; i++)
		sched_yield();
	long long passed = at(CLOCK_MONOTONIC) - start;
	error |= ordinary(0);
	yes("a turn ends with its period", !error && passed > 4 * 50000000LL);
	/* Sleeps are as long as ever. */
	error = promise(0, 5, 50);
	start = at(CLOCK_MONOTONIC);
	usleep(120000);
	yes("sleeps end when they are due", !error && at(CLOCK_MONOTONIC) - start >= 120000000LL && !ordinary(0));
}

int main(int argc, char **argv)
{
	processors = argc > 1 ? atoi(argv[1]) : 1;
	admission();
	among_others();
	turns();
	return 0;
}
