/* PTRACE_SETSIGMASK of a tracee in sigsuspend(2): the mask that is set is the one it has afterwards. */
/* not: i386 */
#include "trace.h"
#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif
static void on(int s) { (void)s; }
int main(void)
{
	pid_t p = must(fork());
	if (!p) {
		sigset_t wait, own;
		sigfillset(&wait), sigdelset(&wait, SIGUSR1);
		sigemptyset(&own), sigaddset(&own, SIGUSR2);
		t_handle(SIGUSR1, on, 0);
		must(sigprocmask(SIG_SETMASK, &own, 0));
		must(P(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		sigsuspend(&wait);
		sigprocmask(SIG_SETMASK, 0, &own);
		_exit(sigismember(&own, SIGUSR2) | sigismember(&own, SIGHUP) << 1);
	}
	t_wait("start", p);
	must(P(PTRACE_CONT, p, 0, 0));
	t_asleep(p, p);
	must(kill(p, SIGUSR1));
	t_wait("signal", p);
	unsigned long long mask = 0;
	R(P(PTRACE_GETSIGMASK, p, 8, &mask));
	say("%#llx\n", mask);
	mask = 1;
	R(P(PTRACE_SETSIGMASK, p, 8, &mask));
	R(P(PTRACE_GETSIGMASK, p, 8, &mask));
	say("%#llx\n", mask);
	must(P(PTRACE_CONT, p, 0, SIGUSR1));
	t_wait("end", p);
	return t_failed;
}
