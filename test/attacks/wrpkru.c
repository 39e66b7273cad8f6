/* WRPKRU in the program's own code opens every key; then a load from the kernel's memory. */
/* none: succeeded */
/* no keys: SIGILL */
/* pkey: SIGILL */
/* process: SIGILL */
#include "attack.h"

static int attack(void)
{
	asm volatile("xor %%eax, %%eax; xor %%ecx, %%ecx; xor %%edx, %%edx; .byte 0x0f, 0x01, 0xef" ::: "eax", "ecx", "edx", "memory");
	return *(volatile uint64_t *)CONTROL ? 0 : REFUSED;
}
