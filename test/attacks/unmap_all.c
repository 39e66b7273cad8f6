/* Everything unmapped that can be: the program ends by its own fault. */
/* none: SIGSEGV */
/* pkey: SIGSEGV */
/* process: SIGSEGV */
#include "attack.h"

static int attack(void)
{
	munmap(0, 0x7ffffffff000);
	munmap((void *)0x10000, KERNEL - 0x10000);
	munmap((void *)KERNEL_END, 0x7e0000000000 - KERNEL_END);
	return 0;
}
