/* /proc beyond the basics: namespaces, sockets, locks, resident memory, faults and switches, nice values. */
/* not: i386 */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
static char b[1 << 20];
static char *text(const char *n)
{
	int f = open(n, O_RDONLY);
	ssize_t k, o = 0;
	while (f >= 0 && o < (ssize_t)sizeof b - 1 && (k = read(f, b + o, sizeof b - 1 - o)) > 0)
		o += k;
	if (f >= 0)
		close(f);
	b[o] = 0;
	return b;
}
/* The line of a file that holds both words, or an empty one. */
static char *line(const char *n, const char *w, const char *v)
{
	for (char *l = strtok(text(n), "\n"); l; l = strtok(0, "\n"))
		if (strstr(l, w) && strstr(l, v))
			return l;
	return "";
}
static long field(const char *stat, int n)
{
	char *p = strrchr(text(stat), ')') + 1;
	for (; n > 3; n--)
		p = strchr(p + 1, ' ');
	return atol(p + 1);
}
static unsigned long inode(int fd)
{
	struct stat s;
	must(fstat(fd, &s));
	return s.st_ino;
}
static void namespaces(void)
{
	const char *n[] = {"ipc", "mnt", "net", "pid", "user", "uts", "cgroup"};
	const int flag[] = {0x08000000, 0x20000, 0x40000000, 0x20000000, 0x10000000, 0x04000000, 0x02000000};
	for (int i = 0; i < 7; i++) {
		char p[64], l[64] = "", want[64];
		struct stat s;
		snprintf(p, sizeof p, "/proc/self/ns/%s", n[i]);
		T(readlink(p, l, sizeof l - 1) > 0);
		int f = must(open(p, O_RDONLY));
		must(fstat(f, &s));
		snprintf(want, sizeof want, "%s:[%lu]", n[i], (unsigned long)s.st_ino);
		T(!strcmp(l, want));
		T(ioctl(f, 0xb703) == flag[i]);
		R(read(f, p, 1));
		close(f);
	}
	R(open("/proc/self/ns/none", O_RDONLY));
}
static void sockets(void)
{
	char l[64] = "", w[64], v[64];
	T(readlink("/proc/net", l, sizeof l - 1) == 8);
	S(l);
	T(*line("/proc/net/dev", "lo:", ""));
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int t = must(socket(AF_INET, SOCK_STREAM, 0)), u = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(bind(t, (void *)&a, sizeof a));
	must(listen(t, 3));
	must(getsockname(t, (void *)&a, &n));
	snprintf(w, sizeof w, " 0100007F:%04X 00000000:0000 0A ", ntohs(a.sin_port));
	snprintf(v, sizeof v, " %lu ", inode(t));
	T(*line("/proc/net/tcp", w, v));
	a.sin_port = 0;
	must(bind(u, (void *)&a, sizeof a));
	snprintf(v, sizeof v, " %lu ", inode(u));
	T(*line("/proc/self/net/udp", " 0100007F:", v));
	struct sockaddr_un x = {.sun_family = AF_UNIX, .sun_path = "sock"};
	int s = must(socket(AF_UNIX, SOCK_STREAM, 0));
	must(bind(s, (void *)&x, sizeof x));
	snprintf(v, sizeof v, " %lu ", inode(s));
	T(*line("/proc/net/unix", v, " sock"));
	must(unlink("sock"));
	close(t);
	snprintf(v, sizeof v, " %lu ", inode(t = u));
	T(!*line("/proc/net/tcp", w, ""));
}
static void locks(void)
{
	char w[64], v[64];
	int f = must(open("lock", O_RDWR | O_CREAT, 0600));
	snprintf(v, sizeof v, ":%lu ", inode(f));
	T(!*line("/proc/locks", v, ""));
	struct flock l = {.l_type = F_WRLCK, .l_start = 10, .l_len = 20};
	must(fcntl(f, F_SETLK, &l));
	snprintf(w, sizeof w, "POSIX  ADVISORY  WRITE %d ", getpid());
	T(*line("/proc/locks", v, w) && *line("/proc/locks", v, " 10 29"));
	l = (struct flock){.l_type = F_RDLCK, .l_start = 100};
	must(fcntl(f, F_SETLK, &l));
	T(*line("/proc/locks", v, "READ") && *line("/proc/locks", v, " 100 EOF"));
	must(flock(f, LOCK_SH));
	snprintf(w, sizeof w, "FLOCK  ADVISORY  READ %d ", getpid());
	T(*line("/proc/locks", v, w));
	close(f);
	T(!*line("/proc/locks", v, ""));
	must(unlink("lock"));
}
static void memory(void)
{
	struct rusage u, w;
	char *m = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), r[64];
	T(m != MAP_FAILED);
	madvise(m, 1 << 20, MADV_NOHUGEPAGE);
	must(getrusage(RUSAGE_SELF, &u));
	long before = field("/proc/self/stat", 10);
	for (int i = 0; i < 256; i++)
		m[i * 4096] = 1;
	must(getrusage(RUSAGE_SELF, &w));
	T(w.ru_minflt - u.ru_minflt >= 200 && w.ru_minflt - u.ru_minflt < 2000);
	T(field("/proc/self/stat", 10) - before >= 200);
	snprintf(r, sizeof r, "%lx-", (unsigned long)m);
	int f = must(open("/proc/self/smaps", O_RDONLY));
	ssize_t k, o = 0;
	while ((k = read(f, b + o, sizeof b - 1 - o)) > 0)
		o += k;
	b[o] = 0;
	close(f);
	/* Neighbours may be joined with it: at least what was touched. */
	long rss = 0;
	for (char *l = strtok(b, "\n"); l; l = strtok(0, "\n"))
		if (!strncmp(l, "Rss:", 4))
			rss += atol(l + 4);
	T(rss >= 1024);
	T(atol(line("/proc/self/smaps_rollup", "Rss:", "kB") + 4) >= 1024);
	T(*line("/proc/self/smaps_rollup", "[rollup]", " ---p "));
	T(*line("/proc/self/smaps_rollup", "Pss:", "kB") && *line("/proc/self/smaps", "Anonymous:", "kB"));
	/* A child's counts come with its status. */
	pid_t p = must(fork());
	if (!p) {
		for (int i = 0; i < 256; i++)
			m[i * 4096] = 2;
		/* On a busy machine a sleep can be over before its thread has given up the processor. */
		do
			usleep(1000), must(getrusage(RUSAGE_SELF, &w));
		while (w.ru_nvcsw < 5);
		_exit(0);
	}
	int st;
	T(wait4(p, &st, 0, &u) == p && st == 0);
	T(u.ru_minflt >= 200);
	T(u.ru_nvcsw >= 5);
}
static void nice_values(void)
{
	pid_t p = must(fork());
	if (!p) {
		T(setpriority(PRIO_PROCESS, 0, 7) == 0);
		N(getpriority(PRIO_PROCESS, 0));
		N(field("/proc/self/stat", 19));
		N(field("/proc/self/stat", 18));
		pid_t q = must(fork());
		if (!q) {
			N(getpriority(PRIO_PROCESS, 0));
			_exit(0);
		}
		t_reap("grandchild", q);
		T(setpriority(PRIO_PROCESS, 0, 100) == 0);
		N(getpriority(PRIO_PROCESS, 0));
		_exit(0);
	}
	t_reap("child", p);
	N(getpriority(PRIO_PROCESS, 0));
}
int main(void)
{
	namespaces();
	sockets();
	locks();
	memory();
	nice_values();
	T(line("/proc/vmstat", "pgfault ", "")[0]);
	char c[64];
	snprintf(c, sizeof c, "/proc/%d/task/%d/children", getpid(), getpid());
	pid_t p = must(fork());
	if (!p) {
		pause();
		_exit(0);
	}
	T(access(c, R_OK) != 0 || atoi(text(c)) == p);
	kill(p, SIGKILL);
	t_reap("child", p);
	T(*line("/proc/self/status", "voluntary_ctxt_switches:\t", ""));
	T(atol(text("/proc/self/timerslack_ns")) > 0);
	return t_done();
}
