/* Tracing by PTRACE_TRACEME, ATTACH and SEIZE: signals pass by the tracer, registers and memory are read and set, what is not allowed
 * is refused.
 */
/* not: i386 */
#include "trace.h"
#include <sys/prctl.h>
static volatile long word = 0x1122334455667788;
static const volatile long fixed[1024] __attribute__((aligned(4096))) = {42};
static volatile int got;
static void h(int s) { got = s; }

static char *status_line(pid_t p, const char *key)
{
	static char b[4096];
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/status", p);
	int f = must(open(path, O_RDONLY)), n = read(f, b, sizeof b - 1);
	close(f);
	b[n > 0 ? n : 0] = 0;
	char *at = strstr(b, key);
	if (!at)
		return "?";
	at[strcspn(at, "\n")] = 0;
	return at + strlen(key);
}

static void traced_from_start(void)
{
	pid_t c = must(fork());
	if (!c) {
		R(P(PTRACE_TRACEME, 0, 0, 0));
		R(P(PTRACE_TRACEME, 0, 0, 0));
		t_handle(SIGUSR1, h, 0);
		signal(SIGUSR2, SIG_IGN);
		raise(SIGUSR1);
		say("got %s\n", t_sig(got));
		got = 0;
		raise(SIGUSR1);
		say("got %d\n", got);
		raise(SIGUSR2);
		raise(SIGUSR1);
		say("got %s\n", t_sig(got));
		raise(SIGSTOP);
		_exit(word == 5 && fixed[0] == 43 ? 7 : 8);
	}
	siginfo_t i;
	t_wait("child", c);
	T(P(PTRACE_GETSIGINFO, c, 0, &i) == 0 && i.si_signo == SIGUSR1 && i.si_pid == c && i.si_code == SI_TKILL);
	T(t_state(c, c) == 't');
	T(atoi(status_line(c, "TracerPid:\t")) == getpid());
	S(status_line(c, "State:\t"));
	must(P(PTRACE_CONT, c, 0, SIGUSR1));
	t_wait("child", c);
	/* Not delivered. */
	must(P(PTRACE_CONT, c, 0, 0));
	/* One that is ignored shows all the same. */
	t_wait("child", c);
	must(P(PTRACE_CONT, c, 0, SIGUSR2));
	t_wait("child", c);
	/* Another in its place. */
	R(P(PTRACE_CONT, c, 0, 65));
	must(P(PTRACE_CONT, c, 0, SIGUSR1));
	t_wait("child", c);
	errno = 0;
	T(P(PTRACE_PEEKDATA, c, &word, 0) == word && errno == 0);
	R(P(PTRACE_POKEDATA, c, &word, 5));
	R(P(PTRACE_PEEKDATA, c, &word, 0));
	/* Memory the tracee may not write. */
	R(P(PTRACE_PEEKTEXT, c, fixed, 0));
	R(P(PTRACE_POKETEXT, c, fixed, 43));
	R(P(PTRACE_PEEKTEXT, c, fixed, 0));
	N(fixed[0]);
	R(P(PTRACE_PEEKDATA, c, 8, 0));
	R(P(PTRACE_POKEDATA, c, 8, 0));
	R(P(0x4242, c, 0, 0));
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("child", c);
	R(P(PTRACE_CONT, c, 0, 0));
}

/* Runs until it is asked to end; counts in x what handler it ran. */
static pid_t spinner(void)
{
	int p[2];
	must(pipe(p));
	pid_t c = must(fork());
	if (!c) {
		t_handle(SIGUSR1, h, 0);
		write(p[1], "", 1);
		while (!got)
			getppid();
		_exit(3);
	}
	char b;
	must(read(p[0], &b, 1));
	close(p[0]);
	close(p[1]);
	return c;
}

