/* Loads from all of the kernel's memory: text, control words, stacks, heap, its page below 4 GiB. The selectors can be read, and show
 * nothing. */
/* none: succeeded */
/* pkey: SIGSEGV */
/* process: SIGSEGV */
#include "attack.h"

static int load(void *at)
{
	return *(volatile uint64_t *)at ? 0 : REFUSED;
}

static int attack(void)
{
	uintptr_t places[] = { place("ATTACK_WRPKRU", 0) & ~7ul, place("ATTACK_SYSCALL", 0) & ~7ul, UNUSED, STACKS + 65536 - 640, HEAP, 0x10000 };
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
		if (try_apart(load, (void *)places[i]) != -SIGSEGV)
			return 0;
	return load((void *)CONTROL);
}
