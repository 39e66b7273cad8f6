/* WRPKRU written into memory that is writable and executable, after harmless code has run there. */
/* none: succeeded */
/* no keys: SIGILL */
/* pkey: SIGSEGV */
/* process: SIGILL | succeeded */
#include "code.h"

static int attack(void)
{
	unsigned char *p = memory(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	*p = 0xc3;
	((code *)p)();
	memcpy(p + 64, OPEN, sizeof OPEN);
	((code *)(p + 64))();
	return loot();
}