static void registers(void)
{
	struct user_regs_struct r, s;
	struct user_fpregs_struct f;
	unsigned char x[4096];
	struct iovec v = {&s, sizeof s};
	siginfo_t i;
	pid_t c = spinner();
	R(P(PTRACE_ATTACH, c, 0, 0));
	R(P(PTRACE_ATTACH, c, 0, 0));
	t_wait("spinner", c);
	T(P(PTRACE_GETREGS, c, 0, &r) == 0 && r.cs == 0x33 && r.ss == 0x2b && r.rip && r.rsp);
	R(P(PTRACE_GETREGSET, c, NT_PRSTATUS, &v));
	T(v.iov_len == sizeof s && !memcmp(&r, &s, sizeof r));
	v.iov_len = 16;
	R(P(PTRACE_GETREGSET, c, NT_PRSTATUS, &v));
	N(v.iov_len);
	v.iov_len = 15;
	R(P(PTRACE_GETREGSET, c, NT_PRSTATUS, &v));
	R(P(PTRACE_GETREGSET, c, 77, &v));
	errno = 0;
	T(P(PTRACE_PEEKUSER, c, offsetof(struct user, regs.rip), 0) == (long)r.rip);
	R(P(PTRACE_PEEKUSER, c, offsetof(struct user, u_debugreg[7]), 0));
	R(P(PTRACE_PEEKUSER, c, 3, 0));
	R(P(PTRACE_PEEKUSER, c, sizeof(struct user), 0));
	T(P(PTRACE_GETFPREGS, c, 0, &f) == 0 && f.mxcsr == 0x1f80);
	memset(f.xmm_space, 0x5a, sizeof f.xmm_space);
	R(P(PTRACE_SETFPREGS, c, 0, &f));
	memset(&f, 0, sizeof f);
	T(P(PTRACE_GETFPREGS, c, 0, &f) == 0 && f.xmm_space[9] == 0x5a5a5a5a);
	v = (struct iovec){x, sizeof x};
	T(P(PTRACE_GETREGSET, c, NT_X86_XSTATE, &v) == 0 && v.iov_len >= 576 && x[160] == 0x5a && (x[464] & 3) == 3 && (x[512] & 2));
	R(P(PTRACE_SETREGSET, c, NT_X86_XSTATE, &v));
	/* r15 is one that no handler and no call changes. */
	long was = r.r15;
	r.r15 = 0x77;
	R(P(PTRACE_SETREGS, c, 0, &r));
	R(P(PTRACE_PEEKUSER, c, offsetof(struct user, regs.r15), 0));
	R(P(PTRACE_POKEUSER, c, offsetof(struct user, regs.r15), was));
	uint64_t mask;
	R(P(PTRACE_GETSIGMASK, c, 4, &mask));
	T(P(PTRACE_GETSIGMASK, c, 8, &mask) == 0 && mask == 0);
	mask = 1ul << (SIGUSR1 - 1) | 1ul << (SIGKILL - 1);
	R(P(PTRACE_SETSIGMASK, c, 8, &mask));
	R(P(PTRACE_GETSIGMASK, c, 8, &mask));
	T(mask == 1ul << (SIGUSR1 - 1));
	mask = 0;
	R(P(PTRACE_SETSIGMASK, c, 8, &mask));
	T(P(PTRACE_GETSIGINFO, c, 0, &i) == 0 && i.si_signo == SIGSTOP);
	R(P(PTRACE_CONT, c, 0, 0));
	R(P(PTRACE_CONT, c, 0, 0));
	R(P(PTRACE_GETREGS, c, 0, &r));
	/* Only who was seized can be interrupted. */
	R(P(PTRACE_INTERRUPT, c, 0, 0));
	kill(c, SIGUSR1);
	t_wait("spinner", c);
	i.si_signo = SIGUSR1;
	R(P(PTRACE_SETSIGINFO, c, 0, &i));
	R(P(PTRACE_DETACH, c, 0, SIGUSR1));
	R(P(PTRACE_DETACH, c, 0, 0));
	t_reap("spinner", c);
}

