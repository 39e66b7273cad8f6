/* Jumps to many places of the kernel's text with garbage in the registers: the program's own end and nobody else's. */
/* skip none: without a jail the kernel's code acts on the garbage */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static int jump(void *to)
{
	static char stack[1 << 16];
	asm volatile("mov %1, %%rsp; mov %0, %%r15; xor %%eax, %%eax; mov $-1, %%rdi; mov %1, %%rsi; mov $16, %%edx; jmp *%%r15"
		     :: "r"(to), "r"(stack + sizeof stack / 2) : "memory", "rax", "rdi");
	return 0;
}

/* Whether code from here soon comes to a far return. On an emulated machine that cannot do one such places are listed: each as bytes from
   the one before, the first from so far below the audited code. */
static int far_return(uintptr_t first, uintptr_t to)
{
	static uintptr_t list[1 << 15];
	static int count = -1;
	if (count < 0) {
		char *at = getenv("ATTACK_FAR");
		uintptr_t last = first - (2 << 20) - 4096;
		for (count = 0; at && *at && count < 1 << 15; at += *at == ',')
			last = list[count++] = last + strtoul(at, &at, 16);
	}
	for (int i = 0; i < count; i++)
		if (list[i] == to)
			return 1;
	return 0;
}

static int attack(void)
{
	uintptr_t first = place("ATTACK_WRPKRU", 0);
	srandom(day() + 7);
	if (!first)
		return ENODATA;
	for (int i = 0; i < 64; i++) {
		/* Round the audited code first, then anywhere in two megabytes below it. */
		uintptr_t to = i < 32 ? first - 256 + 16 * i : first - random() % (2 << 20);
		while (far_return(first, to))
			to++;
		if (try_apart(jump, (void *)to) == 0)
			return 0;
	}
	return REFUSED;
}
