/* Events: fork, vfork, clone, exec, the end; who is traced with whom; breakpoints; what becomes of tracees whose tracer ends. */
/* not: i386 */
#include "trace.h"
#include <sys/prctl.h>
static char self[4096];
#define ALL (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEVFORKDONE | \
	PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD)

static void forks(void) { pid_t c = must(fork()); if (!c) _exit(3); int st; must(waitpid(c, &st, 0)); t_status("its child", st); }
static void vforks(void) { pid_t c = vfork(); if (!c) _exit(4); int st; must(waitpid(c, &st, 0)); t_status("its child", st); }
static void *thread(void *p) { return p; }
static void threads(void) { pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0); }
static void execs(void) { execl(self, self, "gone on", (char *)0); }
static void *exec_thread(void *p) { execs(); return p; }
static void exec_threads(void) { pthread_t t; pthread_create(&t, 0, exec_thread, 0); pthread_join(t, 0); }

static pid_t child(void (*f)(void), int options)
{
	pid_t c = must(fork());
	if (!c) {
		must(P(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		f();
		_exit(5);
	}
	must(waitpid(c, 0, __WALL));
	must(P(PTRACE_SETOPTIONS, c, 0, options));
	return c;
}

/* Lets all go on until they have ended; prints each one's own stops in order, the first's and the second's apart. */
static void follow(const char *what, void (*f)(void), int options)
{
	char text[2][1024] = {"", ""};
	pid_t second = 0, held = 0, c = child(f, options);
	int told = 0;
	say("-- %s\n", what);
	must(P(PTRACE_CONT, c, 0, 0));
	for (;;) {
		int st, sig;
		unsigned long m = 0;
		pid_t p = waitpid(-1, &st, __WALL);
		if (p == -1)
			break;
		char *t = text[p != c], *e = t + strlen(t);
		if (p != c && second && p != second)
			say("somebody else\n");
		if (p != c)
			second = p;
		if (!WIFSTOPPED(st)) {
			/* A thread's own code is replaced by its process' when that ends before it is asked for. */
			if (p != c)
				strcpy(e, " ended");
			else
				sprintf(e, WIFEXITED(st) ? " exited:%d" : " killed:%d", WIFEXITED(st) ? WEXITSTATUS(st) : WTERMSIG(st));
			continue;
		}
		sig = WSTOPSIG(st);
		if (st >> 16) {
			must(P(PTRACE_GETEVENTMSG, p, 0, &m));
			int ev = st >> 16;
			if (ev == PTRACE_EVENT_EXIT)
				sprintf(e, " exit(%#lx)", m);
			else if (ev == PTRACE_EVENT_EXEC)
				sprintf(e, " exec%s", m == c ? "" : "(another's)");
			else
				sprintf(e, " %s%s", ev == 1 ? "fork" : ev == 2 ? "vfork" : ev == 3 ? "clone" : ev == 5 ? "vfork_done" : "?",
					m > 1 && (!second || m == second) ? "" : "(wrong)");
			sig = 0;
			told |= p == c;
		} else {
			sprintf(e, " %s", t_sig(sig));
			if (sig == SIGSTOP || sig == SIGTRAP)
				sig = 0;
		}
		/* A new one waits until it has been reported. */
		if (p != c && !told) {
			held = p;
			continue;
		}
		P(PTRACE_CONT, p, 0, sig);
		if (held) {
			P(PTRACE_CONT, held, 0, 0);
			held = 0;
		}
	}
	say("first:%s\n", text[0]);
	say("second:%s\n", text[1]);
}

static volatile int hits;
__attribute__((noinline)) static void place(void) { hits++; __asm__ volatile("nop; nop" ::: "memory"); }
static void goes_by(void)
{
	for (int i = 0; i < 3; i++)
		place();
	if (hits != 3)
		_exit(9);
}

/* A breakpoint in the program's text: taken, stepped over, taken again, taken out. */
static void breakpoints(void)
{
	struct user_regs_struct r;
	siginfo_t i;
	pid_t c = child(goes_by, 0);
	long at = (long)place & ~7L, shift = ((long)place & 7) * 8;
	errno = 0;
	long was = P(PTRACE_PEEKTEXT, c, at, 0);
	T(!errno);
	long with = was & ~(0xffL << shift) | 0xccL << shift;
	must(P(PTRACE_POKETEXT, c, at, with));
	must(P(PTRACE_CONT, c, 0, 0));
	for (int n = 0; n < 2; n++) {
		t_wait("broken", c);
		must(P(PTRACE_GETSIGINFO, c, 0, &i));
		must(P(PTRACE_GETREGS, c, 0, &r));
		T(i.si_code == SI_KERNEL && r.rip == (long)place + 1);
		r.rip--;
		must(P(PTRACE_SETREGS, c, 0, &r));
		must(P(PTRACE_POKETEXT, c, at, was));
		must(P(PTRACE_SINGLESTEP, c, 0, 0));
		t_wait("stepped", c);
		must(P(PTRACE_GETSIGINFO, c, 0, &i));
		must(P(PTRACE_GETREGS, c, 0, &r));
		T(i.si_code == TRAP_TRACE && r.rip > (long)place && !(r.eflags & 0x100));
		if (!n)
			must(P(PTRACE_POKETEXT, c, at, with));
		must(P(PTRACE_CONT, c, 0, 0));
	}
	t_wait("broken", c);
	/* Another process has its own text. */
	hits = 2;
	place();
	N(hits);
}

static volatile int handled;
static void h(int s) { handled = 1; }
static void signalled(void) { t_handle(SIGUSR1, h, 0); raise(SIGUSR1); }
/* A step with a signal ends at the handler's first instruction. */
static void step_to_handler(void)
{
	struct user_regs_struct r;
	pid_t c = child(signalled, 0);
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("signalled", c);
	must(P(PTRACE_SINGLESTEP, c, 0, SIGUSR1));
	t_wait("signalled", c);
	must(P(PTRACE_GETREGS, c, 0, &r));
	T(r.rip == (long)h && r.rdi == SIGUSR1);
	must(P(PTRACE_SINGLESTEP, c, 0, 0));
	t_wait("signalled", c);
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("signalled", c);
}

static void waits(void) { for (;;) pause(); }

/* Tracees outlive their tracer, but for those it has marked to be killed. */
static void orphans(int options, const char *who)
{
	int p[2], st;
	pid_t c;
	must(pipe(p));
	must(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	pid_t tracer = must(fork());
	if (!tracer) {
		c = child(waits, options);
		write(p[1], &c, sizeof c);
		_exit(0);
	}
	must(read(p[0], &c, sizeof c));
	t_reap("tracer", tracer);
	if (!options) {
		while (t_state(c, c) != 'S')
			t_ms(1);
		T(kill(c, 0) == 0);
		kill(c, SIGTERM);
	}
	must(waitpid(c, &st, 0));
	t_status(who, st);
}

/* The tracer is not the parent: it learns of the end first, and then the parent does. */
static void two_who_wait(void)
{
	int p[2], q[2], st;
	char b;
	must(pipe(p));
	must(pipe(q));
	pid_t c = must(fork());
	if (!c) {
		read(p[0], &b, 1);
		_exit(6);
	}
	pid_t tracer = must(fork());
	if (!tracer) {
		must(P(PTRACE_SEIZE, c, 0, 0));
		write(q[1], "x", 1);
		t_asleep(getppid(), getppid());
		write(p[1], "x", 1);
		siginfo_t i;
		must(waitid(P_PID, c, &i, WEXITED | WNOWAIT | __WALL));
		say("the tracer knows\n");
		T(t_state(getppid(), getppid()) == 'S');
		must(waitpid(c, &st, __WALL));
		_exit(t_failed);
	}
	must(read(q[0], &b, 1));
	must(waitpid(c, &st, 0));
	t_status("parent's", st);
	t_reap("tracer", tracer);
}

/* A tracee that is stopped can be killed, but not one whose end is being reported. */
static void killed(void)
{
	pid_t c = child(waits, PTRACE_O_TRACEEXIT);
	must(kill(c, SIGKILL));
	t_wait("killed", c);
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("killed", c);
	c = child(forks, PTRACE_O_TRACEEXIT);
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("child", c);
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("child", c);
	/* Too late. */
	must(kill(c, SIGKILL));
	must(P(PTRACE_CONT, c, 0, 0));
	t_wait("child", c);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		say("%s\n", argv[1]);
		return 8;
	}
	must(readlink("/proc/self/exe", self, sizeof self - 1));
	follow("fork", forks, ALL);
	follow("fork, not asked for", forks, 0);
	follow("vfork", vforks, ALL);
	follow("thread", threads, ALL);
	follow("exec", execs, ALL);
	follow("exec, not asked for", execs, 0);
	follow("exec of a thread", exec_threads, PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE);
	breakpoints();
	step_to_handler();
	orphans(0, "left");
	orphans(PTRACE_O_EXITKILL, "not left");
	two_who_wait();
	killed();
	return t_failed;
}
