/* Options about the headers of IPv6: what is asked for and given back, headers taken away, and those that cannot be given. */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
static void flag(int type, const char *name, int option)
{
	int s = must(socket(AF_INET6, type, 0)), v = -1, set[2];
	socklen_t n = sizeof v;
	int r = getsockopt(s, IPPROTO_IPV6, option, &v, &n);
	say("%s: %d %d", name, r, v);
	for (int on = 1; on >= 0; on--) {
		int want = on * 7;
		set[on] = setsockopt(s, IPPROTO_IPV6, option, &want, sizeof want);
		n = sizeof v;
		getsockopt(s, IPPROTO_IPV6, option, &v, &n);
		say(", set %d is %d", set[on], v);
	}
	if (option == IPV6_AUTOFLOWLABEL)
		say("\n");
	else
		say(", short %s\n", setsockopt(s, IPPROTO_IPV6, option, &v, 2) ? t_errno(errno) : "ok");
	close(s);
}
#define F(o) flag(type, #o, o)
static void header(int type, const char *name, int option)
{
	int s = must(socket(AF_INET6, type, 0)), one = 1;
	char b[64] = {0};
	socklen_t n = sizeof b;
	int r = getsockopt(s, IPPROTO_IPV6, option, b, &n);
	say("%s: %d, %d bytes", name, r, (int)n);
	say("; taken away %d", setsockopt(s, IPPROTO_IPV6, option, 0, 0));
	say("; bad length %s\n", setsockopt(s, IPPROTO_IPV6, option, &one, sizeof one) ? t_errno(errno) : "ok");
	close(s);
}
#define H(o) header(type, #o, o)
int main(void)
{
	for (int i = 0; i < 2; i++) {
		int type = i ? SOCK_DGRAM : SOCK_STREAM;
		say("%s\n", i ? "datagrams" : "streams");
		F(IPV6_RECVHOPOPTS), F(IPV6_RECVRTHDR), F(IPV6_RECVDSTOPTS), F(IPV6_2292HOPOPTS), F(IPV6_2292RTHDR), F(IPV6_2292DSTOPTS);
		flag(type, "IPV6_FLOWINFO", 11), flag(type, "IPV6_FLOWINFO_SEND", 33), F(IPV6_RECVPATHMTU), F(IPV6_AUTOFLOWLABEL);
		H(IPV6_HOPOPTS), H(IPV6_RTHDR), H(IPV6_RTHDRDSTOPTS), H(IPV6_DSTOPTS);
		/* A routing header of the first kind, which nobody may send any more. */
		int s = must(socket(AF_INET6, type, 0));
		char route[24] = {0, 2, 0, 1};
		R(setsockopt(s, IPPROTO_IPV6, IPV6_RTHDR, route, sizeof route));
		close(s);
		s = must(socket(AF_INET, type, 0));
		int one = 1;
		T(setsockopt(s, IPPROTO_IPV6, IPV6_RECVRTHDR, &one, sizeof one) == -1);
		close(s);
	}
	CHILD("without the right", if (!geteuid()) must(setresuid(1000, 1000, 1000)); int s = must(socket(AF_INET6, SOCK_DGRAM, 0)); char h[8] = {0, 0, 1, 4};
	      R(setsockopt(s, IPPROTO_IPV6, IPV6_HOPOPTS, h, sizeof h)));
	/* A datagram that came without such headers brings none. */
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t n = sizeof a;
	int s = must(socket(AF_INET6, SOCK_DGRAM, 0)), one = 1;
	must(bind(s, (void *)&a, sizeof a));
	must(getsockname(s, (void *)&a, &n));
	must(setsockopt(s, IPPROTO_IPV6, IPV6_RECVRTHDR, &one, sizeof one));
	must(setsockopt(s, IPPROTO_IPV6, IPV6_RECVHOPOPTS, &one, sizeof one));
	must(setsockopt(s, IPPROTO_IPV6, IPV6_RECVDSTOPTS, &one, sizeof one));
	char b[16], c[256];
	must(sendto(s, "text", 4, 0, (void *)&a, sizeof a));
	struct iovec v = {b, sizeof b};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = sizeof c};
	R(recvmsg(s, &m, 0));
	N(m.msg_controllen);
	N(m.msg_flags);
	return t_done();
}
