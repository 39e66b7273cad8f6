/* Segment selectors set by a tracer, and words of struct user that are no registers. */
/* not: i386 */
#include "trace.h"
#include <sys/uio.h>
#define U(m) offsetof(struct user, regs.m)
static pid_t c;
static unsigned ds(void)
{
	unsigned v;
	__asm__ volatile("mov %%ds, %0" : "=r"(v));
	return v & 0xffff;
}
static unsigned es(void)
{
	unsigned v;
	__asm__ volatile("mov %%es, %0" : "=r"(v));
	return v & 0xffff;
}
static void show(const char *when)
{
	struct user_regs_struct r;
	must(P(PTRACE_GETREGS, c, 0, &r));
	say("%s: cs %lx, ss %lx, ds %lx, es %lx, fs %lx, gs %lx\n", when, (long)r.cs, (long)r.ss, (long)r.ds, (long)r.es, (long)r.fs, (long)r.gs);
}
int main(void)
{
	struct user_regs_struct r;
	c = must(fork());
	if (!c) {
		must(P(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		say("the child has ds %x, es %x\n", ds(), es());
		raise(SIGSTOP);
		say("and now ds %x, es %x\n", ds(), es());
		_exit(errno == 0 ? 3 : 4);
	}
	t_wait("child", c);
	show("at first");
	R(P(PTRACE_POKEUSER, c, U(ds), 0x2b));
	R(P(PTRACE_POKEUSER, c, U(ds), 0x28));
	R(P(PTRACE_POKEUSER, c, U(es), 1));
	R(P(PTRACE_POKEUSER, c, U(fs), 8));
	R(P(PTRACE_POKEUSER, c, U(gs), 0x10));
	R(P(PTRACE_POKEUSER, c, U(fs), 0));
	R(P(PTRACE_POKEUSER, c, U(cs), 0));
	R(P(PTRACE_POKEUSER, c, U(cs), 0x10));
	R(P(PTRACE_POKEUSER, c, U(cs), 0x33));
	R(P(PTRACE_POKEUSER, c, U(ss), 0));
	R(P(PTRACE_POKEUSER, c, U(ss), 0x18));
	R(P(PTRACE_POKEUSER, c, U(ss), 0x7002b));
	show("poked");
	must(P(PTRACE_GETREGS, c, 0, &r));
	r.es = 0x2b;
	R(P(PTRACE_SETREGS, c, 0, &r));
	show("set");
	r.es = 0x20;
	struct iovec v = {&r, sizeof r};
	R(P(PTRACE_SETREGSET, c, NT_PRSTATUS, &v));
	show("not set");
	/* Of the rest of struct user only the debug registers can be set. */
	R(P(PTRACE_POKEUSER, c, offsetof(struct user, u_tsize), 1));
	R(P(PTRACE_POKEUSER, c, offsetof(struct user, u_comm), 1));
	R(P(PTRACE_POKEUSER, c, offsetof(struct user, i387), 1));
	R(P(PTRACE_POKEUSER, c, offsetof(struct user, magic), 1));
	R(P(PTRACE_POKEUSER, c, sizeof(struct user), 1));
	R(P(PTRACE_POKEUSER, c, 3, 1));
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("again", c);
	show("again");
	R(P(PTRACE_POKEUSER, c, U(ds), 0));
	R(P(PTRACE_POKEUSER, c, U(es), 0));
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("its end", c);
	return t_done();
}
