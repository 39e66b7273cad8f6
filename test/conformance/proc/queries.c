/* Questions by ioctl: mappings (PROCMAP_QUERY), processes by descriptor (PIDFD_GET_INFO), entropy, the old terminal settings. */
/* not: i386 */
#include "t.h"
#include <termios.h>
#include <linux/random.h>
struct procmap {
	uint64_t size, flags, addr, start, end, vma_flags, page_size, offset, inode;
	uint32_t major, minor, name_size, id_size;
	uint64_t name, id;
};
#define QUERY _IOWR('f', 17, struct procmap)
enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8, OR_NEXT = 16, FILE_BACKED = 32 };
struct info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};
#define INFO _IOWR(0xff, 11, struct info)
static int maps;
int main(void);
static char name[4096], id[64];
static struct procmap q;
static int ask(uint64_t flags, void *addr)
{
	q = (struct procmap){sizeof q, flags, (uintptr_t)addr, .name_size = sizeof name, .name = (uintptr_t)name};
	memset(name, 'x', sizeof name);
	return ioctl(maps, QUERY, &q);
}
static void mappings(void)
{
	char *p = mmap(0, 16 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(p == MAP_FAILED ? -1 : 0);
	must(mprotect(p + 4096, 4096, PROT_READ | PROT_WRITE));
	int f = must(open("mapped", O_RDWR | O_CREAT, 0600));
	must(ftruncate(f, 65536));
	struct stat st;
	must(fstat(f, &st));
	must(mmap(p + 4 * 4096, 8192, PROT_READ, MAP_SHARED | MAP_FIXED, f, 8192) == MAP_FAILED ? -1 : 0);
	must(munmap(p + 8 * 4096, 4096));
	R(ask(0, p));
	T(q.start <= (uintptr_t)p && q.end == (uintptr_t)p + 4096);
	say("flags %lx page %lu offset %lx name %u\n", q.vma_flags, q.page_size, q.offset, q.name_size);
	R(ask(0, p + 5000));
	T(q.start == (uintptr_t)p + 4096 && q.end == (uintptr_t)p + 8192);
	say("flags %lx offset %lx inode %lu\n", q.vma_flags, q.offset, q.inode);
	R(ask(0, p + 5 * 4096));
	T(q.start == (uintptr_t)p + 4 * 4096 && q.end == (uintptr_t)p + 6 * 4096 && q.inode == st.st_ino && q.size == sizeof q);
	say("flags %lx offset %lx %s\n", q.vma_flags, q.offset, strrchr(name, '/'));
	T(q.name_size == strlen(name) + 1);
	/* By rights, the first from there on. */
	R(ask(WRITABLE, p));
	R(ask(WRITABLE | OR_NEXT, p));
	T(q.start == (uintptr_t)p + 4096);
	R(ask(FILE_BACKED | OR_NEXT, p));
	T(q.start == (uintptr_t)p + 4 * 4096);
	R(ask(0, p + 8 * 4096));
	R(ask(OR_NEXT, p + 8 * 4096));
	T(q.start == (uintptr_t)p + 9 * 4096);
	R(ask(SHARED | READABLE | OR_NEXT, p));
	T(q.start == (uintptr_t)p + 4 * 4096);
	R(ask(0, (void *)1));
	R(ask(OR_NEXT, (void *)-4096L));
	R(ask(EXECUTABLE, (void *)(uintptr_t)main));
	T(q.start <= (uintptr_t)main && (uintptr_t)main < q.end);
	/* The program's build id is where its first page is. */
	uint64_t text = q.start;
	q = (struct procmap){sizeof q, 0, text, .id_size = sizeof id, .id = (uintptr_t)id};
	R(ioctl(maps, QUERY, &q));
	N(q.id_size);
	q = (struct procmap){sizeof q, 0, (uintptr_t)p + 4096, .id_size = sizeof id, .id = (uintptr_t)id};
	R(ioctl(maps, QUERY, &q));
	N(q.id_size);
	/* What is wrong. */
	ask(0, p);
	q.size = 8;
	R(ioctl(maps, QUERY, &q));
	q.size = 5000;
	R(ioctl(maps, QUERY, &q));
	struct { struct procmap q; uint64_t more[4]; } big = {{sizeof big, 0, (uintptr_t)p}};
	R(ioctl(maps, QUERY, &big));
	big.more[3] = 1;
	R(ioctl(maps, QUERY, &big));
	q = (struct procmap){24, 0, (uintptr_t)p};
	R(ioctl(maps, QUERY, &q));
	N(q.end);
	R(ask(64, p));
	q = (struct procmap){sizeof q, 0, (uintptr_t)p + 4 * 4096, .name_size = 3, .name = (uintptr_t)name};
	R(ioctl(maps, QUERY, &q));
	q = (struct procmap){sizeof q, 0, (uintptr_t)p + 4 * 4096, .name_size = 3};
	R(ioctl(maps, QUERY, &q));
	q = (struct procmap){sizeof q, 0, (uintptr_t)p + 4 * 4096, .name_size = 4096, .name = 8};
	R(ioctl(maps, QUERY, &q));
	R(ioctl(maps, QUERY, 8));
	int s = must(open("/proc/self/statm", O_RDONLY));
	R(ioctl(s, QUERY, &q));
	unlink("mapped");
}
static void show(int fd, uint64_t mask, int pid)
{
	struct info i = {mask};
	long r = ioctl(fd, INFO, &i);
	if (r < 0) {
		say("info %lx: %s\n", mask, t_errno(errno));
		return;
	}
	say("info %lx: mask %lx pid %s tgid %s parent %s ids %s exit %x\n", mask, i.mask & ~4ul, i.pid == pid ? "right" : i.pid ? "wrong" : "0", i.tgid == pid ? "right" : i.tgid ? "wrong" : "0",
	    i.ppid == getpid() ? "me" : i.ppid == getppid() ? "mine" : i.ppid ? "wrong" : "0",
	    i.ruid == getuid() && i.euid == geteuid() && i.suid == getuid() && i.fsuid == geteuid() && i.rgid == getgid() && i.egid == getegid() && i.sgid == getgid() && i.fsgid == getegid() ? "right" : i.pid ? "wrong" : "right",
	    i.exit_code);
}
static void processes(void)
{
	int me = must(syscall(SYS_pidfd_open, getpid(), 0));
	show(me, 0, getpid());
	show(me, 3, getpid());
	show(me, 8, getpid());
	struct info i = {0};
	R(ioctl(me, _IOWR(0xff, 11, char[32]), &i));
	R(ioctl(me, _IOWR(0xff, 11, char[80]), &(struct { struct info i; char more[16]; }){{0}}));
	R(ioctl(me, INFO, 0));
	R(ioctl(me, INFO, 8));
	R(ioctl(me, _IO(0xff, 99), 0));
	int p[2];
	must(pipe(p));
	int pid = must(fork());
	if (!pid) {
		char c;
		read(p[0], &c, 1);
		_exit(7);
	}
	int fd = must(syscall(SYS_pidfd_open, pid, 0));
	show(fd, 3, pid);
	must(write(p[1], "x", 1));
	siginfo_t si;
	must(waitid(P_PID, pid, &si, WEXITED | WNOWAIT));
	show(fd, 3, pid);
	show(fd, 8, pid);
	must(waitid(P_PID, pid, &si, WEXITED));
	show(fd, 3, pid);
	show(fd, 8, pid);
	show(fd, 11, pid);
	pid = must(fork());
	if (!pid)
		for (;;)
			pause();
	fd = must(syscall(SYS_pidfd_open, pid, 0));
	must(kill(pid, SIGKILL));
	must(waitid(P_PID, pid, &si, WEXITED));
	show(fd, 8, pid);
}
static void entropy(void)
{
	int u = must(open("/dev/urandom", O_RDONLY)), r = must(open("/dev/random", O_RDONLY)), n = -1;
	R(ioctl(u, RNDGETENTCNT, &n));
	N(n);
	R(ioctl(r, RNDGETENTCNT, &n));
	N(n);
	R(ioctl(u, RNDGETENTCNT, 8));
	int z = must(open("/dev/zero", O_RDONLY));
	R(ioctl(z, RNDGETENTCNT, &n));
}
static void nobody(union sigval v) {}
static void timers(void)
{
	timer_t t[4];
	struct sigevent e = {.sigev_notify = SIGEV_NONE, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 3};
	must(timer_create(CLOCK_MONOTONIC, &e, t));
	e.sigev_notify = SIGEV_SIGNAL, e.sigev_value.sival_int = 0x77;
	must(timer_create(CLOCK_REALTIME, &e, t + 1));
	e.sigev_notify = SIGEV_THREAD_ID, e.sigev_signo = SIGRTMIN + 3;
	((int *)&e.sigev_notify)[1] = gettid();
	must(timer_create(CLOCK_BOOTTIME, &e, t + 2));
	char line[200], what[20];
	long id = 0;
	FILE *f = fopen("/proc/self/timers", "r");
	T(!!f);
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "notify: %19[a-z/].%ld", what, &id) == 2)
			say("notify: %s.%s\n", what, id == getpid() ? "own" : "another");
		else
			say("%s", line);
	fclose(f);
	for (int i = 0; i < 3; i++)
		timer_delete(t[i]);
	f = fopen("/proc/self/timers", "r");
	T(!fgets(line, sizeof line, f));
	fclose(f);
	/* Averages have the form they have everywhere. */
	double a, b, c;
	int running, all;
	f = fopen("/proc/loadavg", "r");
	T(fscanf(f, "%lf %lf %lf %d/%d %ld", &a, &b, &c, &running, &all, &id) == 6 && a >= 0 && running >= 1 && all >= running);
	fclose(f);
}
struct old {
	unsigned short c_iflag, c_oflag, c_cflag, c_lflag;
	unsigned char c_line, c_cc[8];
};
static void terminal(void)
{
	int m = must(posix_openpt(O_RDWR | O_NOCTTY)), on = 0;
	must(ioctl(m, TIOCSPTLCK, &on));
	int s = must(open(ptsname(m), O_RDWR | O_NOCTTY));
	struct old t, u;
	memset(&t, 0xff, sizeof t);
	R(ioctl(s, TCGETA, &t));
	say("%ho %ho %ho %ho %d:", t.c_iflag, t.c_oflag, t.c_cflag, t.c_lflag, t.c_line);
	for (int i = 0; i < 8; i++)
		say(" %d", t.c_cc[i]);
	say("\n");
	t.c_lflag &= ~(ICANON | ECHO);
	t.c_cc[VINTR] = 24;
	R(ioctl(s, TCSETA, &t));
	R(ioctl(m, TCGETA, &u));
	T(!memcmp(&t, &u, sizeof t - 1));
	t.c_oflag = 0;
	must(write(m, "abc", 3));
	struct pollfd in = {s, POLLIN};
	must(poll(&in, 1, -1));
	R(ioctl(s, TCSETAW, &t));
	int n;
	must(ioctl(s, FIONREAD, &n));
	N(n);
	R(ioctl(s, TCSETAF, &t));
	must(ioctl(s, FIONREAD, &n));
	N(n);
	R(ioctl(s, TCGETA, &u));
	N(u.c_oflag);
	R(ioctl(s, TCSETA, 8));
	R(ioctl(0xfff, TCGETA, &u));
}
int main(void)
{
	maps = must(open("/proc/self/maps", O_RDONLY));
	mappings();
	processes();
	entropy();
	timers();
	terminal();
	/* CPUID stays as it is where the machine cannot have it trap. */
	N(syscall(SYS_arch_prctl, 0x1011, 0));
	return t_failed;
}
