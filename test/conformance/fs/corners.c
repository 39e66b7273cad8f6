/* Corners of files: positions in /proc, O_PATH, limits of lengths and offsets, seals, modes, times, long directories. */
/* not: i386 */
#include "t.h"
#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>
static char b[70000];
static void proc_positions(void)
{
	int d = must(open("/proc", O_RDONLY | O_DIRECTORY)), f = must(open("/proc/self/status", O_RDONLY)), t;
	OK(lseek(d, 0, SEEK_END));
	R(lseek(d, -1, SEEK_SET));
	R(lseek(d, 100, SEEK_SET));
	R(lseek(d, 5, SEEK_CUR));
	R(lseek(d, 0, SEEK_DATA));
	R(lseek(f, 0, SEEK_END));
	R(lseek(f, 10, SEEK_SET));
	R(lseek(f, 5, SEEK_CUR));
	R(lseek(f, -1, SEEK_SET));
	R(lseek(f, 0, SEEK_HOLE));
	R(pread(f, b, 4, 1));
	R(lseek(f, 0, SEEK_CUR));
	t = must(open("/proc/self/task", O_RDONLY));
	R(lseek(t, 0, SEEK_END));
	R(lseek(t, 2, SEEK_SET));
	close(t);
	t = must(open("/proc/self/fd", O_RDONLY));
	R(lseek(t, 0, SEEK_END));
	R(lseek(t, 0, SEEK_SET));
	close(t);
	t = must(open("/proc/sys/kernel/ostype", O_RDONLY));
	R(lseek(t, 0, SEEK_END));
	R(lseek(t, 2, SEEK_SET));
	OK(read(t, b, 100));
	close(t);
	t = must(open("/proc/self/cmdline", O_RDONLY));
	R(lseek(t, 0, SEEK_END));
	R(lseek(t, 1, SEEK_SET));
	close(d), close(f), close(t);
}
static void path_only(void)
{
	t_write("f", "content");
	int p = must(open("f", O_PATH));
	struct iovec v = {b, 1};
	R(pread(p, b, 1, 0));
	R(pwrite(p, b, 1, 0));
	R(pread(p, b, 1, -1));
	R(read(p, b, 1));
	R(lseek(p, 0, SEEK_SET));
	R(preadv(p, &v, 1, 0));
	R(pwritev(p, &v, 1, 0));
	R(syscall(SYS_preadv2, p, &v, 1, 0, 0, 0));
	R(fsync(p));
	R(ftruncate(p, 0));
	R(fallocate(p, 0, 0, 1));
	R(fchmod(p, 0600));
	R(fchown(p, -1, -1));
	R(fgetxattr(p, "user.x", b, 10));
	R(flistxattr(p, b, 10));
	R(sendfile(p, p, 0, 1));
	R(posix_fadvise(p, 0, 0, 0));
	R(readahead(p, 0, 1));
	R(sync_file_range(p, 0, 1, 0));
	R(flock(p, 2));
	R(accept(p, 0, 0));
	R(listen(p, 1));
	R((long)mmap(0, 4096, PROT_READ, MAP_PRIVATE, p, 0));
	R(syncfs(p));
	R(futimens(p, 0));
	close(p);
	p = must(open(".", O_PATH));
	R(syscall(SYS_getdents64, p, b, sizeof b));
	OK(fchdir(p));
	close(p);
}
static void limits(void)
{
	int e = eventfd(0, EFD_NONBLOCK), f = must(open("f", O_RDWR)), m = memfd_create("m", MFD_ALLOW_SEALING), p[2];
	uint64_t v[4] = {1, 2, 3, 4};
	off_t o = 0;
	sigset_t s;
	R(write(e, v, 16));
	R(write(e, v, 7));
	R(write(e, v, 9));
	R(read(e, v, 32));
	N(v[0]);
	v[0] = -1;
	R(write(e, v, 8));
	R(read(e, v, 7));
	R(pwrite(f, b, 2, INT64_MAX));
	R(pwrite(f, b, 2, INT64_MAX - 1));
	R(pwrite(f, b, 1, -1));
	R(pread(f, b, 2, INT64_MAX));
	R(pread(f, b, 2, INT64_MAX - 1));
	R(sendfile(m, f, &o, -1));
	o = INT64_MAX;
	R(sendfile(m, f, &o, 1));
	must(ftruncate(m, 0));
	R(read(f, b, -1));
	R(write(f, b, -1));
	struct iovec w[2] = {{b, 1}, {b, -1}};
	R(readv(f, w, 2));
	R(writev(f, w, 2));
	R(preadv(f, w, 1, -1));
	R(lseek(f, 1, SEEK_SET));
	R(lseek(f, INT64_MAX, SEEK_CUR));
	R(lseek(f, INT64_MIN, SEEK_CUR));
	R(ftruncate(f, -1));
	R(truncate("f", -1));
	R(fallocate(f, 0, -1, 1));
	R(fallocate(f, 0, 0, 0));
	R(fallocate(f, 0, INT64_MAX, 1));
	sigemptyset(&s);
	int sf = signalfd(-1, &s, 0), d = must(open(".", O_RDONLY));
	must(pipe(p));
	R(fallocate(sf, 0, 0, 1));
	R(fallocate(p[1], 0, 0, 1));
	R(fallocate(e, 0, 0, 1));
	R(fallocate(d, 0, 0, 1));
	R(ftruncate(sf, 0));
	R(fsync(sf));
	R(fsync(p[0]));
	R(fdatasync(e));
	R(lseek(e, 0, SEEK_SET));
	R(pread(e, b, 8, 0));
	R(pwrite(p[1], b, 1, 0));
	lseek(m, 0, SEEK_SET);
	must(write(m, "abc", 3));
	R(fcntl(m, F_ADD_SEALS, F_SEAL_WRITE));
	R(write(m, b, 0));
	R(write(m, b, 1));
	R(pwrite(m, b, 0, 0));
	R(ftruncate(m, 3));
	R(ftruncate(m, 2));
	R(fcntl(m, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
	R(ftruncate(m, 1));
	R(ftruncate(m, 2));
	R(fcntl(m, F_ADD_SEALS, F_SEAL_SHRINK));
	N(fcntl(m, F_GET_SEALS));
	R(fallocate(m, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1));
	close(e), close(f), close(m), close(sf), close(d), close(p[0]), close(p[1]);
}
static void show(const char *what, struct stat *st) { say("%s %o\n", what, st->st_mode); }
static void modes(void)
{
	struct stat st;
	struct sockaddr_un a = {AF_UNIX, "sock"};
	int p[2], s = must(socket(AF_UNIX, SOCK_STREAM, 0)), e = eventfd(0, 0), f;
	R(chmod("", 0600));
	R(fchmodat(AT_FDCWD, "", 0600, 0));
	R(syscall(452, AT_FDCWD, "", 0700, AT_EMPTY_PATH)); /* fchmodat2 */
	R(syscall(452, AT_FDCWD, "", 0755, 0));
	R(chown("", -1, -1));
	R(fchownat(AT_FDCWD, "", -1, -1, AT_EMPTY_PATH));
	R(access("", F_OK));
	R(truncate("", 0));
	R(link("", "x"));
	R(unlink(""));
	R(symlink("", "x"));
	umask(022);
	must(pipe(p));
	R(fchmod(p[0], 0640));
	must(fstat(p[1], &st)), show("pipe", &st);
	R(fchown(p[0], getuid(), getgid()));
	must(fstat(s, &st)), show("socket", &st);
	R(fchmod(s, 0700));
	must(fstat(s, &st)), show("socket", &st);
	must(bind(s, (void *)&a, sizeof a));
	must(stat("sock", &st)), show("name", &st);
	R(fchmod(s, 0777));
	must(stat("sock", &st)), show("name", &st);
	must(unlink("sock"));
	must(fstat(e, &st)), show("eventfd", &st);
	OK(open(".", O_RDONLY | O_DIRECT));
	OK(open(".", O_RDONLY | O_DIRECTORY | O_DIRECT));
	OK(f = open("f", 3));
	R(read(f, b, 1));
	R(write(f, b, 1));
	N(fcntl(f, F_GETFL) & O_ACCMODE);
	R(ftruncate(f, 0));
	close(f);
	R(open(".", O_RDONLY | (O_TMPFILE & ~O_DIRECTORY)));
	R(open(".", O_RDONLY | O_TMPFILE));
	OK(open("f", O_PATH | O_TRUNC | O_RDWR));
	must(stat("f", &st));
	N(st.st_size);
}
static void times(void)
{
	struct stat a, c;
	struct timespec omit[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}}, bad[2] = {{0, 1000000000}, {0, UTIME_OMIT}};
	struct timespec now[2] = {{123, UTIME_NOW}, {77, UTIME_OMIT}}, old[2] = {{1000, 0}, {2000, 0}};
	R(utimensat(AT_FDCWD, "nonesuch", omit, 0));
	R(utimensat(99, "f", omit, 0));
	R(utimensat(AT_FDCWD, "f", bad, 0));
	R(utimensat(AT_FDCWD, (char *)8, omit, 0));
	R(utimensat(AT_FDCWD, "f", omit, 0x8000));
	R(utimensat(AT_FDCWD, "f", now, 0));
	R(syscall(SYS_utimensat, AT_FDCWD, 0, omit, 0));
	R(utimensat(AT_FDCWD, "", omit, AT_EMPTY_PATH));
	/* Reading a directory or a link is an access. */
	must(mkdir("d", 0755));
	must(symlink("f", "l"));
	must(utimensat(AT_FDCWD, "d", old, 0));
	must(utimensat(AT_FDCWD, "l", old, AT_SYMLINK_NOFOLLOW));
	must(utimensat(AT_FDCWD, "f", old, 0));
	DIR *d = opendir("d");
	while (readdir(d))
		;
	closedir(d);
	must(stat("d", &a));
	T(a.st_atime > 1000 && a.st_mtime == 2000);
	must(stat("f", &c));
	must(readlink("l", b, 10));
	must(lstat("l", &a));
	T(a.st_atime > 1000 && c.st_atime == 1000);
	int f = must(open("f", O_RDWR));
	must(write(f, "x", 1));
	must(utimensat(AT_FDCWD, "f", old, 0));
	must(pread(f, b, 1, 0));
	fstat(f, &c);
	T(c.st_atime > 1000);
	close(f);
	rmdir("d"), unlink("l");
}
static void capability(void)
{
	/* What a file may do is lost when it changes. */
	struct { uint32_t magic, p0, i0, p1, i1; } cap = {0x02000000, 1, 0, 0, 0};
	int f = must(open("f", O_RDWR));
	int may = !setxattr("f", "security.capability", &cap, 20, 0);
	must(write(f, "xyz", 3));
	T(!may || (getxattr("f", "security.capability", b, 20) == -1 && errno == ENODATA));
	may = may && !setxattr("f", "security.capability", &cap, 20, 0);
	T(!may || !chown("f", 1, 1));
	T(!may || (getxattr("f", "security.capability", b, 20) == -1 && errno == ENODATA));
	may = may && !setxattr("f", "security.capability", &cap, 20, 0);
	must(ftruncate(f, 2));
	T(!may || (getxattr("f", "security.capability", b, 20) == -1 && errno == ENODATA));
	close(f);
}
static void directories(void)
{
	/* Entries across a page that is not there. */
	char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), n[32];
	munmap(m + 4096, 4096);
	must(mkdir("many", 0755));
	for (int i = 0; i < 20; i++)
		sprintf(n, "many/%d", i), t_write(n, "");
	int d = must(open("many", O_RDONLY)), count = 0, r;
	while ((r = syscall(SYS_getdents64, d, m + 4096 - 100, 8192)) > 0)
		for (int o = 0; o < r; count++)
			o += *(unsigned short *)(m + 4096 - 100 + o + 16);
	say("%d entries, then %s\n", count, r < 0 ? t_errno(errno) : "the end");
	lseek(d, 0, SEEK_SET);
	R(syscall(SYS_getdents64, d, m + 4090, 8192));
	R(syscall(SYS_getdents64, d, m, 10));
	close(d);
	for (int i = 0; i < 20; i++)
		sprintf(n, "many/%d", i), unlink(n);
	rmdir("many");
	/* A working directory whose name is too long. */
	char name[201];
	int deep = 25, top = must(open(".", O_RDONLY));
	memset(name, 'd', 200), name[200] = 0;
	for (int i = 0; i < deep; i++)
		must(mkdir(name, 0755)), must(chdir(name));
	R(syscall(SYS_getcwd, b, sizeof b));
	R(syscall(SYS_getcwd, b, 100));
	while (deep--)
		must(chdir("..")), must(rmdir(name));
	OK(syscall(SYS_getcwd, b, sizeof b));
	R(syscall(SYS_getcwd, b, 2));
	close(top);
}
int main(void)
{
	proc_positions();
	path_only();
	limits();
	modes();
	times();
	capability();
	directories();
	unlink("f");
	return t_done();
}
