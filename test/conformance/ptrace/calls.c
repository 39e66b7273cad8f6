/* Stops before and after calls: what they report, calls that are changed, left out or cut short, and single steps over them. */
/* not: i386 */
#include "trace.h"
#include <linux/ptrace.h>
#define INFO_NONE 0
#define INFO_ENTRY 1
#define INFO_EXIT 2
struct info {
	uint8_t op, pad[3];
	uint32_t arch;
	uint64_t ip, sp, w[7];
};

/* The next stop at a call; prints what it is. */
static struct info at_call(pid_t c)
{
	struct info i;
	unsigned long m = 9;
	int st = 0;
	memset(&i, 0x55, sizeof i);
	must(P(PTRACE_SYSCALL, c, 0, 0));
	must(waitpid(c, &st, __WALL));
	if (!WIFSTOPPED(st) || WSTOPSIG(st) != (SIGTRAP | 0x80)) {
		t_stop("child", st);
		i.op = 99;
		return i;
	}
	long n = P(0x420e, c, sizeof i, &i);
	must(P(PTRACE_GETEVENTMSG, c, 0, &m));
	if (i.op == INFO_ENTRY)
		say("%ld bytes: before %ld, message %lu\n", n, (long)i.w[0], m);
	else if (i.op == INFO_EXIT)
		say("%ld bytes: after, %s%s, message %lu\n", n, (uint8_t)i.w[1] ? "error " : "value", (uint8_t)i.w[1] ? t_errno(-(long)i.w[0]) : "",
		    m);
	else
		say("%ld bytes: op %d\n", n, i.op);
	return i;
}

