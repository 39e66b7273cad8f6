/* Where a thread waits, how it was scheduled, and on which memory nodes its pages are: wchan, stack, sched, numa_maps of /proc/PID. */
/* not: i386 */
#include "t.h"
static char b[1 << 18];
static char *text(const char *f, int pid)
{
	char p[64];
	snprintf(p, sizeof p, f, pid);
	int d = open(p, O_RDONLY), n, o = 0;
	while (d >= 0 && o < (int)sizeof b - 1 && (n = read(d, b + o, sizeof b - 1 - o)) > 0)
		o += n;
	if (d >= 0)
		close(d);
	b[o] = 0;
	return b;
}
static long value(const char *name)
{
	char *l = strstr(b, name);
	return l ? atol(strchr(l, ':') + 1) : -1;
}
int main(void)
{
	pid_t p = must(fork());
	if (!p) {
		pause();
		_exit(0);
	}
	t_asleep(p, p);
	/* One that waits is in some function; one that runs is in none that is named. */
	T(geteuid() != 0 || strlen(text("/proc/%d/wchan", p)) > 1);
	S(text("/proc/%d/wchan", getpid()));
	if (geteuid() == 0) {
		T(!strncmp(text("/proc/%d/stack", p), "[<0>] ", 6));
		CHILD("another's", must(setresuid(1000, 1000, 1000));
		      S(text("/proc/%d/wchan", p)); char f[64]; snprintf(f, sizeof f, "/proc/%d/stack", p); R(open(f, O_RDONLY));
		      snprintf(f, sizeof f, "/proc/%d/numa_maps", p); R(open(f, O_RDONLY)));
	}
	char head[64];
	snprintf(head, sizeof head, "(%d, #threads: 1)\n---", p);
	T(strstr(text("/proc/%d/sched", p), head));
	T(strstr(b, "\nse.sum_exec_runtime ") && value("nr_switches") >= 1);
	T(value("nr_switches") == value("nr_voluntary_switches") + value("nr_involuntary_switches"));
	N(value("policy"));
	N(value("prio"));
	must(setpriority(PRIO_PROCESS, p, 5));
	text("/proc/%d/sched", p);
	N(value("prio"));
	kill(p, SIGKILL);
	t_reap("child", p);
	/* Memory that was touched is on the first node. */
	char *m = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), at[64];
	must(madvise(m, 1 << 20, MADV_NOHUGEPAGE));
	snprintf(at, sizeof at, "%lx default", (unsigned long)m);
	memset(m, 1, 1 << 20);
	text("/proc/self/numa_maps", 0);
	char *l = strstr(b, at);
	T(l);
	if (l) {
		*strchr(l, '\n') = 0;
		T(strstr(l, " anon=256 dirty=256 ") && strstr(l, " N0=256 kernelpagesize_kB=4"));
	}
	text("/proc/self/numa_maps", 0);
	T(strstr(b, " default heap ") || strstr(b, " default heap\n") || !strstr(text("/proc/self/maps", 0), "[heap]"));
	T(strstr(text("/proc/self/numa_maps", 0), " default stack ") && strstr(b, " default file=/"));
	return t_done();
}
