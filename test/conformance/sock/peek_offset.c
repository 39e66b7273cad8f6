/* SO_PEEK_OFF: where a peek begins, how peeks move it on and reads back, over bytes and over messages. */
/* linux: 6.9 */
#include "t.h"
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif
static int s[2];
static const char *off(void)
{
	static char b[40];
	int v = 77;
	socklen_t l = sizeof v;
	if (getsockopt(s[0], SOL_SOCKET, SO_PEEK_OFF, &v, &l))
		return t_errno(errno);
	snprintf(b, sizeof b, "%d", v);
	return b;
}
static void set(int v)
{
	int r = setsockopt(s[0], SOL_SOCKET, SO_PEEK_OFF, &v, sizeof v);
	say("set %d: %s, now %s\n", v, r ? t_errno(errno) : "ok", off());
}
static void get(const char *what, int len, int flags)
{
	char b[64] = "";
	struct iovec v = { b, len };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	int n = recvmsg(s[0], &m, flags | MSG_DONTWAIT);
	if (n < 0)
		say("%s %d: %s, off %s\n", what, len, t_errno(errno), off());
	else
		say("%s %d: %d \"%.*s\"%s, off %s\n", what, len, n, n < len ? n : len, b, m.msg_flags & MSG_TRUNC ? " truncated" : "", off());
}
static void peek(int len) { get("peek", len, MSG_PEEK); }
static void take(int len) { get("take", len, 0); }
static void put(const char *t) { must(send(s[1], t, strlen(t), 0)); }
static void tour(const char *name, int type, int wait)
{
	say("-- %s: at first %s\n", name, off());
	put("abcdefgh");
	put("ijklm");
	put("nopqrstuvw");
	if (wait)
		usleep(20000);
	peek(3);
	peek(3);
	set(0);
	peek(3);
	peek(3);
	peek(4);
	peek(40);
	peek(40);
	peek(40);
	take(2);
	peek(2);
	set(1);
	peek(3);
	peek(40);
	take(4);
	peek(4);
	set(100);
	peek(4);
	set(-5);
	peek(4);
	take(3);
	peek(4);
	set(3);
	get("peek and trunc", 2, MSG_PEEK | MSG_TRUNC);
	peek(2);
	take(40);
	take(40);
	set(2);
	put("0123456789");
	if (wait)
		usleep(20000);
	peek(4);
	take(40);
	take(40);
	peek(4);
	set(-1);
	if (type != SOCK_STREAM) {
		/* Empty messages: each is peeked at once, and then passed over. */
		say("- empty\n");
		put("");
		put("abc");
		put("");
		put("");
		put("de");
		if (wait)
			usleep(20000);
		peek(4);
		peek(4);
		set(0);
		peek(4);
		peek(2);
		peek(4);
		peek(4);
		peek(4);
		peek(4);
		peek(4);
		set(0);
		peek(4);
		set(3);
		peek(4);
		set(-1);
		peek(4);
		take(4);
		take(4);
		peek(4);
		set(0);
		peek(4);
		for (int i = 0; i < 4; i++)
			take(4);
	}
	close(s[0]);
	close(s[1]);
}
static void inet(int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t l = sizeof a;
	int k = must(socket(AF_INET, type, 0));
	must(bind(k, (void *)&a, l));
	must(getsockname(k, (void *)&a, &l));
	s[1] = must(socket(AF_INET, type, 0));
	if (type == SOCK_STREAM)
		must(listen(k, 1));
	must(connect(s[1], (void *)&a, l));
	s[0] = k;
	if (type == SOCK_STREAM) {
		s[0] = must(accept(k, 0, 0));
		close(k);
	}
}
/* A socket that is accepted begins with its listener's. */
static void inherited(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t l = sizeof a;
	int k = must(socket(AF_INET, SOCK_STREAM, 0));
	must(listen(k, 1));
	must(getsockname(k, (void *)&a, &l));
	s[0] = k;
	say("-- accepted\n");
	set(2);
	s[1] = must(socket(AF_INET, SOCK_STREAM, 0));
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(connect(s[1], (void *)&a, l));
	s[0] = must(accept(k, 0, 0));
	must(close(k));
	say("off %s\n", off());
	put("abcdef");
	usleep(20000);
	peek(2);
	peek(9);
	take(9);
}
/* A peek passes an urgent byte where it begins, and ends in front of one. */
static void urgent(void)
{
	int one = 1;
	say("-- urgent\n");
	must(setsockopt(s[1], IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof one));
	put("0123");
	must(send(s[1], "45!", 3, MSG_OOB));
	usleep(20000);
	put("abcdef");
	usleep(20000);
	for (int i = 0; i < 12; i += 2) {
		set(i);
		peek(3);
		peek(3);
	}
	set(6);
	peek(2);
	set(7);
	peek(2);
	take(3);
	peek(2);
	set(0);
	peek(9);
	peek(9);
	take(9);
	peek(9);
	set(1);
	peek(9);
	take(9);
	peek(9);
	take(9);
	must(close(s[0]));
	must(close(s[1]));
}
int main(void)
{
	alarm(20);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	tour("unix stream", SOCK_STREAM, 0);
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	tour("unix datagrams", SOCK_DGRAM, 0);
	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
	tour("unix packets", SOCK_SEQPACKET, 0);
	inet(SOCK_DGRAM);
	tour("UDP", SOCK_DGRAM, 1);
	inet(SOCK_STREAM);
	tour("TCP", SOCK_STREAM, 1);
	inherited();
	urgent();
	s[0] = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	say("-- netlink\n");
	set(0);
	/* A peek that finds nothing where it begins waits for it. */
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	put("abc");
	set(3);
	pid_t p = must(fork());
	if (!p) {
		char b[8];
		int n = recv(s[0], b, 8, MSG_PEEK);
		say("waited: %d \"%.*s\"\n", n, n, b);
		_exit(0);
	}
	t_asleep(p, p);
	put("de");
	t_reap("child", p);
	say("off %s\n", off());
	return t_done();
}
