/* A jump to each SYSCALL in the kernel's text: the host must not run the call. getppid gives the attack away: the host's
 * result is the supervisor, a number the program has never seen. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static char stack[1 << 16] __attribute__((aligned(16)));
static pid_t parent;

static void came_back(void)
{
	long got;
	asm volatile("" : "=a"(got));
	_exit(got > 0 && got != parent ? 0 : 255);
}

static int jump(void *to)
{
	void **top = (void **)(stack + sizeof stack / 2);
	parent = getppid();
	for (int i = -512; i < 512; i++)
		top[i] = came_back;
	asm volatile("mov %1, %%rsp; mov %0, %%r15; mov $110, %%eax; xor %%edi, %%edi; jmp *%%r15" :: "r"(to), "r"(top) : "memory", "rax", "rdi");
	return REFUSED;
}

static int attack(void)
{
	for (int i = 0; i < part(200) && place("ATTACK_SYSCALL", i); i++)
		if (try_apart(jump, (void *)place("ATTACK_SYSCALL", i)) == 0)
			return 0;
	return place("ATTACK_SYSCALL", 0) ? REFUSED : ENODATA;
}
