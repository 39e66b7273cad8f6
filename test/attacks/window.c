/* A call as the very first instruction of a thread, of a forked and of a vforked child: the host starts each with dispatch switched off, and
 * must not be the one that makes it. getppid of the host's would be the supervisor, a number the program has never seen. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static volatile long got;
static char stack[65536] __attribute__((aligned(16)));

/* clone(2) whose child makes the call right behind its return and ends: `flags` without a stack is a copy of the caller's. */
static long child(long flags, void *sp)
{
	long made;
	register long r10 asm("r10") = 0, r8 asm("r8") = 0;
	asm volatile("syscall; test %%rax, %%rax; jnz 1f; mov $110, %%eax; syscall; mov %%rax, got(%%rip); mov %%eax, %%edi; mov $60, %%eax; syscall; 1:"
		     : "=a"(made) : "a"(SYS_clone), "D"(flags), "S"(sp), "d"(0), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return made;
}

static int attack(void)
{
	pid_t own = getpid(), parent = getppid();
	int status;
	for (int i = 0; i < part(200); i++) {
		/* A thread: the parent is the process'. */
		got = -1;
		if (child(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, stack + sizeof stack) <= 0)
			return ENODATA;
		while (got == -1)
			sched_yield();
		if (got != parent)
			return 0;
		/* A vforked child: the parent is the caller. */
		got = -1;
		pid_t pid = child(CLONE_VM | CLONE_VFORK | SIGCHLD, stack + sizeof stack);
		if (waitpid(pid, &status, 0) != pid || got != own)
			return 0;
		/* A forked one reports it by its exit code. */
		pid = child(SIGCHLD, 0);
		if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != (own & 0xff))
			return 0;
	}
	return REFUSED;
}
