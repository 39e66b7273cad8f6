/* AF_INET and AF_INET6 streams on loopback: connect, accept, refusal, names, options, shutdown, reset, non-blocking. */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
static union { struct sockaddr a; struct sockaddr_in v4; struct sockaddr_in6 v6; } u;
static int fam;
static socklen_t len(void) { return fam == AF_INET ? sizeof u.v4 : sizeof u.v6; }
static void loop(int port)
{
	memset(&u, 0, sizeof u);
	u.a.sa_family = fam;
	if (fam == AF_INET)
		u.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK), u.v4.sin_port = htons(port);
	else
		u.v6.sin6_addr = in6addr_loopback, u.v6.sin6_port = htons(port);
}
static int port(void) { return ntohs(fam == AF_INET ? u.v4.sin_port : u.v6.sin6_port); }
static void family(int f)
{
	char b[100000];
	int v = 1;
	socklen_t n = sizeof v;
	fam = f;
	say("family %s\n", f == AF_INET ? "inet" : "inet6");
	int l = must(socket(f, SOCK_STREAM, 0));
	R(listen(-1, 1));
	R(accept(l, 0, 0));
	R(setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &v, sizeof v));
	loop(0);
	R(bind(l, &u.a, 2));
	R(bind(l, &u.a, len()));
	R(bind(l, &u.a, len()));
	R(listen(l, 2));
	n = sizeof u;
	R(getsockname(l, &u.a, &n));
	T(n == len() && u.a.sa_family == f && port() != 0);
	int p = port(), c = must(socket(f, SOCK_STREAM, 0)), c2 = must(socket(f, SOCK_STREAM, 0));
	R(bind(c2, &u.a, len()));
	R(getpeername(c, &u.a, &n));
	R(send(c, "x", 1, MSG_NOSIGNAL));
	R(recv(c, b, 1, 0));
	loop(p);
	R(connect(c, &u.a, len()));
	R(connect(c, &u.a, len()));
	n = sizeof u;
	int s = must(accept4(l, &u.a, &n, SOCK_CLOEXEC));
	int from = port();
	n = sizeof u;
	R(getsockname(c, &u.a, &n));
	T(port() == from);
	n = sizeof u;
	R(getpeername(c, &u.a, &n));
	T(port() == p);
	R(send(c, "hello", 5, 0));
	R(recv(s, b, 10, MSG_PEEK));
	R(recv(s, b, 2, 0));
	R(recv(s, b, 10, 0));
	R(recv(s, b, 10, MSG_DONTWAIT));
	pid_t k = must(fork());
	if (!k) {
		for (int i = 0; i < 5; i++)
			t_ms(10), write(c, "12", 2);
		_exit(0);
	}
	R(recv(s, b, 10, MSG_WAITALL));
	t_reap("slow writer", k);
	R(ioctl(s, FIONREAD, &v));
	N(v);
	/* Much data, checked. */
	k = must(fork());
	if (!k) {
		unsigned x = 0;
		close(s);
		for (int i = 0; i < 200; i++) {
			for (int q = 0; q < 9973; q++)
				b[q] = x++ * 13;
			for (int o = 0; o < 9973; o += write(c, b + o, 9973 - o))
				;
		}
		shutdown(c, SHUT_WR);
		_exit(read(c, b, 1));
	}
	close(c);
	unsigned x = 0, bad = 0;
	for (ssize_t g; (g = read(s, b, 12345)) > 0;)
		for (int i = 0; i < g; i++)
			bad += b[i] != (char)(x++ * 13);
	say("%u bytes %u wrong\n", x, bad);
	R(write(s, "!", 1));
	t_reap("sender", k);
	close(s);
	/* Nobody there. */
	close(l);
	loop(p);
	R(connect(c2, &u.a, len()));
	close(c2);
	/* Without blocking. */
	l = must(socket(f, SOCK_STREAM | SOCK_NONBLOCK, 0));
	loop(0);
	must(bind(l, &u.a, len())), must(listen(l, 5));
	n = sizeof u;
	must(getsockname(l, &u.a, &n));
	R(accept(l, 0, 0));
	c = must(socket(f, SOCK_STREAM | SOCK_NONBLOCK, 0));
	int r = connect(c, &u.a, len());
	T(r == 0 || errno == EINPROGRESS);
	struct pollfd q[2] = {{c, POLLOUT, 0}, {l, POLLIN, 0}};
	T(poll(&q[1], 1, 3000) == 1 && q[1].revents == POLLIN);
	T(poll(q, 1, 3000) == 1 && q[0].revents == POLLOUT);
	n = sizeof v;
	R(getsockopt(c, SOL_SOCKET, SO_ERROR, &v, &n));
	N(v);
	s = must(accept(l, 0, 0));
	T(!(fcntl(s, F_GETFL) & O_NONBLOCK));
	R(recv(c, b, 1, 0));
	long put = 0;
	while ((r = send(c, b, sizeof b, 0)) > 0 && put < 100000000)
		put += r;
	S(t_errno(errno));
	T(put > 50000);
	while (put > 0 && (r = read(s, b, sizeof b)) > 0)
		put -= r;
	N(put);
	/* Options. */
	v = 1;
	R(setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &v, sizeof v));
	v = 0, n = sizeof v;
	R(getsockopt(c, IPPROTO_TCP, TCP_NODELAY, &v, &n));
	T(v);
	R(setsockopt(c, SOL_SOCKET, SO_KEEPALIVE, &v, sizeof v));
	v = 8192;
	R(setsockopt(c, SOL_SOCKET, SO_RCVBUF, &v, sizeof v));
	n = sizeof v;
	R(getsockopt(c, SOL_SOCKET, SO_RCVBUF, &v, &n));
	T(v >= 8192);
	R(setsockopt(c, SOL_SOCKET, SO_KEEPALIVE, &v, 1));
	R(setsockopt(c, SOL_SOCKET, 9999, &v, sizeof v));
	struct linger lg = {1, 0};
	R(setsockopt(c, SOL_SOCKET, SO_LINGER, &lg, sizeof lg));
	close(c);
	R(read(s, b, 1)); /* it was cut off */
	R(read(s, b, 1));
	R(send(s, "x", 1, MSG_NOSIGNAL));
	close(s);
	struct timeval tv = {0, 30000};
	fcntl(l, F_SETFL, 0);
	R(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv));
	R(accept(l, 0, 0));
	close(l);
}
static volatile int broken;
static void h(int s) { broken = s; }
/* Waits until the other side's answer has come. */
static void answered(int c)
{
	struct pollfd p = {c, 0, 0};
	poll(&p, 1, 10000);
	say("poll %#x\n", p.revents);
}
/* Sending to who has closed, or wants nothing any more. */
static void nobody(void)
{
	static char b[1 << 20];
	int l = must(socket(AF_INET, SOCK_STREAM, 0)), c, s;
	fam = AF_INET;
	loop(0);
	must(bind(l, &u.a, len())), must(listen(l, 5));
	socklen_t n = len();
	must(getsockname(l, &u.a, &n));
	t_handle(SIGPIPE, h, 0);
	for (int how = 0; how < 5; how++) {
		say("way %d\n", how);
		c = must(socket(AF_INET, SOCK_STREAM, 0));
		must(connect(c, &u.a, len()));
		s = must(accept(l, 0, 0));
		if (how == 0)
			close(s);
		else if (how == 1)
			shutdown(s, SHUT_RDWR);
		else if (how == 2)
			shutdown(s, SHUT_RD), shutdown(s, SHUT_WR);
		else if (how == 3)
			shutdown(s, SHUT_WR), close(s);
		else {
			pid_t p = must(fork());
			if (!p) {
				close(s);
				while (send(c, b, sizeof b, MSG_NOSIGNAL) > 0)
					;
				S(t_errno(errno));
				_exit(0);
			}
			t_asleep(p, p);
			close(s);
			t_reap("sender", p);
			close(c);
			continue;
		}
		R(write(c, b, 10));
		N(broken);
		answered(c);
		if (how == 1 || how == 2)
			R(recv(s, b, 1, 0));
		R(write(c, b, 10));
		S(t_sig(broken));
		R(write(c, b, 10));
		R(read(c, b, 10));
		broken = 0;
		close(c), close(s);
	}
	close(l);
	signal(SIGPIPE, SIG_IGN);
}
int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	family(AF_INET);
	family(AF_INET6);
	nobody();
	return t_done();
}
