/* sched_setattr and sched_getattr: deadlines, slices, SCHED_RESET_ON_FORK, what is wrong; and all of scheduling for a process that has
   ended. As root, and as a user without rights. Shares are small, since a machine counts all that run this at once together. */
/* linux: 6.12 */
#include "t.h"
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t min, max;
};
static int set(int policy, uint64_t flags, uint64_t runtime, uint64_t deadline, uint64_t period)
{
	struct attr a = {48, policy, flags, 0, 0, runtime, deadline, period, 0, 0};
	return syscall(SYS_sched_setattr, 0, &a, 0);
}
static void show(const char *what, pid_t p)
{
	struct attr a;
	memset(&a, 0xee, sizeof a);
	int r = syscall(SYS_sched_getattr, p, &a, sizeof a, 0);
	/* The usual slice is the machine's. */
	if (a.policy != 6 && a.runtime != 5000000 && a.runtime != 100000 && a.runtime != 100000000)
		a.runtime = 0;
	say("%s: %d size %u policy %u flags %llx nice %d priority %u: %llu %llu %llu %u %u\n", what, r, a.size, a.policy, (long long)a.flags, a.nice, a.priority, (long long)a.runtime, (long long)a.deadline, (long long)a.period, a.min, a.max);
}
static void show_in_child(void)
{
	pid_t p = must(fork());
	if (!p) {
		show("in a child", 0);
		_exit(0);
	}
	t_reap("child", p);
}
static void wrong(void)
{
	char b[4200];
	struct attr a = {48, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	R(syscall(SYS_sched_setattr, 0, 0, 0));
	R(syscall(SYS_sched_setattr, 0, &a, 1));
	R(syscall(SYS_sched_setattr, -1, &a, 0));
	R(syscall(SYS_sched_setattr, 0x3ffffff, &a, 0));
	R(syscall(SYS_sched_setattr, 0, 1, 0));
	a.size = 47;
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	N(a.size);
	a.size = 4097;
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	a.size = 0;
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	memset(b, 0, sizeof b);
	*(uint32_t *)b = 4096;
	R(syscall(SYS_sched_setattr, 0, b, 0));
	b[4095] = 1;
	R(syscall(SYS_sched_setattr, 0, b, 0));
	a = (struct attr){48, 77, 0, 0, 0, 0, 0, 0, 0, 0};
	R(syscall(SYS_sched_setattr, 0x3ffffff, &a, 0));
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	a.policy = 0x80000000;
	R(syscall(SYS_sched_setattr, 0x3ffffff, &a, 0));
	R(set(0x40000000, 0, 0, 0, 0));
	R(set(0, 0x80, 0, 0, 0));
	R(set(0, 0x20, 0, 0, 0));
	R(syscall(SYS_sched_getattr, 0, 0, 48, 0));
	R(syscall(SYS_sched_getattr, 0, &a, 47, 0));
	R(syscall(SYS_sched_getattr, 0, b, 4097, 0));
	R(syscall(SYS_sched_getattr, 0, b, 4096, 1));
	R(syscall(SYS_sched_getattr, -1, b, 4096, 0));
	R(syscall(SYS_sched_getattr, 0x3ffffff, b, 4096, 0));
	R(syscall(SYS_sched_getattr, 0, 1, 4096, 0));
	R(syscall(SYS_sched_getattr, 0, b, 4096, 0));
	N(*(uint32_t *)b);
	memset(b, 0xee, sizeof b);
	R(syscall(SYS_sched_getattr, 0, b, 50, 0));
	N(*(uint32_t *)b);
	N((unsigned char)b[50]);
}
static void slices(void)
{
	R(set(0, 0, 5000000, 7, 8));
	show("a slice", 0);
	show_in_child();
	R(set(0, 0x10, 1, 1, 1));
	show("kept", 0);
	R(set(0, 0, 1, 0, 0));
	show("least", 0);
	R(set(0, 0, 1ull << 40, 0, 0));
	show("most", 0);
	R(set(0, 1, 5000000, 0, 0));
	show("reset", 0);
	show_in_child();
	R(set(0, 9, 5000000, 0, 0));
	R(set(0, 8, 0, 0, 0));
	show("reset is kept", 0);
	R(set(0, 6, 0, 0, 0));
	show("without a deadline", 0);
}
static void deadlines(void)
{
	const uint64_t d[][3] = {
		{0, 0, 0}, {1023, 1000000, 1000000}, {2000000, 1000000, 1000000}, {1000000, 2000000, 1000000}, {1100, 50000, 99999},
		{10000, 2000000, 1ull << 32}, {10000, 2000000, 4194305000}, {1000000, 1ull << 63, 0}, {10000, 2000000, 1ull << 63},
		{1024, 1000000, 1000000}, {1100, 50000, 100000}, {10000, 2000000, 4194304000}, {10000, 2000000, 0},
	};
	/* Given to a process that sleeps: some are shares of a few microseconds in a second. */
	pid_t sleeper = must(fork());
	if (!sleeper)
		for (;;)
			pause();
	for (int i = 0; i < (int)(sizeof d / sizeof *d); i++) {
		struct attr now = {0}, none = {48}, a = {48, 6, 0, 0, 0, d[i][0], d[i][1], d[i][2], 0, 0};
		int r = syscall(SYS_sched_setattr, sleeper, &a, 0), e = r ? errno : 0;
		syscall(SYS_sched_getattr, sleeper, &now, sizeof now, 0);
		must(syscall(SYS_sched_setattr, sleeper, &none, 0));
		say("%d: %d %d, now %u %llu %llu %llu\n", i, r, e, now.policy, (long long)(now.policy == 6 ? now.runtime : 0),
		    (long long)now.deadline, (long long)now.period);
	}
	must(kill(sleeper, SIGKILL));
	t_reap("sleeper", sleeper);
	struct attr a = {48, 6, 0, 5, 1, 400000, 2000000, 0, 0, 0};
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	a.priority = 0;
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	show("with a nice value", 0);
	struct sched_param s = {9};
	R(syscall(SYS_sched_getparam, 0, &s));
	N(s.sched_priority);
	N(syscall(SYS_sched_getscheduler, 0));
	R(syscall(SYS_sched_setparam, 0, &s));
	R(syscall(SYS_sched_setscheduler, 0, 6, &s));
	R(syscall(SYS_sched_get_priority_max, 6));
	R(set(0, 8, 0, 0, 0));
	R(set(0, 0x18, 0, 0, 0));
	R(set(6, 0x10, 1, 2, 3));
	show("kept", 0);
	/* Its time is its own. */
	R(fork());
	cpu_set_t all, one;
	must(sched_getaffinity(0, sizeof all, &all));
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (CPU_COUNT(&all) > 1)
		T(sched_setaffinity(0, sizeof one, &one) == -1 && errno == EBUSY);
	else
		T(1);
	R(sched_setaffinity(0, sizeof all, &all));
	R(set(6, 7, 400000, 2000000, 0));
	show("flags", 0);
	show_in_child();
	R(set(0, 0, 0, 0, 0));
	show("back", 0);
	must(set(1, 0, 0, 0, 0) == -1 && errno == EINVAL ? 0 : -1);
	a = (struct attr){48, 1, 1, 0, 3, 5, 6, 7, 0, 0};
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	show("real time", 0);
	show_in_child();
	R(set(0, 0, 0, 0, 0));
	if (CPU_COUNT(&all) > 1) {
		must(sched_setaffinity(0, sizeof one, &one));
		T(set(6, 0, 10000, 2000000, 0) == -1 && errno == EPERM);
		must(sched_setaffinity(0, sizeof all, &all));
	} else {
		T(1);
	}
}
static void ended(void)
{
	pid_t p = must(fork());
	if (!p) {
		struct sched_param s = {0};
		must(syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &s));
		must(setpriority(PRIO_PROCESS, 0, 4));
		_exit(0);
	}
	siginfo_t i;
	struct sched_param s = {7};
	struct timespec t;
	cpu_set_t c;
	void *h = &h;
	size_t l = 9;
	must(waitid(P_PID, p, &i, WEXITED | WNOWAIT));
	R(syscall(SYS_sched_getscheduler, p));
	R(syscall(SYS_sched_getparam, p, &s));
	N(s.sched_priority);
	show("ended", p);
	R(syscall(SYS_sched_rr_get_interval, p, &t));
	R(sched_getaffinity(p, sizeof c, &c));
	T(CPU_COUNT(&c) > 0);
	R(sched_setaffinity(p, sizeof c, &c));
	R(syscall(SYS_sched_setscheduler, p, 0, &s));
	R(syscall(SYS_sched_getscheduler, p));
	R(syscall(SYS_sched_setparam, p, &s));
	R(getpriority(PRIO_PROCESS, p));
	R(setpriority(PRIO_PROCESS, p, 7));
	R(getpriority(PRIO_PROCESS, p));
	R(syscall(SYS_get_robust_list, p, &h, &l));
	T(!h && l == 3 * sizeof(void *));
	R(syscall(SYS_ioprio_get, 1, p));
	R(syscall(SYS_ioprio_set, 1, p, 2 << 13 | 3));
	R(syscall(SYS_ioprio_get, 1, p));
	if (!geteuid()) {
		pid_t q = must(fork());
		if (!q) {
			must(setresuid(12345, 12345, 12345));
			R(syscall(SYS_sched_getscheduler, p));
			R(syscall(SYS_sched_setscheduler, p, 0, &s));
			R(sched_setaffinity(p, sizeof c, &c));
			R(syscall(SYS_get_robust_list, p, &h, &l));
			_exit(0);
		}
		t_reap("another user", q);
	}
	t_reap("ended", p);
	R(syscall(SYS_sched_getscheduler, p));
	R(syscall(SYS_get_robust_list, p, &h, &l));
}
static void without_rights(void)
{
	must(setresuid(12345, 12345, 12345));
	struct attr a = {48, 0, 0, -1, 0, 0, 0, 0, 0, 0};
	R(set(6, 0, 10000, 2000000, 0));
	R(set(6, 0, 0, 0, 0));
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	a.nice = 3;
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	a.nice = 2;
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	a.nice = 3;
	a.flags = 1;
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	a.flags = 0;
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	a.flags = 8;
	R(syscall(SYS_sched_setattr, 0, &a, 0));
	show("now", 0);
}
int main(void)
{
	if (geteuid())
		return t_done();
	wrong();
	slices();
	deadlines();
	ended();
	without_rights();
	return t_done();
}
