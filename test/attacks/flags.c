/* AC, DF, TF, NT and ID set when a call is made: alignment faults, copies backwards and single steps in the kernel. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static int one(void *arg)
{
	long flag = (long)arg, got;
	char name[400];
	signal(SIGTRAP, SIG_IGN);
	asm volatile("pushfq; pop %%r12; mov %%r12, %%r13; or %1, %%r13; push %%r13; popfq; syscall; push %%r12; popfq"
		     : "=a"(got) : "r"(flag), "a"(SYS_uname), "D"(name + 1) : "rcx", "r11", "r12", "r13", "memory", "cc");
	return got == 0 && name[1] ? REFUSED : got == -EFAULT ? REFUSED : 0;
}

static int attack(void)
{
	/* AC, DF, TF, NT, RF, ID, and all of them. */
	long flags[] = { 0x40000, 0x400, 0x100, 0x4000, 0x10000, 0x200000, 0x40500, 0x254500 };
	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
		if (try_apart(one, (void *)flags[i]) == 0)
			return 0;
	return REFUSED;
}
