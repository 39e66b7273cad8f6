/* The stack pointer in the kernel's memory, at no address, at the end of the address space: then a call. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static int one(void *arg)
{
	long got;
	asm volatile("mov %%rsp, %%r12; mov %1, %%rsp; syscall; mov %%r12, %%rsp"
		     : "=a"(got) : "r"(arg), "a"(SYS_getpid) : "rcx", "r11", "r12", "memory");
	return got > 0 ? REFUSED : 0;
}

static int attack(void)
{
	uintptr_t places[] = {
		0, 8, 0xfff, KERNEL, KERNEL + 8, CONTROL, SELECTORS, STACKS, STACKS + 4096, STACKS + 65536 - 512, STACKS + 65536 * 4 - 1024,
		STACKS + 65536 * 5 - 520, HEAP, KERNEL_END, 0x7ffffffff000, 0x800000000000, 0xffff800000000000, -8ul,
	};
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
		if (try_apart(one, (void *)places[i]) == 0)
			return 0;
	/* All over the kernel stacks, one of which is the thread's own: close to its end there is no room for a frame. */
	for (unsigned stack = 0; stack < 24; stack++)
		for (unsigned above = 24; above < 65536; above = above * 3 + 8)
			if (try_apart(one, (void *)(STACKS + 65536ul * stack + above)) == 0)
				return 0;
	/* With a signal on the way as well. */
	return getppid() > 0 ? REFUSED : 0;
}
