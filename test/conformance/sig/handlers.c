/* sigaction: what is stored, which mask holds in a handler, SA_NODEFER, SA_RESETHAND, nesting. */
/* also: i386-static */
#include "t.h"
static int depth, left;
static void show(int s)
{
	sigset_t m;
	sigprocmask(SIG_BLOCK, 0, &m);
	say("%s depth %d: blocked USR1 %d USR2 %d HUP %d\n", t_sig(s), depth, sigismember(&m, SIGUSR1), sigismember(&m, SIGUSR2), sigismember(&m, SIGHUP));
}
static void once(int s)
{
	depth++;
	show(s);
	if (left-- > 0)
		raise(SIGUSR1);
	say("%s leaves %d\n", t_sig(s), depth);
	depth--;
}
static void nest(int s)
{
	depth++;
	show(s);
	if (s == SIGUSR1 && depth == 1)
		raise(SIGUSR2);
	say("%s leaves %d\n", t_sig(s), depth);
	depth--;
}
static void mask_edit(int s, siginfo_t *i, void *u)
{
	(void)s, (void)i;
	sigaddset(&((ucontext_t *)u)->uc_sigmask, SIGUSR2);
}
int main(void)
{
	struct sigaction a, o;
	memset(&a, 0, sizeof a);
	R(sigaction(SIGKILL, &a, 0));
	R(sigaction(SIGSTOP, &a, 0));
	R(sigaction(SIGKILL, 0, &o));
	R(sigaction(0, 0, &o));
	R(sigaction(65, 0, &o));
	R(syscall(SYS_rt_sigaction, SIGUSR1, 8, 0, 8));
	R(syscall(SYS_rt_sigaction, SIGUSR1, 0, 0, 16));
	a.sa_handler = once, a.sa_flags = SA_RESTART;
	sigaddset(&a.sa_mask, SIGHUP);
	R(sigaction(SIGUSR1, &a, 0));
	R(sigaction(SIGUSR1, 0, &o));
	T(o.sa_handler == once && (o.sa_flags & ~0x04000000) == SA_RESTART && sigismember(&o.sa_mask, SIGHUP) && !sigismember(&o.sa_mask, SIGINT));
	left = 1;
	raise(SIGUSR1);
	show(SIGUSR1);
	a.sa_flags = SA_NODEFER;
	sigaction(SIGUSR1, &a, 0);
	left = 1;
	raise(SIGUSR1);
	a.sa_handler = nest, a.sa_flags = SA_RESETHAND;
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGUSR2, &a, 0);
	raise(SIGUSR1);
	sigaction(SIGUSR1, 0, &o);
	T(o.sa_handler == SIG_DFL);
	show(0);
	/* The mask a handler leaves in its context is the mask it returns to. */
	t_info(SIGHUP, mask_edit, 0);
	raise(SIGHUP);
	show(SIGHUP);
	/* A blocked signal waits, and only once. */
	a.sa_handler = nest, a.sa_flags = 0;
	sigaction(SIGUSR2, &a, 0);
	raise(SIGUSR2);
	raise(SIGUSR2);
	sigset_t m;
	sigpending(&m);
	N(sigismember(&m, SIGUSR2));
	sigemptyset(&m);
	say("unblock\n");
	sigprocmask(SIG_SETMASK, &m, 0);
	sigpending(&m);
	N(sigismember(&m, SIGUSR2));
	/* Ignoring drops what is pending. */
	sigemptyset(&m);
	sigaddset(&m, SIGUSR2);
	sigprocmask(SIG_BLOCK, &m, 0);
	raise(SIGUSR2);
	signal(SIGUSR2, SIG_IGN);
	sigpending(&m);
	N(sigismember(&m, SIGUSR2));
	/* Neither KILL nor STOP can be blocked. */
	sigfillset(&m);
	R(sigprocmask(SIG_SETMASK, &m, 0));
	sigprocmask(SIG_SETMASK, 0, &m);
	N(sigismember(&m, SIGKILL) + sigismember(&m, SIGSTOP));
	R(syscall(SYS_rt_sigprocmask, 9, &m, 0, 8));
	R(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &m, 0, 7));
	return t_done();
}
