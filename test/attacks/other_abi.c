/* int 0x80, x32 numbers and 32-bit code: no call may reach the host. getppid would name the supervisor. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static int by_int80(void *arg)
{
	long got;
	asm volatile("int $0x80" : "=a"(got) : "a"(64) : "memory", "r8", "r9", "r10", "r11");
	return (int)got > 0 && (int)got != getppid() ? 0 : REFUSED;
}

static int by_x32(void *arg)
{
	long got = syscall(0x40000000 | SYS_getppid);
	return got > 0 && got != getppid() ? 0 : REFUSED;
}

static int by_far_jump(void *arg)
{
	/* mov $64,%eax; int $0x80; ljmp *(%ebx), in 32-bit code below 4 GiB. */
	static const unsigned char code[] = { 0xb8, 64, 0, 0, 0, 0xcd, 0x80, 0xff, 0x2b };
	char *low = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		return REFUSED;
	memcpy(low, code, sizeof code);
	struct { uint32_t to; uint16_t segment; } __attribute__((packed)) *there = (void *)(low + 4096), *back = (void *)(low + 4160);
	char *home = low + 256;
	/* ret, in 64-bit code. */
	*home = 0xc3;
	*there = (typeof(*there)){ (uintptr_t)low, 0x23 };
	*back = (typeof(*back)){ (uintptr_t)home, 0x33 };
	long got;
	pid_t parent = getppid();
	asm volatile("lea 1f(%%rip), %%rcx; push %%rcx; mov %2, %%rbx; ljmp *(%1); 1:"
		     : "=a"(got) : "r"(there), "r"(back) : "rbx", "rcx", "r8", "r9", "r10", "r11", "memory");
	return (int)got > 0 && (int)got != parent ? 0 : REFUSED;
}

static int attack(void)
{
	int (*ways[])(void *) = { by_int80, by_x32, by_far_jump };
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
		if (try_apart(ways[i], 0) == 0)
			return 0;
	return REFUSED;
}
