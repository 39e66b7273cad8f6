/* Code that moves, grows and shrinks. */
#include "t.h"
#define PAGE 4096
typedef int fn(void);
static void emit(unsigned char *p, int value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}
static void try(int prot)
{
	unsigned char *room = mmap(0, 32 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *p = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 4; i++)
		emit(p + i * PAGE, 20 + i);
	R(mprotect(p, 4 * PAGE, prot));
	N(((fn *)p)());
	unsigned char *q = mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + 8 * PAGE);
	T(q == room + 8 * PAGE);
	N(((fn *)q)() + ((fn *)(q + 3 * PAGE))());
	q = mremap(q, 4 * PAGE, 12 * PAGE, MREMAP_MAYMOVE);
	T(q != MAP_FAILED);
	N(((fn *)(q + 2 * PAGE))());
	N(q[11 * PAGE]);
	R(mprotect(q, 12 * PAGE, PROT_READ | PROT_WRITE));
	emit(q + 11 * PAGE, 30);
	R(mprotect(q, 12 * PAGE, prot));
	N(((fn *)(q + 11 * PAGE))());
	T(mremap(q, 12 * PAGE, PAGE, 0) == q);
	N(((fn *)q)());
	/* The old place stays, empty. */
	unsigned char *s = mremap(q, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
	T(s != MAP_FAILED && s != q);
	N(((fn *)s)());
	N(*q);
	munmap(q, PAGE);
	munmap(s, PAGE);
	munmap(room, 32 * PAGE);
}
int main(void)
{
	try(PROT_READ | PROT_EXEC);
	try(PROT_READ | PROT_WRITE | PROT_EXEC);
	return t_done();
}
