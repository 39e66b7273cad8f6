/* Jumps to each WRPKRU of the kernel's text with the stack pointer in the kernel's page that 32-bit calls can name, where the entries read two words of
 * the stack once the key is open: nothing of the kernel's may come back. */
/* skip none: without a key there is nothing to open */
/* pkey: refused */
/* process: refused */
#include "code.h"

#define LOW_PAGE 0x10000ul

static volatile uint64_t where, rdx;
static volatile int faults;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	where = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	rdx = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RDX];
	faults++;
	siglongjmp(landing, 1);
}

/* As a call of getpid. */
static void jump(uintptr_t to, uintptr_t stack)
{
	register uintptr_t rsp asm("rsi") = stack, rip asm("rdi") = to;
	asm volatile("mov %%rsi, %%rsp; xor %%eax, %%eax; xor %%ecx, %%ecx; xor %%edx, %%edx; mov $39, %%r11d; jmp *%%rdi"
		     : : "r"(rsp), "r"(rip) : "memory");
}

static void *thread(void *arg)
{
	return arg;
}

static int attack(void)
{
	static char stack[65536];
	stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	sigaltstack(&alternative, 0);
	int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGTRAP, SIGFPE};
	for (unsigned i = 0; i < 5; i++)
		sigaction(signals[i], &action, 0);
	for (int i = 0; i < 200; i++) {
		pthread_t other;
		pthread_create(&other, 0, thread, 0);
		pthread_join(other, 0);
	}
	alarm(patience(60));
	for (volatile int n = 0; place("ATTACK_WRPKRU", n); n++)
		for (volatile uintptr_t at = 0; at < 4096; at += 8) {
			if (sigsetjmp(landing, 1)) {
				/* The call was made, and went on at the first word with the second one: those of a page of zeroes, where the kernel
				 * would have left small numbers. Addresses are the program's own, from its last call. */
				if (where < 1ul << 40 && (where != 0 || rdx != 0))
					return 0;
				continue;
			}
			jump(place("ATTACK_WRPKRU", n), LOW_PAGE + at + 144);
		}
	return faults > 100 ? REFUSED : ENODATA;
}
