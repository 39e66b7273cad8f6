/* A handler in the middle of each blocking call: EINTR without SA_RESTART, going on with it, and the calls that never go on. */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
static volatile int count;
static int flags;
static void h(int s) { (void)s, count++; }
/* Sends SIGUSR1 once the parent sleeps, then lets the call end. */
static void helper(int endfd, int how)
{
	pid_t me = getppid();
	t_asleep(me, me);
	kill(me, SIGUSR1);
	t_ms(150);
	if (how == 1)
		write(endfd, "12345678", 8);
	else if (how == 2)
		for (char b[65536]; read(endfd, b, sizeof b) == sizeof b;)
			break;
	_exit(0);
}
#define TRY(name, fd, how, call) do { \
	count = 0; pid_t p_ = must(fork()); if (!p_) helper(fd, how); \
	errno = 0; long r_ = (long)(call); int e_ = errno; \
	if (r_ < 0) say("%s: %s, handled %d\n", name, t_errno(e_), count); else say("%s: %s, handled %d\n", name, r_ == 0 ? "0" : "positive", count); \
	while (waitpid(p_, 0, 0) == -1 && errno == EINTR); } while (0)
static void round_(void)
{
	int p[2], s[2], f[2], ev, ep;
	char b[16];
	must(pipe(p)), must(pipe(f)), must(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	ev = must(eventfd(0, 0)), ep = must(epoll_create1(0));
	struct epoll_event ee = {EPOLLIN, {0}};
	TRY("read pipe", p[1], 1, read(p[0], b, 8));
	if (!(flags & SA_RESTART))
		read(p[0], b, 8);
	TRY("read socket", s[1], 1, read(s[0], b, 8));
	if (!(flags & SA_RESTART))
		read(s[0], b, 8);
	TRY("recv with timeout", s[1], 1, (setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){3, 0}, sizeof(struct timeval)), recv(s[0], b, 8, 0)));
	read(s[0], b, 8);
	TRY("read eventfd", ev, 1, read(ev, b, 8));
	fcntl(f[1], F_SETFL, O_NONBLOCK);
	static char big[65536];
	while (write(f[1], big, sizeof big) > 0)
		;
	fcntl(f[1], F_SETFL, 0);
	TRY("write pipe", f[0], 2, write(f[1], b, 8));
	pid_t c = must(fork());
	if (!c) {
		t_ms(700);
		_exit(0);
	}
	TRY("waitpid", 0, 0, waitpid(c, 0, 0) > 0 ? 1 : -1);
	while (waitpid(c, 0, 0) == -1 && errno == EINTR)
		;
	struct pollfd q = {p[0], POLLIN, 0};
	while (fcntl(p[0], F_SETFL, O_NONBLOCK), read(p[0], b, 16) > 0)
		;
	fcntl(p[0], F_SETFL, 0);
	TRY("poll", p[1], 1, poll(&q, 1, 3000));
	read(p[0], b, 8);
	fd_set fs;
	FD_ZERO(&fs);
	FD_SET(p[0], &fs);
	TRY("select", p[1], 1, select(p[0] + 1, &fs, 0, 0, &(struct timeval){3, 0}));
	read(p[0], b, 8);
	epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &ee);
	TRY("epoll_wait", p[1], 1, epoll_wait(ep, &ee, 1, 3000));
	read(p[0], b, 8);
	TRY("nanosleep", 0, 0, nanosleep(&(struct timespec){0, 400000000}, 0));
	TRY("pause", 0, 0, pause());
	sigset_t m;
	sigemptyset(&m);
	TRY("sigsuspend", 0, 0, sigsuspend(&m));
	sigaddset(&m, SIGUSR2);
	TRY("sigtimedwait", 0, 0, sigtimedwait(&m, 0, &(struct timespec){0, 400000000}));
	int word = 0;
	TRY("futex, no timeout", 0, 0, (count || 1) && syscall(SYS_futex, &word, 0, 0, &(struct timespec){0, 400000000}, 0, 0));
	int lf = must(open("lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	for (int kind = 0; kind < 2; kind++) {
		int ready[2];
		must(pipe(ready));
		c = must(fork());
		if (!c) {
			int g = open("lock", O_RDWR);
			struct flock l = {.l_type = F_WRLCK};
			kind ? fcntl(g, F_SETLK, &l) : flock(g, LOCK_EX);
			write(ready[1], "x", 1);
			t_ms(700);
			_exit(0);
		}
		must(read(ready[0], b, 1));
		if (kind)
			TRY("fcntl lock", 0, 0, fcntl(lf, F_SETLKW, &(struct flock){.l_type = F_WRLCK}));
		else
			TRY("flock", 0, 0, flock(lf, LOCK_EX));
		flock(lf, LOCK_UN);
		while (waitpid(c, 0, 0) == -1 && errno == EINTR)
			;
	}
	int l = must(socket(AF_UNIX, SOCK_STREAM, 0)), nn;
	struct sockaddr_un a = {AF_UNIX, "acc"};
	unlink("acc");
	must(bind(l, (void *)&a, sizeof a)), must(listen(l, 1));
	c = must(fork());
	if (!c) {
		t_ms(700);
		nn = socket(AF_UNIX, SOCK_STREAM, 0);
		connect(nn, (void *)&a, sizeof a);
		_exit(0);
	}
	TRY("accept", 0, 0, accept(l, 0, 0));
	while (waitpid(c, 0, 0) == -1 && errno == EINTR)
		;
	must(mkfifo(flags ? "fifo1" : "fifo0", 0600));
	c = must(fork());
	if (!c) {
		t_ms(700);
		fcntl(open(flags ? "fifo1" : "fifo0", O_WRONLY | O_NONBLOCK), F_GETFL);
		_exit(0);
	}
	TRY("open fifo", 0, 0, open(flags ? "fifo1" : "fifo0", O_RDONLY));
	while (waitpid(c, 0, 0) == -1 && errno == EINTR)
		;
}
int main(void)
{
	say("without SA_RESTART\n");
	t_handle(SIGUSR1, h, flags = 0);
	round_();
	say("with SA_RESTART\n");
	t_handle(SIGUSR1, h, flags = SA_RESTART);
	round_();
	return t_done();
}
