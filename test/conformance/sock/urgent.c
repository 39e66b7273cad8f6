/* Urgent data of a stream: its mark, who reads past it, inline, SIGURG; and listening where another is bound. */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#ifndef SIOCATMARK
#define SIOCATMARK 0x8905
#endif
static int c, s;
static volatile int urgent;
static void note(int n) { urgent += n == SIGURG; }
static void connected(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int l = must(socket(AF_INET, SOCK_STREAM, 0)), one = 1;
	must(bind(l, (void *)&a, n)), must(listen(l, 1));
	must(getsockname(l, (void *)&a, &n));
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(c, (void *)&a, n));
	s = must(accept(l, 0, 0));
	must(setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
	close(l);
}
static void put(const char *b, int flags) { must(send(c, b, strlen(b), flags)), usleep(20000); }
/* What a read of at most n bytes gets. */
static void get(int n, int flags)
{
	char b[64] = "";
	int r = recv(s, b, n, flags | MSG_DONTWAIT);
	if (r < 0)
		say("get %d: %s\n", n, t_errno(errno));
	else
		say("get %d: %d \"%.*s\"\n", n, r, flags & MSG_TRUNC ? 0 : r, b);
}
static void state(void)
{
	struct pollfd p = {s, POLLIN | POLLPRI, 0};
	int mark = -1, left = -1;
	poll(&p, 1, 0), ioctl(s, SIOCATMARK, &mark), ioctl(s, FIONREAD, &left);
	say("poll%s%s, mark %d, left %d\n", p.revents & POLLIN ? " in" : "", p.revents & POLLPRI ? " pri" : "", mark, left);
}
int main(void)
{
	int one = 1, zero = 0;
	connected();
	put("hello", MSG_OOB), put("world", 0);
	state(), get(2, 0), get(9, MSG_PEEK), get(9, 0), state();
	get(9, MSG_PEEK), get(1, MSG_OOB | MSG_PEEK), get(1, MSG_OOB), state(), get(1, MSG_OOB), get(9, 0), state();
	/* Passed, it is lost. */
	put("ab", MSG_OOB), put("cd", 0), get(9, 0), get(1, 0), state(), get(1, MSG_OOB), get(9, 0);
	/* A read at the mark with nothing behind passes it too. */
	put("!", MSG_OOB), state(), get(9, 0), get(1, MSG_OOB), state();
	/* The last one counts: those before it are the stream's, but the one that would be read next. */
	put("ab", MSG_OOB), put("cd", MSG_OOB), state(), get(9, 0), state(), get(1, MSG_OOB), get(9, 0);
	put("1", MSG_OOB), put("2", MSG_OOB), put("3", 0), state(), get(9, 0), get(9, 0);
	/* Counted away unread; a wait for all ends at the mark. */
	put("xyz", MSG_OOB), put("uvw", 0), get(9, MSG_TRUNC), get(1, MSG_TRUNC), get(9, 0);
	char b[9] = "";
	put("xyz", MSG_OOB), put("uvw", 0);
	R(recv(s, b, 5, MSG_WAITALL)), S(b);
	get(9, 0);
	/* In the stream. */
	setsockopt(s, SOL_SOCKET, SO_OOBINLINE, &one, sizeof one);
	put("ab", MSG_OOB), put("cd", 0), state(), get(1, MSG_OOB), get(9, 0), state(), get(2, 0), state(), get(9, 0);
	setsockopt(s, SOL_SOCKET, SO_OOBINLINE, &zero, sizeof zero);
	/* The owner is notified. */
	signal(SIGURG, note);
	put("!", MSG_OOB), N(urgent);
	R(fcntl(s, F_SETOWN, getpid()));
	put("!", MSG_OOB), N(urgent);
	put("!", 0), N(urgent);
	R(fcntl(s, F_SETOWN, 0));
	put("!", MSG_OOB), N(urgent);
	close(c), close(s);

	/* Bound by SO_REUSEADDR where another is bound: the first may listen, and then no other. */
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t n = sizeof a;
	int f[3];
	for (int i = 0; i < 3; i++) {
		f[i] = must(socket(AF_INET, SOCK_STREAM, 0));
		setsockopt(f[i], SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		R(bind(f[i], (void *)&a, sizeof a));
		must(getsockname(f[0], (void *)&a, &n));
	}
	R(listen(f[0], 1)), R(listen(f[1], 1)), R(listen(f[0], 2));
	close(f[0]);
	R(listen(f[1], 1)), R(listen(f[2], 1));
	return t_failed;
}
