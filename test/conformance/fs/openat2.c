/* openat2: its structure's checks and the RESOLVE_ flags. */
#include "t.h"
#include <linux/openat2.h>
static long o2(int d, const char *p, uint64_t flags, uint64_t mode, uint64_t res)
{
	struct open_how h = {.flags = flags, .mode = mode, .resolve = res};
	long f = syscall(SYS_openat2, d, p, &h, sizeof h);
	return f < 0 ? f : (close(f), 0);
}
int main(void)
{
	must(mkdir("d", 0755)), must(mkdir("d/e", 0755)), t_write("d/f", "x"), t_write("out", "x");
	must(symlink("f", "d/in")), must(symlink("../out", "d/up")), must(symlink("/etc/passwd", "d/abs")), must(symlink("e", "d/dl"));
	int d = must(open("d", O_PATH));
	R(o2(d, "f", O_RDONLY, 0, 0));
	R(o2(d, "in", O_RDONLY, 0, RESOLVE_NO_SYMLINKS));
	R(o2(d, "dl/../f", O_RDONLY, 0, RESOLVE_NO_SYMLINKS));
	R(o2(d, "in", O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS));
	R(o2(d, "in", O_RDONLY, 0, RESOLVE_BENEATH));
	R(o2(d, "up", O_RDONLY, 0, RESOLVE_BENEATH));
	R(o2(d, "abs", O_RDONLY, 0, RESOLVE_BENEATH));
	R(o2(d, "../out", O_RDONLY, 0, RESOLVE_BENEATH));
	R(o2(d, "e/../f", O_RDONLY, 0, RESOLVE_BENEATH));
	R(o2(d, "/etc", O_RDONLY, 0, RESOLVE_BENEATH));
	R(o2(d, "abs", O_RDONLY, 0, RESOLVE_IN_ROOT));
	R(o2(d, "up", O_RDONLY, 0, RESOLVE_IN_ROOT));
	R(o2(d, "/f", O_RDONLY, 0, RESOLVE_IN_ROOT));
	R(o2(d, "../../f", O_RDONLY, 0, RESOLVE_IN_ROOT));
	R(o2(AT_FDCWD, "/proc/self/fd/0", O_RDONLY, 0, RESOLVE_NO_MAGICLINKS));
	R(o2(AT_FDCWD, "/proc/self/exe", O_RDONLY, 0, RESOLVE_NO_MAGICLINKS));
	R(o2(AT_FDCWD, "/proc/self/stat", O_RDONLY, 0, RESOLVE_NO_XDEV));
	R(o2(d, "f", O_RDONLY, 0, RESOLVE_NO_XDEV));
	R(o2(d, "f", O_RDONLY, 0, RESOLVE_BENEATH | RESOLVE_IN_ROOT));
	R(o2(d, "f", O_RDONLY, 0, 1 << 20));
	R(o2(d, "f", O_RDONLY, 0644, 0));
	R(o2(d, "n", O_CREAT | O_RDWR, 0644, 0));
	R(o2(d, "n2", O_CREAT | O_RDWR, 010000, 0));
	R(o2(d, "f", 1ull << 40, 0, 0));
	R(o2(d, "f", O_PATH | O_RDWR, 0, 0));
	struct open_how h = {0};
	R(syscall(SYS_openat2, d, "f", &h, 8));
	R(syscall(SYS_openat2, d, "f", 8, sizeof h));
	char big[64] = {0};
	long f = syscall(SYS_openat2, d, "f", big, 64);
	T(f >= 0);
	big[60] = 1;
	R(syscall(SYS_openat2, d, "f", big, 64));
	return t_done();
}
