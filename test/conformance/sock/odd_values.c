/* Options of sockets whose value is shorter than a number, outside its range, or not kept as it was given. */
#include "t.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

struct option {
	int level, name;
	const char *text;
};
#define O(l, n) {l, n, #n}
static const struct option ip[] = {
	O(IPPROTO_IP, IP_TOS), O(IPPROTO_IP, IP_TTL), O(IPPROTO_IP, IP_RECVOPTS), O(IPPROTO_IP, IP_PKTINFO), O(IPPROTO_IP, IP_MTU_DISCOVER),
	O(IPPROTO_IP, IP_RECVERR), O(IPPROTO_IP, IP_RECVTTL), O(IPPROTO_IP, IP_RECVTOS), O(IPPROTO_IP, IP_FREEBIND), O(IPPROTO_IP, IP_MINTTL),
	O(IPPROTO_IP, IP_MULTICAST_TTL), O(IPPROTO_IP, IP_MULTICAST_LOOP), O(IPPROTO_IP, IP_MULTICAST_ALL),
};
static const struct option ip6[] = {
	O(IPPROTO_IPV6, IPV6_UNICAST_HOPS), O(IPPROTO_IPV6, IPV6_MULTICAST_HOPS), O(IPPROTO_IPV6, IPV6_MULTICAST_LOOP), O(IPPROTO_IPV6, IPV6_MTU_DISCOVER),
	O(IPPROTO_IPV6, IPV6_RECVERR), O(IPPROTO_IPV6, IPV6_V6ONLY), O(IPPROTO_IPV6, IPV6_RECVPKTINFO), O(IPPROTO_IPV6, IPV6_TCLASS),
};
static const struct option tcp[] = {
	O(IPPROTO_TCP, TCP_NODELAY), O(IPPROTO_TCP, TCP_CORK), O(IPPROTO_TCP, TCP_KEEPIDLE), O(IPPROTO_TCP, TCP_KEEPINTVL), O(IPPROTO_TCP, TCP_KEEPCNT),
	O(IPPROTO_TCP, TCP_SYNCNT), O(IPPROTO_TCP, TCP_LINGER2), O(IPPROTO_TCP, TCP_DEFER_ACCEPT), O(IPPROTO_TCP, TCP_WINDOW_CLAMP),
	O(IPPROTO_TCP, TCP_QUICKACK), O(IPPROTO_TCP, TCP_USER_TIMEOUT), O(IPPROTO_TCP, TCP_NOTSENT_LOWAT), O(IPPROTO_TCP, TCP_MAXSEG),
};
static const struct option sol[] = {
	O(SOL_SOCKET, SO_REUSEADDR), O(SOL_SOCKET, SO_KEEPALIVE), O(SOL_SOCKET, SO_BROADCAST), O(SOL_SOCKET, SO_OOBINLINE), O(SOL_SOCKET, SO_PRIORITY),
	O(SOL_SOCKET, SO_TIMESTAMP), O(SOL_SOCKET, SO_BUSY_POLL),
	O(SOL_SOCKET, SO_DONTROUTE), O(SOL_SOCKET, SO_LINGER), O(SOL_SOCKET, SO_RCVTIMEO), O(SOL_SOCKET, SO_SNDTIMEO),
};

/* What is there after the option has been set, as many bytes as there is room for. */
static void show(int s, const struct option *o, unsigned room)
{
	unsigned char value[32];
	socklen_t len = room;
	memset(value, 0xaa, sizeof value);
	if (getsockopt(s, o->level, o->name, value, &len)) {
		say(" %u: %s", room, t_errno(errno));
		return;
	}
	say(" %u: %u", room, len);
	for (unsigned i = 0; i < len && i < sizeof value; i++)
		say("%c%02x", i ? '-' : ' ', value[i]);
}
static void one(int domain, int kind, const struct option *o)
{
	static const int values[] = {-1, 0, 1, 2, 3, 5, 7, 255, 256, 300, 65535, INT_MIN, INT_MAX};
	static const unsigned char bytes[32] = {3, 1, 0, 1};
	say("%s:\n", o->text);
	int s = must(socket(domain, kind, 0));
	say(" fresh"), show(s, o, 4), say("\n");
	for (unsigned len = 0; len <= 5; len++) {
		int r = setsockopt(s, o->level, o->name, bytes, len);
		say(" of length %u: %s", len, r ? t_errno(errno) : "ok"), show(s, o, 4), say("\n");
	}
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
		int r = setsockopt(s, o->level, o->name, &values[i], sizeof(int));
		say(" %d: %s", values[i], r ? t_errno(errno) : "ok"), show(s, o, 4), say("\n");
	}
	say(" room"), show(s, o, 0), show(s, o, 1), show(s, o, 2), show(s, o, 3), show(s, o, 8), say("\n");
	close(s);
}
#define ALL(d, k, list) do { say("-- " #d " " #k " " #list "\n"); for (unsigned i = 0; i < sizeof list / sizeof *list; i++) one(d, k, list + i); } while (0)
/* A limit of a wait is kept in ticks. */
static void rounded(void)
{
	static const long micros[] = {1, 999, 4000, 4001, 7999, 8000, 100001, 999999};
	struct timespec tick;
	must(clock_getres(CLOCK_MONOTONIC_COARSE, &tick));
	int s = must(socket(AF_INET, SOCK_STREAM, 0));
	for (unsigned i = 0; i < sizeof micros / sizeof *micros; i++) {
		struct timeval t = {3, micros[i]}, kept;
		socklen_t len = sizeof kept;
		must(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
		must(getsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &kept, &len));
		long more = (kept.tv_sec - 3) * 1000000 + kept.tv_usec - micros[i];
		T(more >= 0 && more < tick.tv_nsec / 1000 && (micros[i] + more) % (tick.tv_nsec / 1000) == 0);
	}
	close(s);
}
/* The clock of a connection's time stamps, which only a repairer may set. */
static void stamps(void)
{
	int s = must(socket(AF_INET, SOCK_STREAM, 0)), one = -1, two = -1;
	socklen_t len = sizeof one;
	R(getsockopt(s, IPPROTO_TCP, TCP_TIMESTAMP, &one, &len));
	t_ms(50);
	R(getsockopt(s, IPPROTO_TCP, TCP_TIMESTAMP, &two, &len));
	T((unsigned)two - (unsigned)one >= 49);
	R(setsockopt(s, IPPROTO_TCP, TCP_TIMESTAMP, &one, sizeof one));
	R(setsockopt(s, IPPROTO_TCP, TCP_TIMESTAMP, &one, 1));
	close(s);
}
int main(void)
{
	rounded();
	stamps();
	ALL(AF_INET, SOCK_STREAM, ip);
	ALL(AF_INET, SOCK_DGRAM, ip);
	ALL(AF_INET6, SOCK_STREAM, ip6);
	ALL(AF_INET6, SOCK_DGRAM, ip6);
	ALL(AF_INET, SOCK_STREAM, tcp);
	ALL(AF_INET, SOCK_STREAM, sol);
	ALL(AF_INET, SOCK_DGRAM, sol);
	ALL(AF_UNIX, SOCK_STREAM, sol);
	return t_done();
}
