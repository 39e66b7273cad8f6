/* openat, creat, O_TMPFILE, O_EXCL, O_CLOEXEC, mode and umask, descriptors chosen, /dev/fd. */
#include "t.h"
int main(void)
{
	struct stat s;
	umask(027);
	int f = must(open("a", O_CREAT | O_RDWR, 0777));
	fstat(f, &s);
	say("mode %o\n", s.st_mode & 07777);
	f = must(open("b", O_CREAT | O_WRONLY, 0400)); /* the mode binds later opens, not this one */
	R(write(f, "x", 1));
	R(creat("c", 0600));
	R(open("c", O_CREAT | O_EXCL | O_RDWR, 0600));
	must(symlink("nowhere", "l"));
	R(open("l", O_CREAT | O_EXCL | O_RDWR, 0600));
	R(openat(AT_FDCWD, "", O_RDONLY));
	R(openat(99, "a", O_RDONLY));
	R(openat(f, "a", O_RDONLY));
	must(mkdir("d", 0755));
	int d = must(open("d", O_RDONLY | O_DIRECTORY));
	OK(openat(d, "inner", O_CREAT | O_WRONLY, 0644));
	R(access("d/inner", F_OK));
	char cwd[4096], p[5000];
	must(getcwd(cwd, sizeof cwd) ? 0 : -1);
	snprintf(p, sizeof p, "%s/a", cwd);
	OK(openat(99, p, O_RDONLY)); /* an absolute path needs no directory */
	R(openat(d, "../a", O_RDONLY) >= 0);
	R(open((char *)8, O_RDONLY));
	R(open("a", O_RDONLY | O_CLOEXEC) >= 0 && fcntl(f, F_GETFD) == 0);
	for (int i = 3; i < 40; i++)
		close(i);
	N(open("a", O_RDONLY));
	N(open("a", O_RDONLY));
	N(open("a", O_RDONLY));
	close(4);
	N(open("a", O_RDONLY));
	/* A file without a name. */
	f = open(".", O_TMPFILE | O_RDWR, 0600);
	T(f >= 0);
	fstat(f, &s);
	N(s.st_nlink);
	must(write(f, "nameless", 8));
	snprintf(p, sizeof p, "/proc/self/fd/%d", f);
	R(linkat(AT_FDCWD, p, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	fstat(f, &s);
	N(s.st_nlink);
	R(stat("named", &s));
	N(s.st_size);
	f = open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600);
	snprintf(p, sizeof p, "/proc/self/fd/%d", f);
	R(linkat(AT_FDCWD, p, AT_FDCWD, "named2", AT_SYMLINK_FOLLOW));
	R(open(".", O_TMPFILE | O_RDONLY, 0600));
	R(open("a", O_TMPFILE | O_RDWR, 0600));
	/* /dev/fd and /proc/self/fd open the file anew. */
	f = must(open("named", O_RDONLY));
	must(lseek(f, 4, SEEK_SET));
	snprintf(p, sizeof p, "/dev/fd/%d", f);
	int g = must(open(p, O_RDONLY));
	N(lseek(g, 0, SEEK_CUR));
	/* An unlinked file lives while it is open. */
	must(unlink("named"));
	char b[16] = "";
	must(lseek(f, 0, SEEK_SET));
	R(read(f, b, 8));
	S(b);
	R(open("named", O_RDONLY));
	/* O_PATH: a place, not a file. */
	t_write("place", "content");
	f = must(open("place", O_PATH));
	R(read(f, b, 1));
	R(write(f, b, 1));
	R(fchmod(f, 0600));
	R(ftruncate(f, 0));
	R(lseek(f, 0, SEEK_SET));
	R(fstat(f, &s));
	T(fcntl(f, F_GETFL) & O_PATH);
	R(dup(f) >= 0);
	R(fchdir(f));
	snprintf(p, sizeof p, "/proc/self/fd/%d", f);
	OK(open(p, O_RDWR));
	R(ioctl(f, FIONREAD, &g));
	R(close(99));
	R(close(-1));
	return t_done();
}
