/* A load from the kernel's memory. */
/* none: succeeded */
/* pkey: SIGSEGV */
#include "attack.h"

static int attack(void)
{
	volatile uint64_t *word = (void *)CONTROL;
	return *word ? 0 : REFUSED;
}
