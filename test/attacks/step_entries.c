/* A jump to each byte of the entries and exits, stopped there by a single step before it runs, or by kicks while it runs. A kernel that took
 * it for an entry of its own would go on with the user's registers and host calls allowed. sigaltstack(2) gives it away: the host's result
 * is not the one the program knows. So do a function and a signal frame of the program's that are come to with the selector on "allow". */
/* none: refused */
/* pkey: refused */
/* process: SIGSEGV */
#include "attack.h"
#include <setjmp.h>

/* Bytes of a selector line. */
enum { TF = 0x100, SETS = 4, LINE = 128 };

static struct { uint64_t rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15, rsp, flags, to; } set
	__attribute__((used));
static uint64_t scratch[2048] __attribute__((aligned(64))), area[2048] __attribute__((aligned(64))), table[512];
static stack_t own, told;
static volatile unsigned char *line;
static jmp_buf back;
/* The loop's state, in memory: who starts over does so here. */
static volatile int number, won;
static volatile uintptr_t at;

/* Come to without a signal between, which would have the kernel set the selector again. */
static void come(void)
{
	won |= *line == 0;
	_longjmp(back, 1);
}

static void land(int signal)
{
	/* Not AC and DF. */
	asm volatile("pushfq; andl $~0x40400, (%%rsp); popfq" ::: "memory", "cc");
	_longjmp(back, 1);
}

static void go_on(int signal)
{
}

static void jump(void)
{
	asm volatile("mov 0+%0, %%rax; mov 8+%0, %%rdi; mov 16+%0, %%rsi; mov 24+%0, %%rdx; mov 32+%0, %%rcx; mov 40+%0, %%r8; mov 48+%0, %%r9;"
		     "mov 56+%0, %%r10; mov 64+%0, %%r11; mov 72+%0, %%rbx; mov 80+%0, %%rbp; mov 88+%0, %%r12; mov 96+%0, %%r13;"
		     "mov 104+%0, %%r14; mov 112+%0, %%r15; mov 120+%0, %%rsp; push 128+%0; popfq; jmp *136+%0" :: "m"(set) : "memory");
	__builtin_unreachable();
}

/* The registers of a try. */
static void choose(int which)
{
	for (int i = 0; i < 512; i++)
		scratch[768 + i] = (uintptr_t)come, area[1024 + i] = (uintptr_t)table, table[i] = (uintptr_t)come;
	for (uint64_t *word = &set.rax; word <= &set.r15; word++)
		*word = (uintptr_t)(area + 1024);
	set.rsp = (uintptr_t)(scratch + 1024);
	if (which == 0) {
		/* A call of the host's, by the numbers of either ABI. */
		set.rax = set.rbx = SYS_sigaltstack, set.rdi = set.rbp = 0, set.rsi = set.r12 = (uintptr_t)&told, set.rcx = (uintptr_t)come;
	} else if (which <= 2) {
		/* The host's return from a signal, with a frame of our own at the stack pointer or just above. */
		ucontext_t *frame = (ucontext_t *)(scratch + 1024 + which - 1);
		memset(frame, 0, 304);
		frame->uc_mcontext.gregs[REG_RIP] = (uintptr_t)come;
		frame->uc_mcontext.gregs[REG_RSP] = (uintptr_t)(scratch + 1024);
		frame->uc_mcontext.gregs[REG_EFL] = 0x202;
		frame->uc_mcontext.gregs[REG_CSGSFS] = 0x2bll << 48 | 0x33;
		set.rax = SYS_rt_sigreturn;
	} else {
		/* Pointers to what looks like a thread's area, and a call that it handles itself. */
		set.r11 = 3;
	}
	told = own;
	/* A step during the exit goes back to where the kernel was last left, which must not be the handler: its frames would pile up. */
	gettid();
}

/* Whether an instruction of the entries' begins at the byte. */
static char begins[1 << 16];

/* Tries each byte with each set of registers, with a step, and the instructions without one too: what is between them may be anything,
 * and far returns of user code end an emulated processor's kernel (QEMU 7.2). */
static int each(uintptr_t first, uintptr_t end)
{
	for (at = first; at < end; at++)
		for (number = 0; number < 2 * SETS; number++) {
			if (!(number & 1) && !begins[at - first])
				continue;
			if (_setjmp(back) == 0) {
				choose(number / 2);
				set.flags = 0x202 | (number & 1 ? TF : 0);
				set.to = at;
				jump();
			}
			if (won || told.ss_sp != own.ss_sp || told.ss_flags != own.ss_flags) {
				char text[96];
				snprintf(text, sizeof text, "byte %lu, try %d, %s\n", at - first, number, won ? "calls allowed" : "the host's answer");
				tell(text);
				return 0;
			}
		}
	return REFUSED;
}

/* Calls as a rewritten site makes them, stepped into every other time: they must return as ever. */
static int calls(uintptr_t entry)
{
	pid_t self = gettid();
	for (int i = 0; i < 3000; i++) {
		long got = SYS_gettid;
		asm volatile("mov %%rsp, %%r12; sub $256, %%rsp; and $-16, %%rsp; lea 1f(%%rip), %%rcx; push %[flags]; popfq; jmp *%[entry];"
			     "1: pushfq; andl $~0x100, (%%rsp); popfq; mov %%r12, %%rsp"
			     : "+a"(got) : [entry] "r"(entry), [flags] "r"(0x202l | (i & 1 ? TF : 0)) : "rcx", "r11", "r12", "memory", "cc");
		if (got != self) {
			tell("a call answered wrongly\n");
			return 0;
		}
	}
	return REFUSED;
}

static void handle(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | flags};
	sigaction(signal, &action, 0);
}

static int all(uintptr_t start, uintptr_t end, uintptr_t entry, int jailed)
{
	int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	handle(SIGTRAP, go_on, 0);
	int ended = calls(entry);
	for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++)
		handle(faults[i], land, SA_NODEFER);
	/* Without a jail the kernel's code acts on the garbage. */
	return ended == REFUSED && jailed ? each(start, end) : ended;
}

/* Whether kernel memory is open to everybody. */
static int look(void *arg)
{
	return *(volatile uint64_t *)CONTROL ? 0 : REFUSED;
}

static int attack(void)
{
	uintptr_t start = place("ATTACK_ENTRIES", 0), end = place("ATTACK_ENTRIES", 1);
	int jailed = try_apart(look, 0) != 0;
	uintptr_t entry = place("ATTACK_ENTRIES", jailed ? 3 : 2);
	if (!entry || end - start > sizeof begins)
		return ENODATA;
	for (int i = 0; place("ATTACK_INSTRUCTIONS", i); i++)
		begins[place("ATTACK_INSTRUCTIONS", i) - start] = 1;
	alarm(100);
	stack_t stack = {.ss_sp = malloc(1 << 17), .ss_size = 1 << 17};
	sigaltstack(&stack, 0);
	sigaltstack(0, &own);
	for (line = (unsigned char *)SELECTORS; !*line; line += LINE)
		if (line == (unsigned char *)SELECTORS + 32767 * LINE)
			return ENODATA;
	int ended = all(start, end, entry, jailed);
	if (ended != REFUSED)
		return ended;
	/* The same while kicks come. */
	handle(SIGUSR1, go_on, SA_RESTART);
	pid_t self = getpid(), kicker = fork();
	if (kicker == 0)
		while (kill(self, SIGUSR1) == 0)
			sched_yield();
	ended = all(start, end, entry, jailed);
	kill(kicker, SIGKILL);
	waitpid(kicker, 0, 0);
	return ended;
}
