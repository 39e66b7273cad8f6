/* int1 is a trap with a signal code of its own. */
/* not: i386 */
#include "t.h"
#include <setjmp.h>
#include <ucontext.h>

static sigjmp_buf back;

static void handler(int signal, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	say("signal %d code %d at the program counter %d trap %lld\n", signal, info->si_code,
	    info->si_addr == (void *)at->uc_mcontext.gregs[REG_RIP], (long long)at->uc_mcontext.gregs[REG_TRAPNO]);
	/* Whether it is behind the instruction is the processor's matter, and that of what emulates it. */
	siglongjmp(back, 1);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	must(sigaction(SIGTRAP, &action, 0));
	must(sigaction(SIGILL, &action, 0));
	for (volatile int i = 0; i < 2; i++)
		if (!sigsetjmp(back, 1))
			asm volatile(".byte 0xf1" ::: "memory");
	return t_done();
}
