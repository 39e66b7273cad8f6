/* Extended attributes: set, get, list, remove, flags, sizes. */
#include "t.h"
#include <sys/xattr.h>
static int cmp(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }
int main(void)
{
	char b[256] = "";
	t_write("f", "x");
	must(symlink("f", "l"));
	R(getxattr("f", "user.a", b, sizeof b));
	R(setxattr("f", "user.a", "value", 5, 0));
	R(getxattr("f", "user.a", b, sizeof b));
	S(b);
	R(getxattr("f", "user.a", 0, 0));
	R(getxattr("f", "user.a", b, 2));
	R(setxattr("f", "user.a", "v", 1, XATTR_CREATE));
	R(setxattr("f", "user.b", "v", 1, XATTR_REPLACE));
	R(setxattr("f", "user.a", "other", 5, XATTR_REPLACE));
	R(setxattr("f", "user.empty", "", 0, XATTR_CREATE));
	R(getxattr("f", "user.empty", b, sizeof b));
	R(setxattr("f", "user.a", "v", 1, 3));
	R(setxattr("f", "nonsense", "v", 1, 0));
	R(setxattr("f", "strange.a", "v", 1, 0));
	R(setxattr("none", "user.a", "v", 1, 0));
	char n[300];
	memset(n, 'u', sizeof n), memcpy(n, "user.", 5), n[299] = 0;
	R(setxattr("f", n, "v", 1, 0));
	R(setxattr("f", "user.", "v", 1, 0));
	int k = R(listxattr("f", b, sizeof b));
	char *p[8];
	int c = 0;
	for (int i = 0; i < k && c < 8; i += strlen(b + i) + 1)
		p[c++] = b + i;
	qsort(p, c, sizeof *p, cmp);
	for (int i = 0; i < c; i++)
		S(p[i]);
	R(listxattr("f", 0, 0));
	R(listxattr("f", b, 3));
	R(lsetxattr("l", "user.x", "v", 1, 0));
	R(getxattr("l", "user.a", b, sizeof b));
	int f = must(open("f", O_RDWR)), o = must(open("f", O_PATH));
	R(fsetxattr(f, "user.fd", "7", 1, 0));
	R(fgetxattr(f, "user.fd", b, sizeof b));
	R(fgetxattr(o, "user.fd", b, sizeof b));
	R(removexattr("f", "user.a"));
	R(removexattr("f", "user.a"));
	R(fremovexattr(f, "user.fd"));
	must(mkdir("d", 0755));
	R(setxattr("d", "user.dir", "1", 1, 0));
	/* A sticky directory takes attributes of its owner only. */
	must(chmod("d", 01777));
	R(setxattr("d", "user.dir", "2", 1, 0));
	if (!geteuid()) {
		must(setregid(1000, 1000)), must(setreuid(1000, 1000));
		T(setxattr("d", "user.dir", "3", 1, 0) == -1 && errno == EPERM);
		T(removexattr("d", "user.dir") == -1 && errno == EPERM);
		T(getxattr("d", "user.dir", b, sizeof b) == 1);
	} else {
		T(1), T(1), T(1);
	}
	R(rename("f", "g"));
	R(getxattr("g", "user.empty", b, sizeof b));
	return t_done();
}
