/* Jumps to each WRPKRU of the kernel's text with the stack pointer all over the kernel's stacks, where frames of the host's have
 * lain: no old frame may be believed, and no register may come back with what the kernel knows and the program does not. The word by
 * which the kernel knows a frame would make one that is forged in the kernel's own stack good. */
/* skip none: without a key there is nothing to open */
/* pkey: refused */
/* process: refused */
#include "code.h"

#define TOP 65536

static volatile uint64_t seen[16];
static volatile int faults, jumping;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	/* A handler starts with the alignment checks of what it interrupted. */
	asm volatile("pushfq; andl $~0x40000, (%%rsp); popfq" : : : "memory", "cc");
	static const int which[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8,
				    REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	for (int i = 0; jumping && i < 15; i++)
		seen[i] = ((ucontext_t *)context)->uc_mcontext.gregs[which[i]];
	faults++;
	siglongjmp(landing, 1);
}

static void jump(uintptr_t to, uintptr_t stack, uintptr_t flags)
{
	register uintptr_t rsp asm("rsi") = stack, rip asm("rdi") = to, eflags asm("rbx") = flags;
	asm volatile("push %%rbx; popfq; mov %%rsi, %%rsp; xor %%eax, %%eax; xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%ebp, %%ebp; xor %%r8d, %%r8d;"
		     "xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d; xor %%r12d, %%r12d; xor %%r13d, %%r13d; xor %%r14d, %%r14d;"
		     "xor %%r15d, %%r15d; mov %%ebx, %%ebx; jmp *%%rdi"
		     : : "r"(rsp), "r"(rip), "r"(eflags) : "memory");
}

/* Those of `seen` that the entries have no reason to change before they believe: RCX, RBP, R10, R12 to R15. They hold the 0 of the jump,
 * or, after one into the exit, what the program had at its last call. */
static const int untouched[] = {2, 6, 9, 11, 12, 13, 14};

/* Not inlined: its constants would stay in registers that a later jump finds again. */
__attribute__((noinline)) static int is_the_kernels(int which, uint64_t value)
{
	/* RCX may be the address of the thread's selector, which is no secret. */
	return value > 0x7fffffffffff || (which != 2 && value >= KERNEL && value < KERNEL_END);
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
	/* Plain, and with alignment checks, which fault where the stack pointer is odd. */
	static const uintptr_t flags[] = {0x202, 0x40202};
	alarm(patience(60));
	for (volatile int n = 0; place("ATTACK_WRPKRU", n); n++)
		for (volatile int slot = 0; slot < 8; slot++)
			for (volatile uintptr_t at = TOP; at > TOP - 16384; at -= 8 * (16384 / 8 / part(16384 / 8)))
				for (volatile int odd = 0; odd < (at % 64 ? 1 : 2); odd++) {
					/* Kept out of registers, as the jump changes them all. */
					if (sigsetjmp(landing, 1)) {
						jumping = 0;
						for (int i = 0; i < 7; i++)
							if (is_the_kernels(untouched[i], seen[untouched[i]]))
								return 0;
						continue;
					}
					jumping = 1;
					jump(place("ATTACK_WRPKRU", n), STACKS + TOP * slot + at - odd * 3, flags[odd]);
				}
	return faults > 1000 ? REFUSED : ENODATA;
}
