/* Process groups and sessions: who may change what. */
#include "t.h"
int main(void)
{
	pid_t me = getpid();
	T(getpgid(0) == getpgrp());
	T(getsid(0) == getsid(me));
	R(getpgid(-5));
	R(getsid(0x3fffffff));
	R(setpgid(-1, 0));
	R(setpgid(0, -1));
	R(setpgid(0x3fffffff, 0));
	int pi[2], qi[2];
	must(pipe(pi));
	must(pipe(qi));
	CHILD("leader", {
		T(setpgid(0, 0) == 0);
		T(getpgrp() == getpid());
		T(getpgrp() != getpgid(me));
		R(setsid()); /* a group leader may not */
		R(setpgid(0, 0x3ffffff));
	});
	CHILD("session", {
		T(setsid() == getpid());
		T(getsid(0) == getpid() && getpgrp() == getpid());
		R(setsid());
		R(setpgid(0, 0)); /* a session leader may not */
		pid_t p = fork();
		if (!p) {
			T(getsid(0) == getppid());
			T(getpgrp() == getppid());
			OK(setsid());
			_exit(t_failed);
		}
		t_reap("grandchild", p);
	});
	pid_t p = must(fork());
	if (!p) {
		char c;
		read(pi[0], &c, 1);
		T(getpgrp() == getpid());
		setsid();
		_exit(t_failed);
	}
	R(setpgid(p, p));
	T(getpgid(p) == p);
	pid_t q = must(fork());
	if (!q) {
		R(setpgid(0, p)); /* joins */
		T(getpgrp() == p);
		char c = 1;
		write(qi[1], &c, 1);
		pause();
	}
	char c = 1;
	must(read(qi[0], &c, 1));
	R(kill(-p, 0));
	write(pi[1], &c, 1);
	t_reap("p", p);
	R(kill(-p, SIGTERM));
	t_reap("q", q);
	R(kill(-p, SIGTERM));
	/* A child that has run another program may not be moved. */
	p = must(fork());
	if (!p) {
		fcntl(qi[1], F_SETFD, FD_CLOEXEC);
		execl("/bin/sleep", "sleep", "100", (char *)0);
		_exit(1);
	}
	close(qi[1]);
	R(read(qi[0], &c, 1));
	R(setpgid(p, p));
	kill(p, SIGKILL);
	t_reap("sleep", p);
	return t_done();
}
