/* Memberships of multicast groups, by the old requests and by those for any protocol, with sources let in and kept out. */
/* not: i386 */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#define LO 1
static int port;
static struct sockaddr_in in(const char *a, int p)
{
	struct sockaddr_in s = {AF_INET, htons(p), {0}};
	inet_pton(AF_INET, a, &s.sin_addr);
	return s;
}
static struct sockaddr_in6 in6(const char *a, int p)
{
	struct sockaddr_in6 s = {.sin6_family = AF_INET6, .sin6_port = htons(p)};
	inet_pton(AF_INET6, a, &s.sin6_addr);
	return s;
}
static int group(int s, int level, int what, int lo, void *addr, int len)
{
	struct group_req r = {lo};
	memcpy(&r.gr_group, addr, len);
	return setsockopt(s, level, what, &r, sizeof r);
}
static int source(int s, int level, int what, int lo, void *addr, void *from, int len)
{
	struct group_source_req r = {lo};
	memcpy(&r.gsr_group, addr, len), memcpy(&r.gsr_source, from, len);
	return setsockopt(s, level, what, &r, sizeof r);
}
static int G(int s, int what, int lo, const char *a)
{
	struct sockaddr_in x = in(a, 0);
	return group(s, IPPROTO_IP, what, lo, &x, sizeof x);
}
static int G6(int s, int what, int lo, const char *a)
{
	struct sockaddr_in6 x = in6(a, 0);
	return group(s, IPPROTO_IPV6, what, lo, &x, sizeof x);
}
static int V(int s, int what, int lo, const char *a, const char *f)
{
	struct sockaddr_in x = in(a, 0), y = in(f, 0);
	return source(s, IPPROTO_IP, what, lo, &x, &y, sizeof x);
}
static int V6(int s, int what, int lo, const char *a, const char *f)
{
	struct sockaddr_in6 x = in6(a, 0), y = in6(f, 0);
	return source(s, IPPROTO_IPV6, what, lo, &x, &y, sizeof x);
}
/* The old form. */
static int O(int s, int what, const char *a, const char *f)
{
	struct ip_mreq_source r;
	inet_pton(AF_INET, a, &r.imr_multiaddr), inet_pton(AF_INET, f, &r.imr_sourceaddr), inet_pton(AF_INET, "127.0.0.1", &r.imr_interface);
	return setsockopt(s, IPPROTO_IP, what, &r, sizeof r);
}
/* IP_MULTICAST_LOOP: for interfaces that do not give back what they are given, which the loopback one does. */
static int loops = 1;
static int heard(int s, const char *from, const char *to)
{
	char b[10];
	int t = must(socket(AF_INET, SOCK_DGRAM, 0));
	struct sockaddr_in a = in(from, 0), g = in(to, port);
	struct in_addr lo = {htonl(INADDR_LOOPBACK)};
	must(bind(t, (void *)&a, sizeof a));
	must(setsockopt(t, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof lo));
	must(setsockopt(t, IPPROTO_IP, IP_MULTICAST_LOOP, &loops, sizeof loops));
	must(sendto(t, "x", 1, 0, (void *)&g, sizeof g));
	int r = recv(s, b, sizeof b, MSG_DONTWAIT);
	close(t);
	return r;
}
int main(void)
{
	int s = must(socket(AF_INET, SOCK_DGRAM, 0)), off = 0;
	struct sockaddr_in a = in("0.0.0.0", 0);
	must(setsockopt(s, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off));
	must(bind(s, (void *)&a, sizeof a));
	socklen_t n = sizeof a;
	must(getsockname(s, (void *)&a, &n));
	port = ntohs(a.sin_port);

	N(heard(s, "127.0.0.1", "239.1.2.3"));
	R(G(s, MCAST_JOIN_GROUP, LO, "239.1.2.3"));
	N(heard(s, "127.0.0.1", "239.1.2.3"));
	loops = 0;
	N(heard(s, "127.0.0.1", "239.1.2.3"));
	N(heard(s, "127.0.0.1", "239.1.2.4"));
	R(G(s, MCAST_JOIN_GROUP, LO, "239.1.2.3"));
	R(G(s, MCAST_JOIN_GROUP, LO, "10.1.2.3"));
	R(G(s, MCAST_JOIN_GROUP, 77, "239.1.2.5"));
	R(G(s, MCAST_LEAVE_GROUP, LO, "239.1.2.5"));
	R(G6(s, MCAST_JOIN_GROUP, LO, "ff02::5"));
	struct sockaddr_in g = in("239.9.9.9", 0);
	R(setsockopt(s, IPPROTO_IP, MCAST_JOIN_GROUP, &g, sizeof g));

	/* Kept out. */
	R(V(s, MCAST_BLOCK_SOURCE, LO, "239.1.2.3", "127.0.0.2"));
	N(heard(s, "127.0.0.2", "239.1.2.3"));
	N(heard(s, "127.0.0.3", "239.1.2.3"));
	R(V(s, MCAST_BLOCK_SOURCE, LO, "239.1.2.3", "127.0.0.2"));
	R(V(s, MCAST_JOIN_SOURCE_GROUP, LO, "239.1.2.3", "127.0.0.2"));
	R(V(s, MCAST_UNBLOCK_SOURCE, LO, "239.1.2.3", "127.0.0.3"));
	R(O(s, IP_UNBLOCK_SOURCE, "239.1.2.3", "127.0.0.2"));
	N(heard(s, "127.0.0.2", "239.1.2.3"));
	R(O(s, IP_BLOCK_SOURCE, "239.1.2.3", "127.0.0.4"));
	N(heard(s, "127.0.0.4", "239.1.2.3"));
	R(O(s, IP_BLOCK_SOURCE, "239.1.2.9", "127.0.0.4"));
	R(G(s, MCAST_LEAVE_GROUP, LO, "239.1.2.3"));
	N(heard(s, "127.0.0.1", "239.1.2.3"));
	R(V(s, MCAST_UNBLOCK_SOURCE, LO, "239.1.2.3", "127.0.0.4"));

	/* Let in. */
	R(V(s, MCAST_JOIN_SOURCE_GROUP, LO, "239.1.2.7", "127.0.0.5"));
	N(heard(s, "127.0.0.5", "239.1.2.7"));
	N(heard(s, "127.0.0.6", "239.1.2.7"));
	R(O(s, IP_ADD_SOURCE_MEMBERSHIP, "239.1.2.7", "127.0.0.6"));
	N(heard(s, "127.0.0.6", "239.1.2.7"));
	R(V(s, MCAST_JOIN_SOURCE_GROUP, LO, "239.1.2.7", "127.0.0.6"));
	R(V(s, MCAST_BLOCK_SOURCE, LO, "239.1.2.7", "127.0.0.6"));
	R(V(s, MCAST_LEAVE_SOURCE_GROUP, LO, "239.1.2.7", "127.0.0.9"));
	R(V(s, MCAST_LEAVE_SOURCE_GROUP, LO, "239.1.2.7", "127.0.0.5"));
	N(heard(s, "127.0.0.5", "239.1.2.7"));
	N(heard(s, "127.0.0.6", "239.1.2.7"));
	/* With the last one the membership goes. */
	R(O(s, IP_DROP_SOURCE_MEMBERSHIP, "239.1.2.7", "127.0.0.6"));
	N(heard(s, "127.0.0.6", "239.1.2.7"));
	R(G(s, MCAST_LEAVE_GROUP, LO, "239.1.2.7"));
	/* A group that lets all in turns to some. */
	R(G(s, MCAST_JOIN_GROUP, LO, "239.1.2.8"));
	R(V(s, MCAST_JOIN_SOURCE_GROUP, LO, "239.1.2.8", "127.0.0.5"));
	N(heard(s, "127.0.0.5", "239.1.2.8"));
	N(heard(s, "127.0.0.6", "239.1.2.8"));
	/* Ten sources at most. */
	int added = 0;
	for (int i = 10; i < 40; i++) {
		char f[20];
		snprintf(f, sizeof f, "127.0.1.%d", i);
		if (V(s, MCAST_JOIN_SOURCE_GROUP, LO, "239.1.2.8", f))
			break;
		added++;
	}
	say("added %d: %s\n", added, t_errno(errno));
	close(s);

	/* IPv6. */
	s = must(socket(AF_INET6, SOCK_DGRAM, 0));
	R(G6(s, MCAST_JOIN_GROUP, LO, "ff02::1234"));
	R(G6(s, MCAST_JOIN_GROUP, LO, "ff02::1234"));
	R(G6(s, MCAST_JOIN_GROUP, LO, "fe80::1"));
	R(G6(s, MCAST_JOIN_GROUP, 77, "ff02::1"));
	R(V6(s, MCAST_BLOCK_SOURCE, LO, "ff02::1234", "::2"));
	R(V6(s, MCAST_UNBLOCK_SOURCE, LO, "ff02::1234", "::2"));
	R(V6(s, MCAST_UNBLOCK_SOURCE, LO, "ff02::1234", "::2"));
	R(G6(s, MCAST_LEAVE_GROUP, LO, "ff02::1234"));
	R(G6(s, MCAST_LEAVE_GROUP, LO, "ff02::1234"));
	R(V6(s, MCAST_JOIN_SOURCE_GROUP, LO, "ff05::1", "::5"));
	R(V6(s, MCAST_LEAVE_SOURCE_GROUP, LO, "ff05::1", "::5"));
	R(V6(s, MCAST_LEAVE_SOURCE_GROUP, LO, "ff05::1", "::5"));
	return t_failed;
}
