/* mprotect: what is refused, what faults, code made at run time. */
#include "t.h"
#include <setjmp.h>
static sigjmp_buf j;
static void h(int s, siginfo_t *i, void *u) { (void)u, (void)s; siglongjmp(j, i->si_code + 10); }
static int rd(volatile char *p)
{
	int c = sigsetjmp(j, 1);
	if (!c)
		(void)*p;
	return c;
}
static int wr(volatile char *p)
{
	int c = sigsetjmp(j, 1);
	if (!c)
		*p = *p;
	return c;
}
static int ex(void *p)
{
	int c = sigsetjmp(j, 1);
	if (!c)
		c = ((int (*)(void))p)();
	return c;
}
static void all(const char *w, char *p) { say("%s: read %d write %d run %d\n", w, rd(p), wr(p), ex(p)); }
int main(void)
{
	t_info(SIGSEGV, h, 0);
	char *b = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* mov eax,7; ret */
	memcpy(b, "\xb8\x07\0\0\0\xc3", 6);
	all("rw", b);
	R(mprotect(b, 4096, PROT_READ | PROT_EXEC));
	all("rx", b);
	R(mprotect(b, 4096, PROT_READ));
	all("r", b);
	R(mprotect(b, 4096, PROT_NONE));
	all("none", b);
	R(mprotect(b, 4096, PROT_WRITE));
	all("w", b);
	R(mprotect(b, 4096, PROT_READ | PROT_WRITE));
	b[1] = 8;
	R(mprotect(b, 4096, PROT_READ | PROT_EXEC));
	all("changed code", b);
	R(mprotect(b + 1, 4096, PROT_READ));
	R(mprotect(b, 0, PROT_READ));
	R(mprotect(b, 4096, 0x100));
	R(mprotect((char *)0x1000, 4096, PROT_READ));
	munmap(b + 8192, 4096);
	R(mprotect(b + 4096, 3 * 4096, PROT_READ)); /* up to the hole it is done */
	all("before the hole", b + 4096);
	all("after the hole", b + 12288);
	t_write("f", "data");
	int f = must(open("f", O_RDONLY));
	char *m = mmap(0, 4096, PROT_READ, MAP_SHARED, f, 0), *p = mmap(0, 4096, PROT_READ, MAP_PRIVATE, f, 0);
	R(mprotect(m, 4096, PROT_READ | PROT_WRITE));
	R(mprotect(p, 4096, PROT_READ | PROT_WRITE));
	p[0] = 'D';
	/* Many small changes split and join. */
	for (int i = 0; i < 500; i++)
		mprotect(b + 16384 + (i % 8) * 4096, 4096, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE);
	R(mprotect(b + 16384, 32768, PROT_READ | PROT_WRITE));
	memset(b + 16384, 1, 32768);
	/* System calls see the protection. */
	int q[2];
	must(pipe(q));
	must(write(q[1], "abc", 3));
	mprotect(b + 16384, 4096, PROT_READ);
	R(read(q[0], b + 16384, 3));
	R(write(q[1], b + 16384, 1));
	mprotect(b + 16384, 4096, PROT_NONE);
	R(write(q[1], b + 16384, 1));
	R(read(q[0], b + 20480, 3));
	return t_done();
}