static void seized(void)
{
	siginfo_t i;
	unsigned long m;
	pid_t c = spinner();
	R(P(PTRACE_SEIZE, c, 1, 0));
	R(P(PTRACE_SEIZE, c, 0, 0x40000000));
	R(P(PTRACE_SEIZE, c, 0, PTRACE_O_TRACESYSGOOD));
	R(waitpid(c, 0, WNOHANG | __WALL));
	R(P(PTRACE_LISTEN, c, 0, 0));
	R(P(PTRACE_INTERRUPT, c, 0, 0));
	t_wait("seized", c);
	T(P(PTRACE_GETSIGINFO, c, 0, &i) == 0 && i.si_signo == SIGTRAP && i.si_code == (SIGTRAP | PTRACE_EVENT_STOP << 8));
	R(P(PTRACE_CONT, c, 0, 0));
	/* A stop of the whole process. */
	kill(c, SIGSTOP);
	t_wait("seized", c);
	R(P(PTRACE_LISTEN, c, 0, 0));
	R(P(PTRACE_CONT, c, 0, SIGSTOP));
	t_wait("seized", c);
	T(P(PTRACE_GETSIGINFO, c, 0, &i) == 0 && i.si_signo == SIGSTOP);
	R(P(PTRACE_LISTEN, c, 0, 0));
	R(P(PTRACE_GETSIGINFO, c, 0, &i));
	R(waitpid(c, 0, WNOHANG | __WALL));
	kill(c, SIGCONT);
	t_wait("seized", c);
	R(P(PTRACE_CONT, c, 0, 0));
	t_wait("seized", c);
	R(P(PTRACE_CONT, c, 0, SIGCONT));
	kill(c, SIGKILL);
	t_wait("seized", c);
	R(waitpid(c, 0, __WALL));
}

/* A process that is stopped already, and one that is traced without having been seized and stops. */
static void stopped(void)
{
	siginfo_t i;
	int st;
	pid_t c = spinner();
	kill(c, SIGSTOP);
	must(waitpid(c, &st, WUNTRACED));
	t_status("stopped", st);
	R(P(PTRACE_SEIZE, c, 0, 0));
	t_wait("stopped", c);
	R(P(PTRACE_DETACH, c, 0, 0));
	while (t_state(c, c) != 'T')
		t_ms(1);
	kill(c, SIGCONT);
	R(P(PTRACE_ATTACH, c, 0, 0));
	t_wait("stopped", c);
	R(P(PTRACE_CONT, c, 0, SIGSTOP));
	t_wait("stopped", c);
	R(P(PTRACE_GETSIGINFO, c, 0, &i));
	R(P(PTRACE_CONT, c, 0, 0));
	kill(c, SIGUSR1);
	t_wait("stopped", c);
	R(P(PTRACE_KILL, c, 0, 0));
	t_wait("stopped", c);
}

static void refused(void)
{
	pid_t c = spinner();
	R(P(PTRACE_ATTACH, getpid(), 0, 0));
	R(P(PTRACE_ATTACH, 999999999, 0, 0));
	R(P(PTRACE_CONT, c, 0, 0));
	R(P(PTRACE_PEEKDATA, c, &word, 0));
	kill(c, SIGKILL);
	t_reap("untraced", c);
	/* Another user's, and one that lets no other look into it. */
	if (getuid() != 0)
		return;
	c = spinner();
	CHILD("other user",
		must(setresgid(4321, 4321, 4321));
		must(setresuid(4321, 4321, 4321));
		T(P(PTRACE_ATTACH, c, 0, 0) == -1 && errno == EPERM);
		T(P(PTRACE_SEIZE, c, 0, 0) == -1 && errno == EPERM);
		c = must(fork());
		if (!c) {
			prctl(PR_SET_DUMPABLE, 0);
			raise(SIGSTOP);
			_exit(0);
		}
		must(waitpid(c, 0, WUNTRACED));
		T(P(PTRACE_SEIZE, c, 0, 0) == -1 && errno == EPERM);
		kill(c, SIGKILL);
		t_reap("not dumpable", c);
	);
	kill(c, SIGKILL);
	t_reap("another's", c);
}

int main(void)
{
	traced_from_start();
	registers();
	seized();
	stopped();
	refused();
	return t_failed;
}
