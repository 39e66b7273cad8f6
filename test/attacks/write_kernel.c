/* A store into the kernel's memory. */
/* none: succeeded */
/* pkey: SIGSEGV */
/* process: SIGSEGV */
#include "attack.h"

static int attack(void)
{
	volatile uint64_t *word = (void *)UNUSED;
	*word = 0x1234;
	return *word == 0x1234 ? 0 : REFUSED;
}
