/* Why a program cannot be run: each cause has its errno, and the caller goes on. */
#include "t.h"
static char *a[] = {"x", 0}, *e[] = {0};
static void ff(const char *n, const void *b, size_t len, int mode)
{
	int f = must(open(n, O_CREAT | O_WRONLY | O_TRUNC, 0700));
	must(write(f, b, len));
	must(fchmod(f, mode));
	close(f);
}
#define X(p) R(execve(p, a, e))
int main(void)
{
	X("missing");
	X("");
	X("missing/x");
	X("/");
	X(".");
	X("/dev/null");
	ff("plain", "hello", 5, 0755);
	X("plain");
	X("plain/x");
	ff("noexec", "#!/bin/sh\n", 10, 0644);
	X("noexec");
	ff("empty", "", 0, 0755);
	X("empty");
	ff("badint", "#!/no/such/interpreter\n", 23, 0755);
	X("badint");
	ff("blank", "#!   \n", 6, 0755);
	X("blank");
	ff("dirint", "#!/etc\n", 7, 0755);
	X("dirint");
	ff("textint", "#!plain\n", 8, 0755);
	X("textint");
	ff("loop", "#!loop\n", 7, 0755);
	X("loop");
	char name[5000];
	memset(name, 'n', sizeof name);
	name[4999] = 0;
	X(name);
	name[300] = 0;
	X(name);
	must(symlink("self", "self"));
	X("self");
	X((char *)8);
	R(execve("/bin/true", (char **)8, e));
	char *bad[] = {"x", (char *)8, 0};
	R(execve("/bin/true", bad, e));
	R(execve("/bin/true", a, bad));
	/* A file open for writing, where it is the host's or ours. */
	int f = must(open("/bin/true", O_RDONLY));
	char b[100000];
	ssize_t n = must(read(f, b, sizeof b));
	ff("mine", b, n, 0755);
	f = must(open("mine", O_WRONLY));
	X("mine");
	close(f);
	/* Too much. */
	size_t big = 200 << 10;
	char *huge = malloc(big);
	memset(huge, 'h', big);
	huge[big - 1] = 0;
	char *h[] = {"x", huge, 0};
	R(execve("/bin/true", h, e));
	huge[(128 << 10) - 2] = 0;
	CHILD("just fits", execve("/bin/true", h, e); _exit(99));
	R(syscall(SYS_execveat, AT_FDCWD, "/bin/true", a, e, 0x4));
	R(syscall(SYS_execveat, -7, "true", a, e, 0));
	R(syscall(SYS_execveat, -7, "", a, e, AT_EMPTY_PATH));
	R(syscall(SYS_execveat, AT_FDCWD, "self", a, e, AT_SYMLINK_NOFOLLOW));
	CHILD("no arguments", char *z[] = {0}; execve("/bin/true", z, e); _exit(98));
	CHILD("null arguments", execve("/bin/true", 0, 0); _exit(98));
	return t_done();
}
