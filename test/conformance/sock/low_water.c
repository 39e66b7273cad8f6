/* SO_RCVLOWAT: how many bytes a read that waits goes on for, and from how many on a stream of TCP is readable. */
#include "t.h"
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
static int s[2];
static char b[1 << 16];
static void by_tcp(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int l = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(l, (void *)&a, n)), must(listen(l, 1)), must(getsockname(l, (void *)&a, &n));
	s[0] = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(s[0], (void *)&a, n));
	s[1] = must(accept(l, 0, 0));
	close(l);
}
static void mark(int value)
{
	socklen_t n = sizeof value;
	R(setsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value));
	must(getsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &value, &n));
	N(value);
}
/* A child sends so many bytes once this process sleeps. */
static pid_t later(int bytes, int end)
{
	pid_t me = getpid(), p = must(fork());
	if (!p) {
		t_asleep(me, me);
		if (bytes)
			must(write(s[0], b, bytes));
		if (end)
			shutdown(s[0], SHUT_WR);
		_exit(0);
	}
	return p;
}
static void reads(int kind)
{
	struct iovec v[2] = {{b, 3}, {b + 3, 64}};
	struct msghdr h = {.msg_iov = v, .msg_iovlen = 2};
	must(write(s[0], b, 4));
	pid_t p = later(12, 0);
	switch (kind) {
	case 0: R(read(s[1], b, 64)); break;
	case 1: R(recv(s[1], b, 64, 0)); break;
	case 2: R(readv(s[1], v, 2)); break;
	case 3: R(recvmsg(s[1], &h, 0)); break;
	case 4: R(recv(s[1], b, 16, 0)); break; /* the buffer is full: that is as many as the mark would have */
	}
	t_reap("sender", p);
}
static void both(const char *what)
{
	struct pollfd p = {.fd = s[1], .events = POLLIN};
	struct timeval t = {0, 100000};
	say("-- %s\n", what);
	mark(0), mark(1), mark(10);
	for (int kind = 0; kind < 5; kind++)
		reads(kind);
	/* What need not wait takes what there is. */
	must(write(s[0], b, 4));
	t_ms(10);
	R(recv(s[1], b, 64, MSG_DONTWAIT));
	R(recv(s[1], b, 64, MSG_DONTWAIT));
	must(write(s[0], b, 4));
	fcntl(s[1], F_SETFL, O_NONBLOCK);
	R(read(s[1], b, 64));
	fcntl(s[1], F_SETFL, 0);
	/* A buffer smaller than the mark. */
	must(write(s[0], b, 12));
	R(read(s[1], b, 5)), R(recv(s[1], b, 7, 0));
	/* The limit of the wait, and the end: what has come counts. */
	must(setsockopt(s[1], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
	must(write(s[0], b, 4)), R(read(s[1], b, 64)), R(read(s[1], b, 64));
	must(write(s[0], b, 3)), R(recv(s[1], b, 64, 0)), R(recv(s[1], b, 64, 0));
	t.tv_usec = 0;
	must(setsockopt(s[1], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
	must(write(s[0], b, 4));
	t_ms(10);
	R(poll(&p, 1, 20));
	must(write(s[0], b, 5));
	t_ms(10);
	R(poll(&p, 1, 20));
	must(write(s[0], b, 1));
	R(poll(&p, 1, 2000));
	mark(11);
	R(poll(&p, 1, 20));
	mark(5);
	R(poll(&p, 1, 20));
	R(recv(s[1], b, 64, MSG_DONTWAIT));
	must(write(s[0], b, 3));
	pid_t c = later(0, 1);
	R(recv(s[1], b, 64, 0)), R(recv(s[1], b, 64, 0));
	t_reap("sender", c);
	close(s[0]), close(s[1]);
}
/* A mark beyond what is ever here: it is kept within that, and writer and poller do not wait for each other. */
static void beyond(int bytes)
{
	by_tcp();
	if (bytes)
		must(setsockopt(s[1], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes));
	int value = INT_MAX;
	socklen_t n = sizeof value;
	must(setsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value));
	must(getsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &value, &n));
	T(value > 0 && value < INT_MAX);
	if (bytes)
		T(value == bytes);
	else
		value = 1 << 20, must(setsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value));
	pid_t p = must(fork());
	if (!p) {
		long left = 2L * value + 5000;
		while (left > 0) {
			long w = write(s[0], b, left < (long)sizeof b ? left : (long)sizeof b);
			if (w <= 0)
				_exit(1);
			left -= w;
		}
		_exit(0);
	}
	struct pollfd f = {.fd = s[1], .events = POLLIN};
	T(poll(&f, 1, 20000) == 1);
	must(ioctl(s[1], FIONREAD, &value));
	close(s[0]);
	long all = 0, r;
	while ((r = read(s[1], b, sizeof b)) > 0)
		all += r;
	T(all > value - 1);
	t_reap("sender", p);
	close(s[1]);
}
int main(void)
{
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	both("unix");
	by_tcp();
	both("tcp");
	beyond(0);
	beyond(20000);
	return t_done();
}
