/* Processor affinity and getcpu, scheduling parameters, nice. */
#include "t.h"
int main(void)
{
	cpu_set_t a, b;
	CPU_ZERO(&a);
	T(sched_getaffinity(0, sizeof a, &a) == 0);
	int n = CPU_COUNT(&a);
	T(n >= 1 && n == sysconf(_SC_NPROCESSORS_ONLN));
	T(syscall(SYS_sched_getaffinity, 0, sizeof a, &b) >= 8);
	R(syscall(SYS_sched_getaffinity, 0, 1, &a));
	R(sched_getaffinity(0x3ffffff, sizeof a, &b));
	R(sched_getaffinity(-1, sizeof a, &b));
	R(sched_setaffinity(-1, sizeof a, &a));
	/* The first process, whatever it runs. */
	T(sched_getaffinity(1, sizeof a, &b) == 0);
	T(syscall(SYS_sched_getscheduler, 1) >= 0);
	int c = sched_getcpu();
	T(c >= 0 && CPU_ISSET(c, &a));
	CPU_ZERO(&b);
	CPU_SET(c, &b);
	R(sched_setaffinity(0, sizeof b, &b));
	CPU_ZERO(&b);
	T(sched_getaffinity(0, sizeof b, &b) == 0 && CPU_COUNT(&b) == 1 && CPU_ISSET(c, &b));
	CHILD("inherits", {
		cpu_set_t d;
		CPU_ZERO(&d);
		sched_getaffinity(0, sizeof d, &d);
		T(CPU_COUNT(&d) == 1);
	});
	CPU_ZERO(&b);
	R(sched_setaffinity(0, sizeof b, &b));
	R(sched_setaffinity(0, sizeof a, &a));
	unsigned cpu = 99999, node = 99999;
	R(syscall(SYS_getcpu, &cpu, &node, 0));
	T(cpu < 4096);
	R(sched_yield());
	N(syscall(SYS_sched_getscheduler, 0));
	R(syscall(SYS_sched_getscheduler, -1));
	N(syscall(SYS_sched_get_priority_max, SCHED_FIFO));
	N(syscall(SYS_sched_get_priority_min, SCHED_FIFO));
	N(syscall(SYS_sched_get_priority_max, SCHED_OTHER));
	R(syscall(SYS_sched_get_priority_max, 77));
	struct sched_param sp = {5};
	R(syscall(SYS_sched_getparam, 0, &sp));
	N(sp.sched_priority);
	errno = 0;
	int before = getpriority(PRIO_PROCESS, 0);
	R(setpriority(PRIO_PROCESS, 0, before + 3));
	T(getpriority(PRIO_PROCESS, 0) == before + 3);
	R(getpriority(9, 0));
	R(getpriority(PRIO_PROCESS, 0x3ffffff));
	R(setpriority(PRIO_PROCESS, 0, 100));
	N(getpriority(PRIO_PROCESS, 0));
	return t_done();
}
