/* Debug registers, set as a debugger does for watchpoints and breakpoints; calls that the tracer makes (PTRACE_SYSEMU). */
/* seconds: 120 */
/* not: i386 */
#include "trace.h"
#ifndef PTRACE_SYSEMU
#define PTRACE_SYSEMU 31
#define PTRACE_SYSEMU_SINGLESTEP 32
#endif
#define O(n) offsetof(struct user, u_debugreg[n])
static volatile long w[4];
static pid_t c;
static long get(int n)
{
	long v = 0;
	if (syscall(SYS_ptrace, PTRACE_PEEKUSER, c, O(n), &v))
		return -1;
	return v;
}
static int put(int n, unsigned long v) { return P(PTRACE_POKEUSER, c, O(n), v); }
static void all(void)
{
	say("registers: %d %d %d %d, %lx %lx, %lx %lx\n", get(0) != 0, get(1) != 0, get(2) != 0, get(3) != 0, get(4), get(5), get(6), get(7));
}
static long word(volatile void *at)
{
	long v = -1;
	syscall(SYS_ptrace, PTRACE_PEEKDATA, c, at, &v);
	return v;
}
static void go(int request, const char *how)
{
	siginfo_t si = {0};
	must(P(request, c, 0, 0));
	int st = t_wait(how, c);
	if (WIFSTOPPED(st)) {
		must(P(PTRACE_GETSIGINFO, c, 0, &si));
		say("code %d, status %lx, values %ld %ld\n", si.si_code, get(6), word(&w[0]), word(&w[1]));
	}
}
__attribute__((noinline)) static void f(int i)
{
	w[0] = i;
	getppid();
	w[1] = i * 2;
	__asm__ volatile("" ::: "memory");
}
static void handler(int s)
{
	(void)s;
	w[0] = 100;
}
static void child(void)
{
	int q[2];
	t_handle(SIGUSR1, handler, 0);
	must(pipe(q));
	must(P(PTRACE_TRACEME, 0, 0, 0));
	raise(SIGSTOP);
	for (int i = 1; i < 9; i++)
		f(i);
	raise(SIGUSR1);
	/* What the kernel writes is not watched. */
	long v = 55;
	must(write(q[1], &v, sizeof v));
	must(read(q[0], (void *)&w[0], sizeof v));
	f(60);
	_exit(3);
}
static void watch(void)
{
	c = must(fork());
	if (!c)
		child();
	t_wait("child", c);
	all();
	R(put(4, 1));
	R(put(5, 0));
	R(put(0, 1ul << 63));
	R(put(0, 1ul << 47));
	R(put(0, (long)&w[0] + 1));
	R(put(7, 0x1 | 0xdul << 16));
	R(put(7, 0x1 | 0x2ul << 16));
	R(put(7, 0x1 | 0x4ul << 16));
	R(put(0, (long)&w[0]));
	R(put(7, 0x1 | 0xdul << 16));
	R(put(0, (long)&w[0] + 2));
	R(put(7, 0x1 | 0x9ul << 16));
	all();
	go(PTRACE_CONT, "watched");
	R(put(6, 0));
	go(PTRACE_CONT, "watched again");
	R(put(1, (long)&w[1]));
	R(put(7, 0x5 | 0x99ul << 16));
	all();
	go(PTRACE_CONT, "the second");
	go(PTRACE_CONT, "the first");
	go(PTRACE_SINGLESTEP, "a step");
	all();
	R(put(7, 0));
	R(put(0, (long)f));
	R(put(1, 0));
	R(put(7, 1));
	go(PTRACE_CONT, "a breakpoint");
	go(PTRACE_CONT, "and again");
	R(put(7, 0x400));
	all();
	R(put(0, (long)&w[0]));
	R(put(7, 0x1 | 0x9ul << 16));
	for (int i = 5; i < 8; i++)
		go(PTRACE_CONT, "on");
	go(PTRACE_CONT, "the last");
	go(PTRACE_CONT, "the signal");
	must(P(PTRACE_CONT, c, 0, SIGUSR1));
	t_wait("in the handler", c);
	say("values %ld\n", word(&w[0]));
	go(PTRACE_CONT, "behind the call");
	R(put(7, 0));
	go(PTRACE_CONT, "to the end");
}
static void emulate(void)
{
	struct user_regs_struct r;
	c = must(fork());
	if (!c) {
		must(P(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		/* The tracer sets the results. */
		long a = syscall(777, 1, 2, 3);
		long b = syscall(SYS_getppid);
		long d = syscall(SYS_getppid);
		_exit(a == 1234 && b == 5678 && d == getppid() ? 7 : 8);
	}
	t_wait("child", c);
	must(P(PTRACE_SETOPTIONS, c, 0, PTRACE_O_TRACESYSGOOD));
	const long answers[] = {1234, 5678};
	for (int i = 0; i < 2;) {
		must(P(PTRACE_SYSEMU, c, 0, 0));
		t_wait("emulated", c);
		must(P(PTRACE_GETREGS, c, 0, &r));
		say("result so far %ld\n", (long)r.rax);
		if ((long)r.orig_rax == 777 || (long)r.orig_rax == SYS_getppid) {
			say("call %ld: %ld\n", (long)r.orig_rax, answers[i]);
			r.rax = answers[i++];
			must(P(PTRACE_SETREGS, c, 0, &r));
		}
	}
	must(P(PTRACE_SYSEMU_SINGLESTEP, c, 0, 0));
	t_wait("a step", c);
	for (int i = 0;; i++) {
		must(P(PTRACE_SYSEMU_SINGLESTEP, c, 0, 0));
		int st;
		must(waitpid(c, &st, 0));
		if (!WIFSTOPPED(st) || WSTOPSIG(st) != SIGTRAP || i > 100000) {
			t_stop("steps to the next call", st);
			break;
		}
	}
	must(P(PTRACE_GETREGS, c, 0, &r));
	N(r.orig_rax == SYS_getppid);
	r.rax = getpid();
	must(P(PTRACE_SETREGS, c, 0, &r));
	/* From a call that is not made to the next that is. */
	must(P(PTRACE_SYSCALL, c, 0, 0));
	t_wait("its end", c);
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("to the end", c);
}
int main(void)
{
	watch();
	emulate();
	return t_done();
}
