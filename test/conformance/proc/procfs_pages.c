/* Files of /proc/PID that show pages and threads that wait: map_files, pagemap, syscall, schedstat. */
/* not: i386 */
#include "t.h"
#include <dirent.h>
static char b[4096];
static char *text(const char *n)
{
	int f = open(n, O_RDONLY);
	ssize_t k = f < 0 ? -1 : read(f, b, sizeof b - 1);
	if (f >= 0)
		close(f);
	b[k < 0 ? 0 : k] = 0;
	return b;
}
static void map_files(void)
{
	char n[128], l[512], own[512], c[64];
	struct stat s;
	int f = must(open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600)), r = must(open("mapped", O_RDONLY));
	must(ftruncate(f, 8192));
	char *w = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0), *p = mmap(0, 4096, PROT_READ, MAP_PRIVATE, r, 4096);
	T(w != MAP_FAILED && p != MAP_FAILED);
	must(stat("/proc/self/map_files", &s));
	N(s.st_mode & 07777);
	snprintf(n, sizeof n, "/proc/self/map_files/%lx-%lx", (long)w, (long)w + 8192);
	must(lstat(n, &s));
	T(S_ISLNK(s.st_mode));
	N(s.st_mode & 07777);
	ssize_t k = must(readlink(n, l, sizeof l - 1));
	l[k] = 0;
	T(getcwd(own, sizeof own - 16) && !strcmp(strcat(own, "/mapped"), l));
	snprintf(c, sizeof c, "%s", strrchr(n, '/') + 1);
	int listed = 0, files = 0, kinds = 1;
	DIR *d = opendir("/proc/self/map_files");
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		files++;
		listed += !strcmp(e->d_name, c);
		kinds &= e->d_type == DT_LNK;
	}
	closedir(d);
	T(listed == 1 && files >= 3 && kinds);
	if (!geteuid()) {
		struct stat t;
		must(fstat(f, &s));
		R(stat(n, &t));
		T(s.st_ino == t.st_ino && s.st_dev == t.st_dev);
		must(unlink("mapped"));
		int g = OK(open(n, O_RDWR));
		R(pwrite(g, "x", 1, 5));
		T(w[5] == 'x');
		close(g);
		pid_t q = must(fork());
		if (!q) {
			must(setresuid(12345, 12345, 12345));
			R(open(n, O_RDONLY));
			R(access("/proc/1/map_files/0-1000", F_OK));
			_exit(0);
		}
		t_reap("without rights", q);
	} else {
		must(unlink("mapped"));
	}
	snprintf(n, sizeof n, "/proc/self/map_files/%lx-%lx", (long)p, (long)p + 4096);
	must(lstat(n, &s));
	N(s.st_mode & 07777);
	snprintf(n, sizeof n, "/proc/self/map_files/%lx-%lx", (long)w, (long)w + 4096);
	R(readlink(n, l, sizeof l));
	snprintf(n, sizeof n, "/proc/self/map_files/0%lx-%lx", (long)w, (long)w + 8192);
	R(readlink(n, l, sizeof l));
	R(readlink("/proc/self/map_files/some-thing", l, sizeof l));
	snprintf(n, sizeof n, "/proc/self/task/%d/map_files", getpid());
	R(access(n, F_OK));
	must(munmap(w, 8192));
	must(munmap(p, 4096));
	close(f);
	close(r);
}
static void pagemap(void)
{
	uint64_t v[4] = {0};
	int f = must(open("/proc/self/pagemap", O_RDONLY));
	char *m = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(m != MAP_FAILED);
	must(madvise(m, 4 * 4096, MADV_NOHUGEPAGE));
	m[4096] = m[3 * 4096] = 1;
	off_t at = (uintptr_t)m / 4096 * 8;
	R(pread(f, v, 32, at));
	for (int i = 0; i < 4; i++)
		N(v[i] >> 61);
	/* Present in one address space only. */
	T(v[1] >> 56 & 1);
	must(munmap(m + 4096, 4096));
	R(pread(f, v, 16, at + 8));
	N(v[0] >> 61);
	N(v[1] >> 61);
	int h = must(open("pages", O_RDWR | O_CREAT | O_TRUNC, 0600));
	must(ftruncate(h, 4096));
	char *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, h, 0);
	s[0] = 1;
	R(pread(f, v, 8, (uintptr_t)s / 4096 * 8));
	N(v[0] >> 61);
	R(pread(f, v, 7, at));
	R(pread(f, v, 8, 4));
	R(pread(f, v, 0, 8));
	R(pread(f, v, 16, 0x7ffffffff000 / 4096 * 8));
	R(lseek(f, at, SEEK_SET) == at);
	R(read(f, v, 8));
	R(lseek(f, 0, SEEK_CUR) == at + 8);
	R(lseek(f, 0, SEEK_END));
	R(write(f, v, 8));
	/* Nothing of a program that runs no more. */
	pid_t p = must(fork());
	if (!p) {
		char n[32];
		snprintf(n, sizeof n, "%d", f);
		pause();
		_exit(0);
	}
	char n[64];
	snprintf(n, sizeof n, "/proc/%d/pagemap", p);
	int o = must(open(n, O_RDONLY));
	R(pread(o, v, 8, at + 16));
	kill(p, SIGKILL);
	t_reap("child", p);
	R(pread(o, v, 8, at));
	close(o);
	close(f);
	close(h);
	must(unlink("pages"));
}
static void calls(void)
{
	int e[2], g[2];
	char n[64], want[128], c;
	must(pipe(e));
	must(pipe(g));
	pid_t p = must(fork());
	if (!p) {
		close(e[1]);
		must(write(g[1], "", 1));
		syscall(SYS_read, e[0], &c, 1);
		must(write(g[1], "", 1));
		for (volatile int on = 1; on;)
			;
	}
	must(read(g[0], &c, 1));
	t_asleep(p, p);
	snprintf(n, sizeof n, "/proc/%d/syscall", p);
	snprintf(want, sizeof want, "%d 0x%x 0x%lx 0x1 0x", SYS_read, e[0], (long)&c);
	T(!strncmp(text(n), want, strlen(want)));
	int fields = 1;
	long sp = 0, pc = 0;
	for (char *s = b; (s = strchr(s, ' ')); s++, fields++)
		if (fields == 7)
			sscanf(s, "%lx %lx", &sp, &pc);
	N(fields);
	T(sp && labs(sp - (long)&c) < 65536);
	T(pc != 0 && pc != sp);
	kill(p, SIGSTOP);
	int st;
	T(waitpid(p, &st, WUNTRACED) == p && WIFSTOPPED(st));
	kill(p, SIGCONT);
	must(write(e[1], "x", 1));
	must(read(g[0], &c, 1));
	/* It runs, or waits for a processor. */
	T(!strcmp(text(n), "running\n"));
	kill(p, SIGSTOP);
	T(waitpid(p, &st, WUNTRACED) == p && WIFSTOPPED(st));
	/* Linux shows what the interrupt left where a call's number is, which need not be -1. */
	for (int i = 0; i < 1000 && !strcmp(text(n), "running\n"); i++)
		usleep(1000);
	T(strstr(b, " 0x"));
	long x, y, z = 0;
	snprintf(n, sizeof n, "/proc/%d/schedstat", p);
	N(sscanf(text(n), "%ld %ld %ld", &x, &y, &z));
	snprintf(n, sizeof n, "/proc/%d/task/%d/schedstat", p, p);
	N(sscanf(text(n), "%ld %ld %ld", &x, &y, &z));
	kill(p, SIGKILL);
	t_reap("child", p);
	if (!geteuid()) {
		pid_t q = must(fork());
		if (!q) {
			must(setresuid(12345, 12345, 12345));
			snprintf(n, sizeof n, "/proc/%d/syscall", getppid());
			R(open(n, O_RDONLY));
			_exit(0);
		}
		t_reap("another user", q);
	}
}
int main(void)
{
	map_files();
	pagemap();
	calls();
	return t_done();
}
