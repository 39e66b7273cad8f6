/* signalfd: read, poll, mask changes, several records, fields. */
#include "t.h"
#include <sys/signalfd.h>
int main(void)
{
	sigset_t m;
	sigemptyset(&m);
	sigaddset(&m, SIGUSR1);
	sigaddset(&m, SIGRTMIN + 1);
	sigaddset(&m, SIGCHLD);
	sigprocmask(SIG_BLOCK, &m, 0);
	R(signalfd(-1, &m, 0x1234));
	R(signalfd(0, &m, 0));
	R(signalfd(99, &m, 0));
	int f = must(signalfd(-1, &m, SFD_NONBLOCK | SFD_CLOEXEC));
	T(fcntl(f, F_GETFD) == FD_CLOEXEC);
	T(fcntl(f, F_GETFL) & O_NONBLOCK);
	struct signalfd_siginfo s[4];
	N(sizeof *s);
	R(read(f, s, sizeof s));
	R(read(f, s, 10));
	R(write(f, s, 128));
	struct pollfd p = {f, POLLIN, 0};
	R(poll(&p, 1, 0));
	kill(getpid(), SIGUSR1);
	sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 1});
	sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 2});
	sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 3});
	R(poll(&p, 1, 0));
	int n = R(read(f, s, sizeof s)) / 128;
	for (int i = 0; i < n; i++)
		say("%s code %d int %d pid %d uid %d\n", t_sig(s[i].ssi_signo), s[i].ssi_code, s[i].ssi_int, s[i].ssi_pid == (unsigned)getpid(), s[i].ssi_uid == getuid());
	R(poll(&p, 1, 0));
	pid_t c = must(fork());
	if (!c)
		_exit(5);
	R(poll(&p, 1, 5000));
	R(read(f, s, 128));
	say("%s code %d status %d\n", t_sig(s[0].ssi_signo), s[0].ssi_code, s[0].ssi_status);
	t_reap("child", c);
	/* A smaller set. */
	sigdelset(&m, SIGUSR1);
	T(signalfd(f, &m, 0) == f);
	kill(getpid(), SIGUSR1);
	R(poll(&p, 1, 0));
	R(read(f, s, 128));
	/* Blocking read, woken by a child's kill. */
	fcntl(f, F_SETFL, 0);
	pid_t me = getpid();
	c = must(fork());
	if (!c) {
		t_asleep(me, me);
		sigqueue(me, SIGRTMIN + 1, (union sigval){.sival_int = 9});
		pause();
	}
	R(read(f, s, 128));
	N(s[0].ssi_int);
	kill(c, SIGKILL);
	t_reap("child", c);
	/* Each reader sees its own process's signals. */
	R(read(f, s, 128));
	CHILD("own view", {
		fcntl(f, F_SETFL, O_NONBLOCK);
		R(read(f, s, 128));
		raise(SIGRTMIN + 1);
		R(read(f, s, 128));
	});
	return t_done();
}
