/* setxattrat and its variants (Linux 6.13): by directory, by descriptor, by link. */
/* linux: 6.13 */
#include "t.h"
struct args {
	uint64_t value;
	uint32_t size, flags;
};
static char b[4200];
#define SET(d, p, f, n, v, s, fl) syscall(463, d, p, f, n, &(struct args){(uintptr_t)(v), s, fl}, sizeof(struct args))
#define GET(d, p, f, n, s) syscall(464, d, p, f, n, &(struct args){(uintptr_t)b, s, 0}, sizeof(struct args))
#define LIST(d, p, f, s) syscall(465, d, p, f, b, (size_t)(s))
#define REMOVE(d, p, f, n) syscall(466, d, p, f, n)
int main(void)
{
	must(mkdir("d", 0700));
	int d = must(open("d", O_RDONLY | O_DIRECTORY)), f = must(openat(d, "f", O_RDWR | O_CREAT, 0600));
	must(symlinkat("f", d, "l"));
	R(SET(d, "f", 0, "user.a", "one", 3, 0));
	R(SET(d, "l", 0, "user.b", "four", 4, 1));
	R(SET(d, "l", 0, "user.b", "four", 4, 1));
	R(SET(d, "f", 0, "user.c", "", 0, 2));
	R(SET(d, "l", AT_SYMLINK_NOFOLLOW, "user.a", "x", 1, 0));
	R(SET(f, "", AT_EMPTY_PATH, "user.d", "by fd", 5, 0));
	R(SET(f, "", 0, "user.d", "by fd", 5, 0));
	R(SET(d, "f", 0x8000, "user.d", "x", 1, 0));
	R(SET(d, "f", 0, "user.d", "x", 1, 8));
	R(GET(d, "f", 0, "user.a", sizeof b));
	say("%.3s\n", b);
	R(GET(f, "", AT_EMPTY_PATH, "user.d", sizeof b));
	R(GET(f, 0, AT_EMPTY_PATH, "user.d", sizeof b));
	say("%.5s\n", b);
	R(GET(AT_FDCWD, "d/l", 0, "user.b", 0));
	R(GET(d, "f", 0, "user.b", 2));
	R(GET(d, "f", 0, "user.none", 2));
	R(GET(99, "f", 0, "user.b", 2));
	R(LIST(d, "f", 0, sizeof b));
	R(LIST(f, "", AT_EMPTY_PATH, 0));
	R(LIST(d, "l", AT_SYMLINK_NOFOLLOW, sizeof b));
	R(REMOVE(d, "f", 0, "user.a"));
	R(REMOVE(d, "f", 0, "user.a"));
	R(REMOVE(f, "", AT_EMPTY_PATH, "user.d"));
	R(LIST(d, "f", 0, 0));
	/* The structure's size. */
	struct { struct args a; char more[4200]; } big = {{(uintptr_t)b, sizeof b, 0}, {0}};
	R(syscall(464, d, "f", 0, "user.b", &big, 15));
	R(syscall(464, d, "f", 0, "user.b", &big, 24));
	R(syscall(464, d, "f", 0, "user.b", &big, 4097));
	big.more[0] = 1;
	R(syscall(464, d, "f", 0, "user.b", &big, 24));
	big.a.flags = 1;
	R(syscall(464, d, "f", 0, "user.b", &big, 16));
	R(syscall(464, d, "f", 0, "user.b", 8, 16));
	int o = must(openat(d, "f", O_PATH));
	R(LIST(o, "", AT_EMPTY_PATH, 0));
	must(unlinkat(d, "f", 0)), must(unlinkat(d, "l", 0)), must(rmdir("d"));
	return t_done();
}
