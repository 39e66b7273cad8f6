/* mincore(2): which pages there are, and in which order its arguments are looked at. */
#include "../t.h"
#define PAGE 4096

int main(void)
{
	unsigned char v[16];
	char *m = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	m[0] = m[3 * PAGE] = 1;
	R(mincore(m, 4 * PAGE, v));
	say("%d %d\n", v[0] & 1, v[3] & 1);
	/* Nothing asked for is nothing looked at, wherever it is, but for what is no place at all. */
	R(syscall(SYS_mincore, 0, 0, 0));
	R(syscall(SYS_mincore, 0, 0, v));
	R(syscall(SYS_mincore, m, 0, 0));
	R(syscall(SYS_mincore, m + 1, 0, v));
	R(syscall(SYS_mincore, m + 1, PAGE, v));
	R(syscall(SYS_mincore, 0, 1, v));
	R(syscall(SYS_mincore, m, 1, 0));
	/* What can be written and not read is made present as well. */
	char *w = mmap(NULL, 4 * PAGE, PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	R(mlock(w, 2 * PAGE));
	R(mincore(w, 4 * PAGE, v));
	say("%d %d %d\n", v[0] & 1, v[1] & 1, v[2] & 1);
	must(munmap(m + 4 * PAGE, PAGE));
	R(mincore(m, 5 * PAGE, v));
	R(mincore(m, 4 * PAGE, v));
	return 0;
}
