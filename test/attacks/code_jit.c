/* WRPKRU in memory that is written and then made executable. */
/* none: succeeded */
/* no keys: SIGILL */
/* pkey: SIGSEGV */
/* process: SIGILL | succeeded */
#include "code.h"

static int attack(void)
{
	unsigned char *p = memory(PAGE, PROT_READ | PROT_WRITE);
	memcpy(p, OPEN, sizeof OPEN);
	if (mprotect(p, PAGE, PROT_READ | PROT_EXEC))
		return errno;
	((code *)p)();
	return loot();
}
