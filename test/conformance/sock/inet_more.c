/* More of inet: address reuse, any address, v4 in v6, the backlog, closed listeners, sending to oneself. */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
static struct sockaddr_in in(uint32_t a, int p) { return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(p), .sin_addr.s_addr = htonl(a)}; }
static int port(int f)
{
	struct sockaddr_in6 a;
	socklen_t n = sizeof a;
	must(getsockname(f, (void *)&a, &n));
	return ntohs(a.sin6_port);
}
int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	struct sockaddr_in a = in(INADDR_ANY, 0);
	int l = must(socket(AF_INET, SOCK_STREAM, 0)), one = 1, c, s;
	char b[64];
	must(bind(l, (void *)&a, sizeof a)), must(listen(l, 5));
	int p = port(l);
	a = in(INADDR_LOOPBACK, p);
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	R(connect(c, (void *)&a, sizeof a));
	socklen_t n = sizeof a;
	s = must(accept(l, (void *)&a, &n));
	S(inet_ntop(AF_INET, &a.sin_addr, b, 64));
	n = sizeof a;
	must(getsockname(s, (void *)&a, &n));
	S(inet_ntop(AF_INET, &a.sin_addr, b, 64));
	a = in(0x7f050607, p); /* all of 127/8 is here */
	int c3 = must(socket(AF_INET, SOCK_STREAM, 0));
	R(connect(c3, (void *)&a, sizeof a));
	/* The port is taken while a connection lives, unless reuse is asked for. */
	int m = must(socket(AF_INET, SOCK_STREAM, 0));
	a = in(INADDR_LOOPBACK, p);
	R(bind(m, (void *)&a, sizeof a));
	close(l);
	R(bind(m, (void *)&a, sizeof a));
	setsockopt(m, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	close(s), close(c), close(c3);
	close(m);
	m = must(socket(AF_INET, SOCK_STREAM, 0));
	setsockopt(m, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	R(bind(m, (void *)&a, sizeof a));
	close(m);
	a = in(0x08080808, 0);
	m = must(socket(AF_INET, SOCK_STREAM, 0));
	R(bind(m, (void *)&a, sizeof a));
	/* Data waits for a late accept; closed before the accept it is still there. */
	l = must(socket(AF_INET6, SOCK_STREAM, 0));
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
	must(bind(l, (void *)&a6, sizeof a6)), must(listen(l, 3));
	p = port(l);
	a = in(INADDR_LOOPBACK, p);
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	R(connect(c, (void *)&a, sizeof a)); /* reaches the v6 listener */
	R(write(c, "early", 5));
	close(c);
	n = sizeof a6;
	s = must(accept(l, (void *)&a6, &n));
	S(inet_ntop(AF_INET6, &a6.sin6_addr, b, 64));
	memset(b, 0, sizeof b);
	R(read(s, b, 64));
	S(b);
	R(read(s, b, 64));
	close(s);
	int v6 = must(socket(AF_INET6, SOCK_STREAM, 0));
	R(setsockopt(v6, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one));
	/* A listener that closes resets who waits in its queue. */
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(c, (void *)&a, sizeof a));
	close(l);
	R(read(c, b, 1));
	R(write(c, "x", 1));
	close(c);
	R(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
	c = must(socket(AF_INET, SOCK_STREAM, IPPROTO_TCP));
	a.sin_family = 77;
	R(connect(c, (void *)&a, sizeof a));
	a.sin_family = AF_INET;
	R(connect(c, (void *)&a, 3));
	R(connect(c, (void *)8, sizeof a));
	/* Both halves shut. */
	l = must(socket(AF_INET, SOCK_STREAM, 0));
	a = in(INADDR_LOOPBACK, 0);
	must(bind(l, (void *)&a, sizeof a)), must(listen(l, 3));
	a.sin_port = htons(port(l));
	must(connect(c, (void *)&a, sizeof a));
	s = must(accept(l, 0, 0));
	R(shutdown(c, SHUT_RD));
	R(read(c, b, 1));
	R(shutdown(c, SHUT_WR));
	R(read(s, b, 1));
	struct pollfd q = {s, POLLIN | POLLOUT | POLLRDHUP, 0};
	R(poll(&q, 1, 0));
	N(q.revents);
	R(shutdown(s, SHUT_RDWR));
	R(shutdown(l, SHUT_RD)); /* wakes and refuses accept */
	R(accept(l, 0, 0));
	/* accept in one process, connect in many. */
	l = must(socket(AF_INET, SOCK_STREAM, 0));
	a = in(INADDR_LOOPBACK, 0);
	must(bind(l, (void *)&a, sizeof a)), must(listen(l, 50));
	a.sin_port = htons(port(l));
	for (int i = 0; i < 20; i++)
		if (!must(fork())) {
			c = must(socket(AF_INET, SOCK_STREAM, 0));
			must(connect(c, (void *)&a, sizeof a));
			b[0] = i;
			write(c, b, 1);
			_exit(read(c, b, 1) != 1 || b[0] != i + 1);
		}
	for (int i = 0; i < 20; i++) {
		s = must(accept(l, 0, 0));
		read(s, b, 1), b[0]++, write(s, b, 1), close(s);
	}
	int st, good = 0;
	while (wait(&st) > 0)
		good += st == 0;
	N(good);
	return t_done();
}
