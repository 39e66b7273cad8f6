/* GS and FS pointed at the kernel's memory and at nothing, LDT entries: the kernel must not believe in them. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static int one(void *arg)
{
	uintptr_t base = (uintptr_t)arg;
	pid_t own = getpid();
	asm volatile("wrgsbase %0" :: "r"(base));
	if (syscall(SYS_getpid) != own)
		return 0;
	syscall(SYS_arch_prctl, 0x1001, base);
	if (syscall(SYS_getpid) != own)
		return 0;
	unsigned short null = 0, data = 0x2b;
	asm volatile("mov %0, %%gs" :: "r"(null));
	asm volatile("mov %0, %%gs; mov %0, %%ds; mov %0, %%es" :: "r"(data));
	if (syscall(SYS_getpid) != own)
		return 0;
	/* The C library's thread pointer goes away: calls by hand from here on. */
	long got, fs = base;
	asm volatile("rdfsbase %%r12; wrfsbase %1; syscall; wrfsbase %%r12" : "=a"(got) : "r"(fs), "a"(SYS_getpid) : "rcx", "r11", "r12", "memory");
	return got == own ? REFUSED : 0;
}

static int attack(void)
{
	uintptr_t bases[] = { 0, KERNEL, CONTROL, STACKS, HEAP, 0x1234567000 };
	for (unsigned i = 0; i < sizeof bases / sizeof *bases; i++)
		if (try_apart(one, (void *)bases[i]) == 0)
			return 0;
	return getppid() > 0 ? REFUSED : 0;
}
