/* What a new thread has from its maker, and not from a thread that has ended before: registers, what it has used, its name. */
/* not: i386 */
#include "t.h"
#include <asm/prctl.h>
#include <linux/futex.h>
#include <sys/prctl.h>

struct seen {
	unsigned long vector[2];
	unsigned short control;
	unsigned mxcsr;
	unsigned long fs, gs;
	char name[16];
	unsigned long mask, used, waits;
	stack_t stack;
	int tid, dirty;
};

static long raw(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = 0;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return result;
}

static unsigned long clock_of_caller(void)
{
	struct timespec t = {0};
	raw(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&t, 0, 0);
	return t.tv_sec * 1000000000ul + t.tv_nsec;
}

/* Runs on the new thread, which has its maker's thread pointer: calls only. */
static __attribute__((noreturn, used)) void child(struct seen *seen)
{
	struct rusage usage;
	raw(SYS_arch_prctl, ARCH_GET_FS, (long)&seen->fs, 0, 0);
	raw(SYS_arch_prctl, ARCH_GET_GS, (long)&seen->gs, 0, 0);
	raw(SYS_prctl, PR_GET_NAME, (long)seen->name, 0, 0);
	raw(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&seen->mask, 8);
	raw(SYS_sigaltstack, 0, (long)&seen->stack, 0, 0);
	raw(SYS_getrusage, RUSAGE_THREAD, (long)&usage, 0, 0);
	seen->used = clock_of_caller();
	if (seen->used < usage.ru_utime.tv_sec * 1000000000ul + usage.ru_utime.tv_usec * 1000ul)
		seen->used = usage.ru_utime.tv_sec * 1000000000ul + usage.ru_utime.tv_usec * 1000ul;
	seen->waits = usage.ru_nvcsw;
	if (seen->dirty) {
		static char room[65536];
		stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
		unsigned long all = 0x7ffffffe;
		unsigned short control = 0x27f;
		unsigned mxcsr = 0x1f80 | 0x8040;
		struct timespec moment = {0, 1000};
		raw(SYS_prctl, PR_SET_NAME, (long)"other", 0, 0);
		raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8);
		raw(SYS_sigaltstack, (long)&stack, 0, 0, 0);
		raw(SYS_arch_prctl, ARCH_SET_GS, (long)room, 0, 0);
		raw(SYS_arch_prctl, ARCH_SET_FS, (long)room, 0, 0);
		__asm__ volatile("fldcw %0; ldmxcsr %1; pcmpeqd %%xmm15, %%xmm15" : : "m"(control), "m"(mxcsr) : "xmm15");
		for (int i = 0; i < 100; i++)
			raw(SYS_nanosleep, (long)&moment, 0, 0, 0);
		while (clock_of_caller() < 200000000ul)
			;
	}
	for (;;)
		raw(SYS_exit, 0, 0, 0, 0);
}

static const unsigned long pattern[2] = {0x0123456789abcdef, 0xfedcba9876543210};

static void make(struct seen *seen, char *stack_end)
{
	long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
	register long r10 __asm__("r10") = (long)&seen->tid;
	register long r8 __asm__("r8") = 0;
	register struct seen *r12 __asm__("r12") = seen;
	long result;
	__asm__ volatile("movdqu (%[pattern]), %%xmm15\n"
		"syscall\n"
		"test %%rax, %%rax\n"
		"jnz 1f\n"
		"movdqu %%xmm15, (%%r12)\n"
		"fnstcw 16(%%r12)\n"
		"stmxcsr 20(%%r12)\n"
		"mov %%r12, %%rdi\n"
		"call child\n"
		"1:"
		: "=a"(result)
		: "a"(SYS_clone), "D"(flags), "S"(stack_end), "d"(&seen->tid), "r"(r10), "r"(r8), "r"(r12), [pattern] "r"(pattern)
		: "rcx", "r11", "xmm15", "memory");
	must(result > 0 ? 0 : -1);
}

static void join(struct seen *seen)
{
	int tid;
	while ((tid = __atomic_load_n(&seen->tid, __ATOMIC_SEQ_CST)))
		syscall(SYS_futex, &seen->tid, FUTEX_WAIT, tid, 0);
	/* It has ended for others, and has something to do still. */
	usleep(3000);
}

static unsigned long used_by_all(void)
{
	struct timespec t;
	must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t));
	return t.tv_sec * 1000000000ul + t.tv_nsec;
}

int main(void)
{
	static char stack[65536] __attribute__((aligned(64)));
	unsigned short control = 0xf7f, control_before;
	unsigned mxcsr = 0x1f80 | 0x2000, mxcsr_before;
	unsigned long fs = 0, mask = 0;
	must(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs));
	must(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8));
	must(prctl(PR_SET_NAME, "maker"));
	static char base[64];
	for (int round = 0; round < 6; round++) {
		struct seen seen = {.dirty = round % 2 == 0};
		say("round %d\n", round);
		unsigned long gs = round < 3 ? 0 : (unsigned long)base;
		must(syscall(SYS_arch_prctl, ARCH_SET_GS, gs));
		__asm__ volatile("fnstcw %0; stmxcsr %1" : "=m"(control_before), "=m"(mxcsr_before));
		__asm__ volatile("fldcw %0; ldmxcsr %1" : : "m"(control), "m"(mxcsr));
		make(&seen, stack + sizeof stack);
		__asm__ volatile("fldcw %0; ldmxcsr %1" : : "m"(control_before), "m"(mxcsr_before));
		join(&seen);
		T(seen.vector[0] == pattern[0] && seen.vector[1] == pattern[1]);
		T(seen.control == control);
		T(seen.mxcsr == mxcsr);
		T(seen.fs == fs);
		T(seen.gs == gs);
		T(seen.mask == mask);
		S(seen.name);
		N(seen.stack.ss_flags);
		T(seen.used < 100000000);
		T(seen.waits < 50);
	}
	T(used_by_all() >= 600000000);
	return t_done();
}
