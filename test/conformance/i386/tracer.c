/* A 32-bit program that traces another, and a 64-bit one: words of four bytes, their own structures of registers and signals. */
/* only: i386 i386-static */
#include "../ptrace/trace.h"
#include <asm/ldt.h>
#include <sys/uio.h>
#ifndef PTRACE_GETREGSET
#define PTRACE_GETREGSET 0x4204
#define PTRACE_SETREGSET 0x4205
#endif
static volatile int word = 0x11223344, answer;
static int edge(void)
{
	return 4096 - 4;
}
static struct user_regs_struct regs(pid_t p)
{
	struct user_regs_struct r;
	memset(&r, 0, sizeof r);
	must(P(PTRACE_GETREGS, p, 0, &r));
	return r;
}
static long call(long nr, long a, long b, long c)
{
	long r;
	asm volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(0x5151), "D"(0x6161) : "memory");
	return r;
}
static void memory(pid_t p, volatile char *page)
{
	long n = 0;
	errno = 0;
	say("peek %#lx\n", P(PTRACE_PEEKDATA, p, &word, 0));
	R(P(PTRACE_POKEDATA, p, &word, 0x55667788));
	say("peek %#lx\n", P(PTRACE_PEEKDATA, p, &word, 0));
	say("as the call does: %ld", syscall(SYS_ptrace, PTRACE_PEEKDATA, p, &word, &n));
	say(" %#lx\n", n);
	errno = 0;
	say("at the end of memory %#lx\n", P(PTRACE_PEEKDATA, p, page + edge(), 0));
	errno = 0;
	n = P(PTRACE_PEEKDATA, p, page + edge() + 1, 0);
	say("over it %ld %s\n", n, t_errno(errno));
	R(P(PTRACE_POKEDATA, p, page + edge(), 7));
	R(P(PTRACE_POKEDATA, p, page + edge() + 2, 7));
}
static void registers(pid_t p)
{
	struct user_regs_struct r = regs(p), set;
	N(sizeof r);
	say("call %ld: %#lx %#lx %#lx %#lx %#lx, eax %ld, cs %#lx ss %#lx\n", r.orig_eax, r.ebx, r.ecx, r.edx, r.esi, r.edi, r.eax, r.xcs, r.xss);
	for (int i = 0; i < 17; i++) {
		errno = 0;
		long v = P(PTRACE_PEEKUSER, p, i * 4, 0);
		if (errno || v != ((long *)&r)[i])
			say("word %d: %#lx %#lx %s\n", i, v, ((long *)&r)[i], t_errno(errno));
	}
	R(P(PTRACE_POKEUSER, p, 2 * 4, 0x1234));
	R(regs(p).edx == 0x1234);
	R(P(PTRACE_POKEUSER, p, 2, 0));
	R(P(PTRACE_PEEKUSER, p, 2, 0));
	R(P(PTRACE_PEEKUSER, p, 400, 0));
	R(P(PTRACE_PEEKUSER, p, 200, 0));
	R(P(PTRACE_PEEKUSER, p, 252, 0));
	R(P(PTRACE_POKEUSER, p, 252, &word));
	R(P(PTRACE_PEEKUSER, p, 252, 0) == (long)&word);
	struct iovec v = {&set, sizeof set};
	memset(&set, 0, sizeof set);
	R(P(PTRACE_GETREGSET, p, NT_PRSTATUS, &v));
	r = regs(p);
	say("set of %d, the same %d\n", (int)v.iov_len, set.eip == r.eip && set.orig_eax == r.orig_eax && set.esp == r.esp);
	v.iov_len = 8;
	R(P(PTRACE_GETREGSET, p, NT_PRSTATUS, &v));
	N(v.iov_len);
	set.ebx = 0x777, v.iov_len = 4;
	R(P(PTRACE_SETREGSET, p, NT_PRSTATUS, &v));
	R(regs(p).ebx == 0x777);
	v.iov_len = 7;
	R(P(PTRACE_GETREGSET, p, NT_PRSTATUS, &v));
	v.iov_len = 8;
	R(P(PTRACE_GETREGSET, p, 0x999, &v));
}
static void floats(pid_t p)
{
	unsigned f[27], g[27], x[128];
	R(P(PTRACE_GETFPREGS, p, 0, f));
	say("control %#x status %#x tags %#x cs %#x operand's %#x; st0 %08x%08x %04x\n", f[0], f[1], f[2], f[4], f[6], f[8], f[7], f[9] & 0xffff);
	struct iovec v = {g, sizeof g};
	R(P(PTRACE_GETREGSET, p, NT_PRFPREG, &v));
	say("set of %d, the same %d\n", (int)v.iov_len, !memcmp(f, g, sizeof f));
	R(P(18 /* PTRACE_GETFPXREGS */, p, 0, x));
	say("control %#x, st0 %08x%08x %04x, xmm1 %08x\n", x[0] & 0xffff, x[9], x[8], x[10] & 0xffff, x[44]);
	f[8] = 0xa0000000;
	R(P(PTRACE_SETFPREGS, p, 0, f));
	R(P(PTRACE_GETFPREGS, p, 0, g));
	say("st0 %08x%08x\n", g[8], g[7]);
	R(P(18, p, 0, x));
	x[44] = 0x4242;
	R(P(19 /* PTRACE_SETFPXREGS */, p, 0, x));
	R(P(18, p, 0, x));
	say("xmm1 %08x\n", x[44]);
}
static void signals(pid_t p)
{
	siginfo_t i;
	memset(&i, 0, sizeof i);
	R(P(PTRACE_GETSIGINFO, p, 0, &i));
	say("%s code %d pid %d value %#x\n", t_sig(i.si_signo), i.si_code, i.si_pid == getpid(), i.si_value.sival_int);
	i.si_value.sival_int = 0x909;
	R(P(PTRACE_SETSIGINFO, p, 0, &i));
	memset(&i, 0, sizeof i);
	R(P(PTRACE_GETSIGINFO, p, 0, &i));
	N(i.si_value.sival_int);
}
static void hear(int n, siginfo_t *i, void *u)
{
	(void)u, (void)n;
	answer = i->si_value.sival_int;
}
int main(void)
{
	alarm(30);
	char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + 4096, 4096);
	page[edge()] = 5;
	pid_t p = must(fork());
	if (!p) {
		must(P(PTRACE_TRACEME, 0, 0, 0));
		t_info(SIGUSR1, hear, 0);
		t_info(SIGRTMIN + 3, hear, 0);
		asm volatile("fninit; fld1; movd %0, %%xmm1" : : "r"(0x1717));
		must(call(SYS_kill, call(SYS_getpid, 0, 0, 0), SIGSTOP, 0));
		double d;
		int x;
		asm volatile("fstpl %0; movd %%xmm1, %1" : "=m"(d), "=r"(x));
		say("tracee: word %#x, edge %d, st0 %d/4, xmm1 %#x\n", word, page[edge()], (int)(d * 4), x);
		long r = call(SYS_getppid, 0x10, 0x20, 0x30);
		while (!answer)
			usleep(1000);
		say("tracee: %ld, signal %#x\n", r, answer);
		_exit(3);
	}
	t_wait("child", p);
	memory(p, page);
	floats(p);
	struct user_desc area;
	memset(&area, 0, sizeof area);
	unsigned gs = 0;
	asm("mov %%gs, %0" : "=r"(gs));
	R(P(25 /* PTRACE_GET_THREAD_AREA */, p, gs >> 3, &area));
	say("area: its entry %d, a base %d, limit %#x\n", area.entry_number == gs >> 3, area.base_addr != 0, area.limit);
	R(P(25, p, 3, &area));
	must(P(PTRACE_SETOPTIONS, p, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXIT));
	do {
		must(P(PTRACE_SYSCALL, p, 0, 0));
		int st = 0;
		must(waitpid(p, &st, 0));
		if (!WIFSTOPPED(st) || WSTOPSIG(st) != (SIGTRAP | 0x80))
			t_stop("child", st);
	} while (regs(p).orig_eax != SYS_getppid);
	registers(p);
	must(P(PTRACE_SYSCALL, p, 0, 0));
	t_wait("child", p);
	R(regs(p).eax == getpid());
	must(P(PTRACE_POKEUSER, p, 6 * 4, -7));
	must(P(PTRACE_CONT, p, 0, 0));
	union sigval value = {.sival_int = 0x808};
	must(sigqueue(p, SIGRTMIN + 3, value));
	t_wait("child", p);
	signals(p);
	must(P(PTRACE_CONT, p, 0, SIGRTMIN + 3));
	t_wait("child", p);
	unsigned long message[2] = {0, 0xabab};
	R(P(PTRACE_GETEVENTMSG, p, 0, message));
	say("message %#lx, behind it %#lx\n", message[0], message[1]);
	must(P(PTRACE_CONT, p, 0, 0));
	t_wait("child", p);
	return t_done();
}
