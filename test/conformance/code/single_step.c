/* A program steps itself (the trap flag) through calls it has made often and functions it calls for the first time: each step leads on. */
#include "t.h"
/* not: i386 */
#include <dlfcn.h>
static volatile long steps;
static void stepped(int signal, siginfo_t *info, void *context)
{
	if (++steps > 100000) {
		printf("no end\n");
		fflush(stdout);
		_exit(1);
	}
	if (info->si_code != TRAP_TRACE)
		printf("code %d\n", info->si_code);
}
#define STEP(on) asm volatile("sub $128, %%rsp; pushf; andl $~0x100, (%%rsp); orl %0, (%%rsp); popf; add $128, %%rsp" :: "i"((on) << 8) : "memory", "cc")
int main(void)
{
	struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO};
	OK(sigaction(SIGTRAP, &action, 0));
	for (int n = 0; n < 20; n++) {
		getppid();
		usleep(1);
		sched_yield();
	}
	STEP(1);
	long parent = getppid();
	for (int n = 0; n < 5; n++)
		sched_yield();
	STEP(0);
	T(parent == getppid());
	T(steps > 10);
	steps = 0;
	STEP(1);
	long lazy = labs(-5) + atoi("17") + ffs(8);
	STEP(0);
	N(lazy);
	T(steps > 5);
	return t_done();
}
