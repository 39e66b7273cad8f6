/* Flags of files (chattr): FS_IOC_GETFLAGS, SETFLAGS, FSGETXATTR, FSSETXATTR, on a file system in memory, and what they forbid. */
#include "t.h"
#include <linux/fs.h>
#include <sys/xattr.h>
#include <sys/socket.h>
#include <sys/un.h>
#ifndef STATX_BASIC_STATS
#include <linux/stat.h>
#endif
#ifndef FS_IOC_FSGETXATTR
#error "no struct fsxattr"
#endif
static int get(int f)
{
	int v = -1;
	return ioctl(f, FS_IOC_GETFLAGS, &v) ? -1 : v;
}
static int set(int f, int v) { return ioctl(f, FS_IOC_SETFLAGS, &v); }
static int xset(int f, unsigned flags)
{
	struct fsxattr x = {.fsx_xflags = flags};
	return ioctl(f, FS_IOC_FSSETXATTR, &x);
}
/* What the parts below may have left. */
static void clean(void)
{
	const char *n[] = {"d/in", "d/new", "d/new3", "d/new4", "d/new5", "d/f", "f", "g", "h", "l", "m", "o", "o2", "out"};
	const char *d[] = {"d/sub", "d/new2", "d/e", "d", "e"};
	for (int i = 0; i < (int)(sizeof n / sizeof *n); i++)
		unlink(n[i]);
	for (int i = 0; i < (int)(sizeof d / sizeof *d); i++)
		rmdir(d[i]);
}
static void words(const char *what, int f)
{
	struct fsxattr x;
	say("-- %s\n", what);
	R(get(f));
	for (int b = 0; b < 32; b++)
		if (set(f, 1u << b) == 0)
			say("bit %d: %x\n", b, get(f));
		else if (errno != EOPNOTSUPP)
			say("bit %d: %s\n", b, t_errno(errno));
	R(set(f, 0xf0));
	memset(&x, 0xee, sizeof x);
	R(ioctl(f, FS_IOC_FSGETXATTR, &x));
	say("%x %x %x %x\n", x.fsx_xflags, x.fsx_extsize, x.fsx_nextents, x.fsx_projid);
	for (int b = 0; b < 32; b++)
		if (xset(f, 1u << b) == 0)
			say("extended bit %d: %x\n", b, get(f));
		else if (errno != EOPNOTSUPP)
			say("extended bit %d: %s\n", b, t_errno(errno));
	x = (struct fsxattr){.fsx_projid = 1};
	R(ioctl(f, FS_IOC_FSSETXATTR, &x));
	x = (struct fsxattr){.fsx_extsize = 4096, .fsx_xflags = FS_XFLAG_EXTSIZE};
	R(ioctl(f, FS_IOC_FSSETXATTR, &x));
	x = (struct fsxattr){.fsx_nextents = 4};
	R(ioctl(f, FS_IOC_FSSETXATTR, &x));
	R(ioctl(f, FS_IOC_GETFLAGS, 1));
	R(ioctl(f, FS_IOC_SETFLAGS, 1));
	R(ioctl(f, FS_IOC_FSGETXATTR, 1));
	R(ioctl(f, FS_IOC_FSSETXATTR, 1));
	R(get(f));
}
static void forbids(int flag)
{
	/* struct statx, which musl does not have: attributes at 8, their mask at 56. */
	unsigned long long s[32];
	char b[8];
	say("-- forbidden by %x\n", flag);
	must(mkdir("d", 0755));
	must(mkdir("d/sub", 0755));
	t_write("d/in", "in");
	t_write("f", "12345");
	must(symlink("f", "l"));
	int f = must(open("f", O_RDWR | O_APPEND)), d = must(open("d", O_RDONLY));
	R(set(f, flag));
	R(set(d, flag));
	must(syscall(SYS_statx, f, "", AT_EMPTY_PATH, 0x7ff, s));
	say("attributes %llx of %llx\n", s[1] & 0x70, s[7] & 0x203070);
	R(access("f", W_OK));
	R(access("d", W_OK));
	OK(open("f", O_RDONLY));
	R(open("f", O_WRONLY));
	OK(open("f", O_WRONLY | O_APPEND));
	R(open("f", O_RDONLY | O_TRUNC));
	R(open("f", O_WRONLY | O_APPEND | O_TRUNC));
	R(open("f", O_RDWR | O_CREAT, 0600));
	R(open("f", O_RDWR | O_CREAT | O_EXCL, 0600));
	/* What was opened before goes on. */
	R(write(f, "6", 1));
	R(pwrite(f, "7", 1, 0));
	R(ftruncate(f, 3));
	R(fallocate(f, 0, 0, 10));
	R(fallocate(f, FALLOC_FL_KEEP_SIZE, 0, 10));
	R(fallocate(f, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 1));
	R(fcntl(f, F_SETFL, 0));
	/* RWF_NOAPPEND */
	R(syscall(SYS_pwritev2, f, ((struct iovec[]){{"x", 1}}), 1, 0, 0, 0x20));
	T(mmap(0, 4096, PROT_READ, MAP_PRIVATE, f, 0) != MAP_FAILED);
	R(mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0) == MAP_FAILED);
	R(truncate("f", 1));
	R(chmod("f", 0600));
	R(fchmod(f, 0600));
	R(chown("f", 0, 0));
	R(chown("f", -1, -1));
	R(utimensat(AT_FDCWD, "f", 0, 0));
	R(utimensat(AT_FDCWD, "f", (struct timespec[2]){{1, 0}, {2, 0}}, 0));
	R(utimensat(AT_FDCWD, "f", (struct timespec[2]){{0, UTIME_NOW}, {0, UTIME_NOW}}, 0));
	R(utimensat(AT_FDCWD, "f", (struct timespec[2]){{0, UTIME_NOW}, {0, UTIME_OMIT}}, 0));
	R(setxattr("f", "trusted.a", "b", 1, 0));
	R(removexattr("f", "trusted.a"));
	R(link("f", "g"));
	R(link("l", "m"));
	R(unlink("f"));
	R(rename("f", "g"));
	t_write("h", "");
	R(rename("h", "f"));
	R(rename("d", "e"));
	R(rmdir("d"));
	R(open("d/new", O_WRONLY | O_CREAT, 0600));
	R(mkdir("d/new2", 0700));
	R(symlink("x", "d/new3"));
	R(link("h", "d/new4"));
	R(rename("h", "d/new5"));
	R(unlink("d/in"));
	R(rmdir("d/sub"));
	R(rename("d/in", "out"));
	OK(open("d", O_WRONLY | O_TMPFILE, 0600));
	R(chmod("d", 0700));
	OK(open("d/in", O_RDWR));
	R(read(f, b, 1));
	must(set(f, 0));
	must(set(d, 0));
	close(f);
	close(d);
	clean();
}
static void marks(void)
{
	struct stat s, t;
	say("-- marks\n");
	must(mkdir("d", 0755));
	int d = must(open("d", O_RDONLY));
	R(set(d, FS_NODUMP_FL | FS_NOATIME_FL | FS_APPEND_FL));
	int f = must(open("d/f", O_RDWR | O_CREAT, 0600));
	R(get(f));
	must(mkdir("d/e", 0700));
	int e = must(open("d/e", O_RDONLY));
	R(get(e));
	R(set(e, 0));
	must(write(f, "abc", 3));
	must(utimensat(AT_FDCWD, "d/f", (struct timespec[2]){{1, 0}, {2, 0}}, 0));
	char c;
	must(pread(f, &c, 1, 0));
	must(fstat(f, &s));
	N(s.st_atime);
	usleep(20000);
	R(set(f, FS_NODUMP_FL));
	must(fstat(f, &t));
	T(t.st_ctim.tv_sec != s.st_ctim.tv_sec || t.st_ctim.tv_nsec != s.st_ctim.tv_nsec);
	must(pread(f, &c, 1, 0));
	must(fstat(f, &s));
	T(s.st_atime > 2);
	must(set(d, 0));
	close(d), close(e), close(f);
	clean();
}
static void rights(void)
{
	say("-- rights\n");
	int f = must(open("f", O_RDWR | O_CREAT, 0666)), o = must(open("o", O_RDONLY | O_CREAT, 0666));
	must(fchmod(f, 0666));
	must(fchown(o, 12345, 12345));
	must(set(o, FS_APPEND_FL));
	pid_t p = must(fork());
	if (!p) {
		must(setresuid(12345, 12345, 12345));
		R(get(f));
		R(set(f, FS_NODUMP_FL));
		R(set(f, 0));
		R(set(o, FS_APPEND_FL | FS_NODUMP_FL));
		R(set(o, 0));
		R(set(o, FS_APPEND_FL | FS_IMMUTABLE_FL));
		R(set(o, FS_APPEND_FL | 1));
		R(xset(o, 8));
		R(xset(o, 0x90));
		R(get(o));
		_exit(0);
	}
	t_reap("another user", p);
	must(set(o, 0));
	int path = must(open("f", O_PATH));
	R(get(path));
	R(set(path, 0));
	int q[2];
	must(pipe(q));
	R(get(q[0]));
	R(set(q[0], 0));
	R(xset(q[0], 0));
	R(xset(q[0], 4));
	must(mkfifo("o2", 0600));
	R(get(must(open("o2", O_RDWR))));
	R(get(must(socket(AF_UNIX, SOCK_STREAM, 0))));
	R(get(must(open("/dev/null", O_RDWR))));
	R(get(must(open("/proc/self/stat", O_RDONLY))));
	clean();
}
int main(void)
{
	char dir[] = "/dev/shm/flagsXXXXXX";
	if (geteuid())
		return t_done();
	must(mkdtemp(dir) ? 0 : -1);
	must(chdir(dir));
	umask(022);
	int f = must(open("words", O_RDWR | O_CREAT, 0600));
	words("a file", f);
	must(set(f, 0));
	close(f);
	must(mkdir("dir", 0700));
	f = must(open("dir", O_RDONLY));
	words("a directory", f);
	must(set(f, 0));
	close(f);
	forbids(FS_IMMUTABLE_FL);
	forbids(FS_APPEND_FL);
	marks();
	rights();
	must(unlink("words"));
	must(rmdir("dir"));
	must(chdir("/"));
	must(rmdir(dir));
	return t_done();
}
