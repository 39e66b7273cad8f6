/* The selector bytes set to "allow": the host would run the program's calls itself. Without a jail the store works, and it is
 * the second wall that ends it: a call that does not come from kernel text. */
/* none: stopped */
/* pkey: SIGSEGV */
/* process: SIGSEGV */
#include "attack.h"

static int attack(void)
{
	volatile char *selectors = (void *)SELECTORS;
	for (int i = 0; i < 64 * 128; i++)
		selectors[i] = 0;
	return syscall(SYS_getppid) > 0 ? 0 : REFUSED;
}
