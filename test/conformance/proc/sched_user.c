/* What a user may choose of the schedulers without a privilege: SCHED_IDLE counts as the highest nice value, so
   that only RLIMIT_NICE lets it be left. */
#include "t.h"
static void become_a_user(void)
{
	struct rlimit none = {0, 0};
	must(setrlimit(RLIMIT_RTPRIO, &none));
	must(setrlimit(RLIMIT_NICE, &none));
	if (!getuid())
		must(setuid(100000 + getpid()));
}
static int choose(int policy, int priority)
{
	struct sched_param p = {.sched_priority = priority};
	return syscall(SYS_sched_setscheduler, 0, policy, &p);
}
int main(void)
{
	become_a_user();
	R(choose(SCHED_FIFO, 1));
	R(choose(SCHED_RR, 99));
	R(choose(SCHED_BATCH, 0));
	R(choose(SCHED_OTHER, 0));
	R(choose(SCHED_IDLE, 0));
	R(choose(SCHED_IDLE, 0));
	R(choose(SCHED_BATCH, 0));
	R(choose(SCHED_OTHER, 0));
	R(choose(SCHED_FIFO, 1));
	N(syscall(SYS_sched_getscheduler, 0));
	return t_done();
}