static pid_t child(void (*f)(void))
{
	pid_t c = must(fork());
	if (!c) {
		must(P(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		f();
		syscall(SYS_exit_group, 5);
	}
	must(waitpid(c, 0, __WALL));
	must(P(PTRACE_SETOPTIONS, c, 0, PTRACE_O_TRACESYSGOOD));
	return c;
}

static void three(void)
{
	syscall(SYS_getppid, 1, 2, 3, 4, 5, 6);
	errno = 0;
	long r = syscall(SYS_close, -1);
	if (r != -1 || errno != EBADF)
		syscall(SYS_exit_group, 1);
	r = syscall(SYS_getuid);
	if (r != 4711)
		syscall(SYS_exit_group, 2);
	errno = 0;
	r = syscall(SYS_unlink, "/nowhere");
	if (r != -1 || errno != EDOM)
		syscall(SYS_exit_group, 3);
	r = syscall(SYS_getpid);
	if (r == getpid())
		syscall(SYS_exit_group, 4);
}

static void changed(void)
{
	struct user_regs_struct r;
	pid_t c = child(three);
	struct info i = at_call(c);
	/* The one that raise(3) was in may come first: its end, and calls that the C library makes after it. */
	while (i.op != 99 && !(i.op == INFO_ENTRY && i.w[0] == SYS_getppid)) {
		must(P(PTRACE_SYSCALL, c, 0, 0));
		must(waitpid(c, 0, __WALL));
		must(P(0x420e, c, sizeof i, &i));
	}
	T(i.w[1] == 1 && i.w[2] == 2 && i.w[3] == 3 && i.w[4] == 4 && i.w[5] == 5 && i.w[6] == 6);
	T(i.arch == 0xc000003e);
	must(P(PTRACE_GETREGS, c, 0, &r));
	T(i.ip == r.rip && i.sp == r.rsp && r.orig_rax == SYS_getppid && (long)r.rax == -ENOSYS);
	errno = 0;
	/* It is the program's own instruction. */
	T((P(PTRACE_PEEKTEXT, c, r.rip - 2, 0) & 0xffff) == 0x050f && !errno);
	i = at_call(c);
	T(i.w[0] == getpid());
	at_call(c);
	at_call(c);
	/* Another number, another result. */
	at_call(c);
	must(P(PTRACE_POKEUSER, c, offsetof(struct user, regs.orig_rax), SYS_getgid));
	at_call(c);
	must(P(PTRACE_POKEUSER, c, offsetof(struct user, regs.rax), 4711));
	/* None. */
	at_call(c);
	must(P(PTRACE_POKEUSER, c, offsetof(struct user, regs.orig_rax), -1));
	must(P(PTRACE_POKEUSER, c, offsetof(struct user, regs.rax), -EDOM));
	at_call(c);
	at_call(c);
	must(P(PTRACE_POKEUSER, c, offsetof(struct user, regs.orig_rax), SYS_getppid));
	at_call(c);
	at_call(c);
	at_call(c);
	i = at_call(c);
	T(i.w[1] == 5);
	at_call(c);
}

static int p[2];
static void h(int s) {}
static void reader(void)
{
	char b;
	struct sigaction a = {.sa_handler = h, .sa_flags = SA_RESTART};
	sigaction(SIGUSR1, &a, 0);
	if (syscall(SYS_read, p[0], &b, 1) != 1)
		syscall(SYS_exit_group, 1);
}

/* A call that waits is cut short by a signal, and begins again. */
static void cut_short(void)
{
	struct info i;
	int st;
	must(pipe(p));
	pid_t c = child(reader);
	do {
		must(P(PTRACE_SYSCALL, c, 0, 0));
		must(waitpid(c, 0, __WALL));
		must(P(0x420e, c, sizeof i, &i));
	} while (!(i.op == INFO_ENTRY && i.w[0] == SYS_read));
	must(P(PTRACE_SYSCALL, c, 0, 0));
	t_asleep(c, c);
	kill(c, SIGUSR1);
	must(waitpid(c, &st, __WALL));
	must(P(0x420e, c, sizeof i, &i));
	N(i.op);
	N(i.w[0]);
	/* The signal. */
	must(P(PTRACE_SYSCALL, c, 0, 0));
	t_wait("child", c);
	must(P(0x420e, c, sizeof i, &i));
	N(i.op);
	must(P(PTRACE_SYSCALL, c, 0, SIGUSR1));
	/* Back from the handler. */
	must(waitpid(c, &st, __WALL));
	must(P(0x420e, c, sizeof i, &i));
	T(i.op == INFO_ENTRY && i.w[0] == SYS_rt_sigreturn);
	must(P(PTRACE_SYSCALL, c, 0, 0));
	must(waitpid(c, &st, __WALL));
	i = at_call(c);
	write(p[1], "x", 1);
	i = at_call(c);
	at_call(c);
	/* Detached on its way into a call, which is made. */
	must(P(PTRACE_DETACH, c, 0, 0));
	t_reap("child", c);
}

static volatile long word;
static void little(void)
{
	word = 1;
	syscall(SYS_getppid);
	word = 2;
}

/* Step by step through a call, to its instruction and behind it. */
static void steps(void)
{
	struct user_regs_struct r;
	long code = 0, n = 0, calls = 0;
	siginfo_t i;
	pid_t c = child(little);
	do {
		must(P(PTRACE_SINGLESTEP, c, 0, 0));
		int st;
		must(waitpid(c, &st, __WALL));
		if (!WIFSTOPPED(st) || WSTOPSIG(st) != SIGTRAP) {
			t_stop("stepped", st);
			return;
		}
		must(P(PTRACE_GETREGS, c, 0, &r));
		must(P(PTRACE_GETSIGINFO, c, 0, &i));
		if ((code & 0xffff) == 0x050f) {
			calls++;
			if (r.eflags & 0x100)
				say("the trap flag shows\n");
		}
		code = P(PTRACE_PEEKTEXT, c, r.rip, 0);
		n++;
	} while (P(PTRACE_PEEKDATA, c, &word, 0) != 2 && n < 100000);
	T(n > 10 && n < 100000);
	T(calls >= 1);
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("stepped", c);
}

int main(void)
{
	changed();
	cut_short();
	steps();
	return t_failed;
}
