/* waitid: options, WNOWAIT, the fields of siginfo. */
#include "t.h"
static void show(const char *w, siginfo_t *i, pid_t p)
{
	say("%s: signo %s code %d status %d pid %s\n", w, i->si_signo ? t_sig(i->si_signo) : "0", i->si_code, i->si_status, i->si_pid == p ? "child" : i->si_pid ? "other" : "0");
}
int main(void)
{
	siginfo_t i;
	R(waitid(P_ALL, 0, &i, WEXITED));
	pid_t p = must(fork());
	if (!p) {
		pause();
		_exit(0);
	}
	R(waitid(P_PID, p, &i, 0));
	R(waitid(7, p, &i, WEXITED));
	R(waitid(P_PID, 0, &i, WEXITED));
	R(waitid(P_PID, p, &i, 0x100 | WEXITED));
	memset(&i, 0xff, sizeof i);
	R(waitid(P_PID, p, &i, WEXITED | WNOHANG));
	say("nothing: signo %d pid %d\n", i.si_signo, i.si_pid);
	kill(p, SIGSTOP);
	R(waitid(P_PID, p, &i, WSTOPPED | WNOWAIT));
	show("stopped, left", &i, p);
	R(waitid(P_PID, p, &i, WSTOPPED));
	show("stopped", &i, p);
	i.si_pid = 0;
	R(waitid(P_PID, p, &i, WSTOPPED | WNOHANG));
	N(i.si_pid);
	kill(p, SIGCONT);
	R(waitid(P_PID, p, &i, WCONTINUED));
	show("continued", &i, p);
	kill(p, SIGUSR1);
	R(waitid(P_PID, p, &i, WEXITED | WNOWAIT));
	show("killed, left", &i, p);
	R(waitid(P_PID, p, &i, WEXITED | WNOWAIT));
	R(waitid(P_ALL, 0, &i, WEXITED));
	show("killed", &i, p);
	T(i.si_uid == getuid());
	if (!(p = must(fork())))
		_exit(0x1234);
	R(waitid(P_PGID, getpgrp(), &i, WEXITED));
	show("exited", &i, p);
	if (!(p = must(fork())))
		_exit(3);
	struct rusage u;
	R(syscall(SYS_waitid, P_PID, p, 0, WEXITED, &u));
	if (!(p = must(fork())))
		_exit(4);
	R(waitid(P_PGID, 0, &i, WEXITED));
	show("own group", &i, p);
	/* One that has ended will not stop any more. */
	if (!(p = must(fork())))
		_exit(5);
	must(waitid(P_PID, p, &i, WEXITED | WNOWAIT));
	R(waitid(P_PID, p, &i, WSTOPPED));
	R(waitid(P_PID, p, &i, WCONTINUED | WNOHANG));
	R(waitid(P_PID, p, &i, WEXITED));
	return t_done();
}
