/* AC, DF, TF, NT and ID set when rewritten calls are made: those that return at once, that wait, that take a
 * signal; and with a single step after every instruction, those of entry and exit included, while a timer ticks. The call must return as
 * ever, and no step may end in the kernel's text. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static volatile long ticks, steps, strange;

static void on_step(int signal, siginfo_t *info, void *context)
{
	uintptr_t rip = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	steps++;
	/* The program's own code, or the jump of a rewritten call: never the kernel's text. */
	strange += rip >= KERNEL && rip < KERNEL_END;
}

static void on_tick(int signal)
{
	ticks++;
}

/* A call by libc's own site, with flags set around it. */
static long with_flags(long flags, long number, long a, long b, long c)
{
	long (*volatile function)(long, ...) = syscall;
	long got;
	register long r8 asm("r8") = 0, r9 asm("r9") = 0;
	asm volatile("mov %%rsp, %%rbx; and $-16, %%rsp; pushfq; pop %%r12; mov %%r12, %%r13; or %[flags], %%r13; push %%r13; popfq;"
		     "call *%[function]; push %%r12; popfq; mov %%rbx, %%rsp"
		     : "=a"(got), "+D"(number), "+S"(a), "+d"(b), "+c"(c), "+r"(r8), "+r"(r9)
		     : [flags] "r"(flags), [function] "r"(function)
		     : "rbx", "r12", "r13", "r10", "r11", "r14", "memory", "cc");
	return got;
}

static int one(void *arg)
{
	static char names[512];
	long flags = (long)arg;
	int ends[2];
	struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO}, tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 700}, {0, 700}};
	struct timespec nap = {0, 200000};
	sigaction(SIGTRAP, &step, 0);
	sigaction(SIGALRM, &tick, 0);
	sigaction(SIGUSR1, &tick, 0);
	pipe(ends);
	pid_t self = getpid();
	setitimer(ITIMER_REAL, &often, 0);
	for (int round = 0; round < 60; round++) {
		if (with_flags(flags, SYS_getpid, 0, 0, 0) != self)
			return 0;
		if (with_flags(flags, SYS_uname, (long)names + 1, 0, 0) || !names[1])
			return 0;
		if (with_flags(flags, SYS_kill, self, SIGUSR1, 0))
			return 0;
		if (with_flags(flags, SYS_write, ends[1], (long)names + 3, 5) != 5)
			return 0;
		if (with_flags(flags, SYS_read, ends[0], (long)names + 7, 9) != 5)
			return 0;
		long got = with_flags(flags, SYS_nanosleep, (long)&nap, 0, 0);
		if (got && errno != EINTR)
			return 0;
		if (with_flags(flags, 600, 0, 0, 0) != -1 || errno != ENOSYS)
			return 0;
	}
	if (strange || ((flags & 0x100) && steps < 1000))
		return 0;
	return REFUSED;
}

static int attack(void)
{
	/* AC, DF, TF, NT, RF, ID, and several of them. DF stays out of libc's own string functions: its `syscall` has none. */
	long flags[] = {0, 0x40000, 0x400, 0x100, 0x4000, 0x10000, 0x200000, 0x40100, 0x4100, 0x254500};
	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
		int end = try_apart(one, (void *)flags[i]);
		if (end != REFUSED) {
			char text[64];
			snprintf(text, sizeof text, "flags %#lx: end %d\n", flags[i], end);
			tell(text);
			return 0;
		}
	}
	return REFUSED;
}
