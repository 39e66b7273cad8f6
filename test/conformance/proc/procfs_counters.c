/* Counters of the whole system under /proc, in the form in which monitors read them. */
#include "t.h"
static char b[1 << 20];
static char *text(const char *n)
{
	int f = open(n, O_RDONLY), k, o = 0;
	while (f >= 0 && o < (int)sizeof b - 1 && (k = read(f, b + o, sizeof b - 1 - o)) > 0)
		o += k;
	if (f >= 0)
		close(f);
	b[o] = 0;
	return f < 0 ? "none" : b;
}
/* The number behind a name at the beginning of a line, -1 without. */
static long long value(const char *name)
{
	size_t n = strlen(name);
	for (char *l = b; l; l = strchr(l, '\n') ? strchr(l, '\n') + 1 : 0)
		if (!strncmp(l, name, n) && (l[n] == ' ' || l[n] == ':'))
			return atoll(l + n + 1);
	return -1;
}
static int columns(const char *l)
{
	int n = 0;
	for (const char *e = strchr(l, '\n'); l < e && (l = strstr(l, "CPU")) && l < e; l += 3)
		n++;
	return n;
}
int main(void)
{
	int cpus = columns(text("/proc/softirqs"));
	T(cpus > 0 && !strncmp(b, "                    CPU0       ", 31));
	const char *kinds[] = {"HI:", "TIMER:", "NET_TX:", "NET_RX:", "BLOCK:", "IRQ_POLL:", "TASKLET:", "SCHED:", "HRTIMER:", "RCU:"};
	for (int i = 0; i < 10; i++) {
		char *l = strstr(b, kinds[i]);
		int n = 0;
		for (char *w = l ? l + strlen(kinds[i]) : 0, *e; w && *w != '\n'; w = e, n++)
			if (strtol(w, &e, 10) < 0 || e == w)
				break;
		T(l && n == cpus);
	}
	T(columns(text("/proc/interrupts")) == cpus && !strncmp(b, "           CPU0       ", 22));
	const char *which[] = {"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"};
	for (int i = 0; i < 3; i++) {
		double a[6];
		long long t[2] = {-1, -1};
		int n = sscanf(text(which[i]), "some avg10=%lf avg60=%lf avg300=%lf total=%lld\nfull avg10=%lf avg60=%lf avg300=%lf total=%lld\n", a,
		               a + 1, a + 2, t, a + 3, a + 4, a + 5, t + 1);
		/* Where it is switched off the files can be opened, or are not there. */
		T(n == 8 || access(which[i], R_OK) != 0 || (open(which[i], O_RDONLY) >= 0 && *b == 0));
		T(n != 8 || (a[0] >= 0 && a[0] <= 100 && t[0] >= t[1] && t[1] >= 0));
	}
	long free = -1;
	T(!strncmp(text("/proc/zoneinfo"), "Node 0, zone ", 13));
	for (char *l = b; (l = strstr(l, "  pages free ")); l += 12)
		free = (free < 0 ? 0 : free) + atol(l + 12);
	T(free > 0);
	T(strstr(b, "\n        managed ") && strstr(b, "\n        present ") && strstr(b, "protection: ("));
	T(!strncmp(text("/proc/buddyinfo"), "Node 0, zone ", 13));
	char zone[16];
	int order[11];
	T(sscanf(b, "Node 0, zone %15s %d %d %d %d %d %d %d %d %d %d %d", zone, order, order + 1, order + 2, order + 3, order + 4, order + 5,
	         order + 6, order + 7, order + 8, order + 9, order + 10) == 12);
	T(strstr(text("/proc/tty/drivers"), "\n/dev/ptmx            /dev/ptmx       5       2 system\n"));
	T(strstr(b, "\npty_slave            /dev/pts      136 0-1048575 pty:slave\n"));
	T(!strcmp(text("/proc/execdomains"), "0-0\tLinux           \t[kernel]\n"));
	/* Memory: the parts are within the whole, and what a program has touched or put into a file in memory is seen. */
	text("/proc/meminfo");
	long long total = value("MemTotal"), cached = value("Cached"), shmem = value("Shmem"), anon = value("AnonPages");
	T(total > 0 && value("MemFree") > 0 && value("MemFree") <= total && value("MemAvailable") <= total);
	T(cached > 0 && cached <= total && shmem >= 0 && shmem <= cached);
	T(anon >= 0 && anon <= total && value("Slab") == value("SReclaimable") + value("SUnreclaim"));
	T(value("Committed_AS") > 0 && value("CommitLimit") > 0);
	/* Others use memory too, and give it back meanwhile: one of many tries is enough. */
	const size_t size = 64 << 20;
	int private = 0, files = 0;
	for (int i = 0; i < 50 && !private; i++) {
		text("/proc/meminfo");
		anon = value("AnonPages");
		long long promised = value("Committed_AS");
		char *m = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(m, 1, size);
		text("/proc/meminfo");
		private = value("AnonPages") - anon > 32 << 10 && value("Committed_AS") - promised > 32 << 10;
		munmap(m, size);
	}
	T(private);
	/* Other builds of this run at the same time. */
	char file[64], *m = calloc(1, 1 << 20);
	snprintf(file, sizeof file, "/dev/shm/procfs_counters.%d", (int)getpid());
	for (int i = 0; i < 50 && !files; i++) {
		text("/proc/meminfo");
		shmem = value("Shmem");
		int f = must(open(file, O_RDWR | O_CREAT | O_TRUNC, 0600));
		for (int k = 0; k < 32; k++)
			must(write(f, m, 1 << 20));
		text("/proc/meminfo");
		files = value("Shmem") - shmem > 16 << 10;
		must(close(f));
		must(unlink(file));
	}
	T(files);
	text("/proc/vmstat");
	const char *counts[] = {"nr_free_pages", "nr_anon_pages", "nr_file_pages", "nr_dirty", "nr_writeback", "nr_shmem", "pgpgin", "pgpgout",
	                        "pswpin", "pswpout", "pgfault", "pgmajfault", "pgscan_kswapd", "pgsteal_kswapd", "oom_kill"};
	for (int i = 0; i < 15; i++)
		T(value(counts[i]) >= 0);
	return t_done();
}
