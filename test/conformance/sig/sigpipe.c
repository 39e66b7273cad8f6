/* SIGPIPE and EPIPE: pipes, sockets, MSG_NOSIGNAL, and the default death. */
#include "t.h"
#include <sys/socket.h>
static volatile int n;
static void h(int s, siginfo_t *i, void *u)
{
	(void)u;
	n++;
	say("%s code %d pid own %d\n", t_sig(s), i->si_code, i->si_pid == getpid());
}
int main(void)
{
	int p[2], s[2];
	must(pipe(p));
	close(p[0]);
	CHILD("default", write(p[1], "x", 1));
	t_info(SIGPIPE, h, 0);
	R(write(p[1], "x", 1));
	R(write(p[1], "", 0));
	struct iovec v = {"x", 1};
	R(writev(p[1], &v, 1));
	N(n);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	close(s[0]);
	R(send(s[1], "x", 1, MSG_NOSIGNAL));
	N(n);
	R(send(s[1], "x", 1, 0));
	R(write(s[1], "x", 1));
	signal(SIGPIPE, SIG_IGN);
	R(write(p[1], "x", 1));
	R(write(s[1], "x", 1));
	sigset_t m;
	sigemptyset(&m), sigaddset(&m, SIGPIPE);
	t_info(SIGPIPE, h, 0);
	sigprocmask(SIG_BLOCK, &m, 0);
	R(write(p[1], "x", 1));
	struct timespec z = {0, 0};
	T(sigtimedwait(&m, 0, &z) == SIGPIPE);
	return t_done();
}
