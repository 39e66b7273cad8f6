/* stat, lstat, fstat, fstatat, statx: fields of every kind of file. */
/* not: i386 */
#include "t.h"
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#ifndef STATX_BASIC_STATS
#include <linux/stat.h>
#endif
static void show(const char *n, struct stat *s)
{
	say("%s: mode %o links %ld size %ld own %d dev same %d\n", n, s->st_mode, S_ISDIR(s->st_mode) ? -1 : (long)s->st_nlink, S_ISDIR(s->st_mode) ? -1 : (long)s->st_size, s->st_uid == getuid() && s->st_gid == getgid(), s->st_dev != 0);
}
int main(void)
{
	umask(0);
	struct stat s, q;
	must(close(must(open("empty", O_CREAT | O_WRONLY, 0604))));
	t_write("file", "12345");
	must(chmod("file", 04751));
	must(mkdir("dir", 01777)), must(symlink("target/long", "sym")), must(mkfifo("fifo", 0620)), must(link("file", "hard"));
	const char *n[] = {"empty", "file", "hard", "dir", "sym", "fifo"};
	for (int i = 0; i < 6; i++) {
		memset(&s, 0xff, sizeof s);
		R(lstat(n[i], &s));
		show(n[i], &s);
	}
	R(stat("sym", &s));
	stat("file", &s), stat("hard", &q);
	T(s.st_ino == q.st_ino && s.st_dev == q.st_dev);
	stat("empty", &q);
	T(s.st_ino != q.st_ino);
	T(s.st_blksize >= 512);
	time_t now = time(0);
	T(s.st_mtime <= now + 1 && s.st_mtime > now - 20 && s.st_atime <= now + 1 && s.st_ctime <= now + 1);
	R(fstatat(AT_FDCWD, "", &s, 0));
	R(fstatat(AT_FDCWD, "", &s, AT_EMPTY_PATH));
	T(S_ISDIR(s.st_mode));
	R(fstatat(AT_FDCWD, "sym", &s, AT_SYMLINK_NOFOLLOW));
	R(fstatat(AT_FDCWD, "file", &s, 0x8000));
	R(syscall(SYS_newfstatat, AT_FDCWD, "file", 8, 0));
	R(stat((void *)8, &s));
	R(stat("file/x", &s));
	R(stat("file/", &s));
	R(stat("dir/.", &s));
	R(stat("none/..", &s));
	R(fstat(99, &s));
	/* Growth of a directory's links by its subdirectories is up to the file system; the parent is there. */
	int p[2];
	must(pipe(p));
	R(fstat(p[0], &s));
	say("pipe mode %o\n", s.st_mode);
	must(fstat(must(open("/dev/null", O_RDONLY)), &s));
	say("null mode %o rdev %u:%u\n", s.st_mode, major(s.st_rdev), minor(s.st_rdev));
	unsigned char raw[256];
	struct statx *x = (void *)raw;
	memset(raw, 0, sizeof raw);
	R(syscall(SYS_statx, AT_FDCWD, "file", 0, STATX_BASIC_STATS | STATX_BTIME, x));
	stat("file", &s);
	T((x->stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
	T(x->stx_mode == s.st_mode && x->stx_size == 5 && x->stx_ino == s.st_ino && x->stx_nlink == 2 && x->stx_uid == s.st_uid);
	T(x->stx_mtime.tv_sec == s.st_mtim.tv_sec && x->stx_mtime.tv_nsec == s.st_mtim.tv_nsec);
	T(makedev(x->stx_dev_major, x->stx_dev_minor) == s.st_dev);
	R(syscall(SYS_statx, AT_FDCWD, "none", 0, 0, x));
	R(syscall(SYS_statx, AT_FDCWD, "file", 0x8000, 0, x));
	R(syscall(SYS_statx, AT_FDCWD, "file", 0, 0x80000000, x));
	R(syscall(SYS_statx, p[0], "", AT_EMPTY_PATH, STATX_BASIC_STATS, x));
	R(syscall(SYS_statx, AT_FDCWD, "sym", AT_SYMLINK_NOFOLLOW, STATX_TYPE, x));
	T(S_ISLNK(x->stx_mode));
	struct statfs v;
	R(statfs(".", &v));
	T(v.f_bsize >= 512 && v.f_namelen == 255 && v.f_blocks >= v.f_bfree);
	R(statfs("/proc", &v));
	say("proc type %#lx\n", (long)v.f_type);
	R(fstatfs(99, &v));
	R(statfs("none", &v));
	struct statvfs w;
	R(statvfs("/dev/shm", &w));
	return t_done();
}
