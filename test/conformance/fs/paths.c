/* Path walking: loops, long names, dots, trailing slashes, chdir, fchdir, chroot, working directory. */
#include "t.h"
int main(void)
{
	char n[5000], cwd[4096], b[4096];
	struct stat s;
	must(symlink("b", "a")), must(symlink("a", "b"));
	R(open("a", O_RDONLY));
	R(stat("a/x", &s));
	R(lstat("a", &s));
	t_write("end", "x");
	must(symlink("end", "l0"));
	for (int i = 1; i < 50; i++) {
		char x[16], y[16];
		snprintf(x, 16, "l%d", i - 1), snprintf(y, 16, "l%d", i);
		must(symlink(x, y));
	}
	R(stat("l39", &s));
	R(stat("l40", &s));
	memset(n, 'x', sizeof n);
	n[255] = 0;
	OK(open(n, O_CREAT | O_RDWR, 0600));
	n[255] = 'x', n[256] = 0;
	R(open(n, O_CREAT | O_RDWR, 0600));
	R(stat(n, &s));
	for (int i = 0; i < 4999; i++)
		n[i] = i & 1 ? '/' : '.';
	n[4094] = 0;
	R(stat(n, &s));
	n[4094] = '.', n[4095] = 0;
	R(stat(n, &s));
	n[4095] = '/', n[4096] = 0;
	R(stat(n, &s));
	must(mkdir("d", 0755)), must(mkdir("d/e", 0755)), t_write("d/f", "f");
	R(stat("d/./e/../f", &s));
	R(stat("d//e///..//f", &s));
	R(stat("d/f/..", &s));
	R(stat("d/f/.", &s));
	R(stat("d/none/../f", &s));
	R(stat("/../../..", &s));
	T(stat("/..", &s) == 0 && S_ISDIR(s.st_mode));
	must(getcwd(cwd, sizeof cwd) ? 0 : -1);
	R(chdir("d/e"));
	T(getcwd(b, sizeof b) && !strncmp(b, cwd, strlen(cwd)) && !strcmp(b + strlen(cwd), "/d/e"));
	R(syscall(SYS_getcwd, b, 3));
	R(syscall(SYS_getcwd, (void *)8, 4096));
	R(chdir("../f"));
	R(chdir("none"));
	R(chdir(""));
	int d = must(open("..", O_RDONLY));
	R(fchdir(d));
	R(stat("f", &s));
	int f = must(open("f", O_RDONLY));
	R(fchdir(f));
	R(fchdir(99));
	must(chdir(cwd));
	must(symlink("d/e", "le"));
	R(chdir("le"));
	T(getcwd(b, sizeof b) && !strcmp(b + strlen(cwd), "/d/e"));
	R(stat("../f", &s)); /* .. of where it is, not of where the link was */
	must(chdir(cwd));
	must(symlink(cwd, "absolute"));
	R(stat("absolute/absolute/d/f", &s));
	S(realpath("absolute/le/../f", b) ? b + strlen(cwd) : t_errno(errno));
	if (getuid() == 0)
		CHILD("chroot", {
			must(chroot("d"));
			R(stat("/f", &s));
			must(chdir("/"));
			R(stat("../../f", &s));
			S(getcwd(b, sizeof b));
			R(stat("/etc", &s));
		});
	CHILD("deep", {
		for (int i = 0; i < 300; i++)
			must(mkdir("a-directory-name", 0755)), must(chdir("a-directory-name"));
		R(syscall(SYS_getcwd, b, 4096) > 0);
		t_write("bottom", "");
		for (int i = 0; i < 300; i++)
			must(chdir(".."));
		T(stat("d/f", &s) == 0);
	});
	return t_done();
}
