/* XRSTOR in the program's own code loads PKRU from memory; then a load from the kernel's memory. */
/* none: succeeded */
/* no keys: SIGSEGV */
/* pkey: SIGILL */
/* process: SIGSEGV */
#include "attack.h"

static char area[4096] __attribute__((aligned(64)));

static int attack(void)
{
	/* Bit 9 of the header's component word: PKRU is in the area, and is 0 there. */
	*(uint64_t *)(area + 512) = 1 << 9;
	asm volatile("xrstor64 (%0)" :: "r"(area), "a"(1 << 9), "d"(0) : "memory");
	return *(volatile uint64_t *)CONTROL ? 0 : REFUSED;
}
