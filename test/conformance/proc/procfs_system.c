/* The system's side of /proc and /dev: the files and fields programs look for. */
#include "t.h"
static char b[1 << 20];
static int has(const char *n, const char *w)
{
	int f = open(n, O_RDONLY);
	if (f < 0)
		return 0;
	ssize_t k, o = 0;
	while (o < (ssize_t)sizeof b - 1 && (k = read(f, b + o, sizeof b - 1 - o)) > 0)
		o += k;
	close(f);
	b[o > 0 ? o : 0] = 0;
	return strstr(b, w) != 0;
}
int main(void)
{
	T(has("/proc/cpuinfo", "processor\t: 0") && strstr(b, "flags") && strstr(b, "model name"));
	T(has("/proc/meminfo", "MemTotal:") && strstr(b, "MemAvailable:") && strstr(b, "SwapTotal:") && strstr(b, "Cached:"));
	T(has("/proc/mounts", " / ") && strstr(b, " /proc proc "));
	T(has("/proc/stat", "cpu ") && strstr(b, "btime ") && strstr(b, "processes "));
	T(has("/proc/uptime", "."));
	T(has("/proc/loadavg", "/"));
	T(has("/proc/version", "Linux version"));
	T(has("/proc/filesystems", "proc"));
	T(has("/proc/sys/kernel/ostype", "Linux"));
	T(has("/proc/sys/kernel/osrelease", "."));
	T(has("/proc/sys/kernel/hostname", ""));
	T(has("/proc/sys/kernel/pid_max", "0") || atoi(b) > 100);
	T(has("/proc/sys/kernel/random/boot_id", "-"));
	T(has("/proc/sys/vm/overcommit_memory", "\n"));
	T(has("/proc/sys/fs/pipe-max-size", "1048576"));
	R(open("/proc/nothing", O_RDONLY));
	R(open("/proc/999999999/stat", O_RDONLY));
	R(mkdir("/proc/x", 0700));
	T(open("/proc/self/stat", O_RDONLY) >= 0);
	struct stat s;
	R(stat("/proc/self/stat", &s));
	N(s.st_size);
	T(S_ISREG(s.st_mode));
	T(stat("/proc/1", &s) == 0 && S_ISDIR(s.st_mode));
	T(lstat("/proc/self", &s) == 0 && S_ISLNK(s.st_mode));
	const char *dev[] = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"};
	for (int i = 0; i < 7; i++) {
		char p[32];
		snprintf(p, sizeof p, "/dev/%s", dev[i]);
		int r = stat(p, &s);
		say("%s %d %s %u:%u\n", p, r, S_ISCHR(s.st_mode) ? "char" : "other", (unsigned)(s.st_rdev >> 8), (unsigned)(s.st_rdev & 255));
	}
	char l[64] = "";
	readlink("/dev/fd", l, 63);
	S(l);
	memset(l, 0, 64);
	readlink("/dev/stdin", l, 63);
	S(l);
	T(stat("/dev/shm", &s) == 0 && S_ISDIR(s.st_mode) && (s.st_mode & 07777) == 01777);
	T(stat("/dev/pts", &s) == 0 && S_ISDIR(s.st_mode));
	char c[8] = "abcdefg";
	int f = must(open("/dev/zero", O_RDWR));
	T(read(f, c, 8) == 8 && !memcmp(c, "\0\0\0\0\0\0\0\0", 8));
	R(write(f, c, 8));
	f = must(open("/dev/null", O_RDWR));
	R(read(f, c, 8));
	R(write(f, c, 8));
	f = must(open("/dev/full", O_RDWR));
	R(read(f, c, 8));
	R(write(f, c, 8));
	f = must(open("/dev/urandom", O_RDONLY));
	R(read(f, c, 8));
	T(syscall(SYS_getrandom, c, 8, 0) == 8);
	R(syscall(SYS_getrandom, c, 8, 0x100));
	R(syscall(SYS_getrandom, (void *)8, 8, 0));
	return t_done();
}
