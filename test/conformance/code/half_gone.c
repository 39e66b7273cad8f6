/* Calls across the border of two pages, one of which is unmapped or replaced. */
/* not: i386 */
#include "t.h"
#define PAGE 4096
typedef long fn(void);
/* movabs $39, %rax; lea 0(%rsp), %rsi with a distance of four bytes; syscall; ret */
static const unsigned char whole[] = {0x48, 0xb8, 39, 0, 0, 0, 0, 0, 0, 0, 0x48, 0x8d, 0xb4, 0x24, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};
static int many(void *code, long answer, int n)
{
	int good = 0;
	for (int i = 0; i < n; i++)
		good += ((fn *)code)() == answer;
	return good;
}
/* Anonymous memory, at a place or anywhere. */
static unsigned char *memory(unsigned char *at, int pages)
{
	int fixed = at ? MAP_FIXED : 0;
	unsigned char *p = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
	must(p != MAP_FAILED ? 0 : -1);
	return p;
}
static unsigned char *called(unsigned char **code, int before)
{
	unsigned char *p = memory(0, 2);
	*code = p + PAGE - before;
	memcpy(*code, whole, sizeof whole);
	must(mprotect(p, 2 * PAGE, PROT_READ | PROT_EXEC));
	N(many(*code, getpid(), 20));
	return p;
}
int main(void)
{
	for (int before = 1; before < 19; before++) {
		unsigned char *code, *p;
		/* The first page becomes data, and stays writable whatever happens to the second. */
		p = called(&code, before);
		memory(p, 1);
		memset(p, 1, PAGE);
		must(mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE));
		memset(p, 2, PAGE);
		N(memcmp(code + before, whole + before, sizeof whole - before));
		memcpy(code, whole, sizeof whole);
		must(mprotect(p, 2 * PAGE, PROT_READ | PROT_EXEC));
		N(many(code, getpid(), 20));
		/* The second page goes, and comes again without the call. */
		for (int over = 0; over < 2; over++) {
			must(munmap(p, 2 * PAGE));
			p = called(&code, before);
			if (!over)
				must(munmap(p + PAGE, PAGE));
			memory(p + PAGE, 1);
			N(memcmp(code, whole, before));
			memcpy(p + PAGE, whole + before, sizeof whole - before);
			memset(code + 18, 0x90, 2);
			must(mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC));
			N(many(code, 39, 20));
		}
		/* All of it at once. */
		memory(p, 2);
		memcpy(code, whole, sizeof whole);
		must(mprotect(p, 2 * PAGE, PROT_READ | PROT_EXEC));
		N(many(code, getpid(), 20));
		must(munmap(p, 2 * PAGE));
	}
	return t_done();
}
