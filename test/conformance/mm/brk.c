/* brk: grows, shrinks, is zeroed anew, refuses what it cannot have. */
/* also: glibc-static i386-static */
#include "t.h"
static long kbrk(long a) { return syscall(SYS_brk, a); }
int main(void)
{
	long start = kbrk(0);
	T(start > 0 && kbrk(0) == start);
	T(kbrk(start + 10000) == start + 10000);
	char *p = (char *)start;
	memset(p, 7, 10000);
	T(kbrk(start + 100) == start + 100);
	T(p[99] == 7);
	T(kbrk(start + 100000) == start + 100000);
	T(p[8192 + 5000] == 0 && p[99999] == 0);
	T(kbrk(8) == start + 100000);
	T(kbrk(1l << 60) == start + 100000);
	T(kbrk(-1) == start + 100000);
	CHILD("fork", {
		T(kbrk(0) == start + 100000);
		T(kbrk(start + 200000) == start + 200000);
	});
	T(kbrk(0) == start + 100000);
	CHILD("limit", {
		struct rlimit l = {1 << 20, 1 << 20};
		setrlimit(RLIMIT_DATA, &l);
		T(kbrk(start + (64 << 20)) == start + 100000);
	});
	/* It stops before a mapping in its way. */
	char *wall = mmap((void *)((start + (1 << 20)) & -4096), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	T(wall != MAP_FAILED);
	T(kbrk(start + (4 << 20)) == start + 100000);
	munmap(wall, 4096);
	T(kbrk(start + (4 << 20)) == start + (4 << 20));
	T(kbrk(start) == start);
	return t_done();
}
