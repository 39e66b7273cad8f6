/* Groups where there is no interface but the loopback one, and no way to them: the interface has to be named. */
/* not: i386 */
#include "t.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#define NAME(v, what, i) setsockopt(v, IPPROTO_IP, what, &i, sizeof i)
#define NAME6(v, what, i) setsockopt(v, IPPROTO_IPV6, what, &i, sizeof i)
static int to(int s, const char *a)
{
	struct sockaddr_in d = {AF_INET, htons(9999), {inet_addr(a)}};
	return sendto(s, "x", 1, 0, (void *)&d, sizeof d);
}
static int connects(int s, const char *a)
{
	struct sockaddr_in d = {AF_INET, htons(9999), {inet_addr(a)}};
	return connect(s, (void *)&d, sizeof d);
}
int main(void)
{
	if (geteuid())
		return t_done();
	/* A name space with nothing else; inside there is nothing else anyway. */
	if (unshare(CLONE_NEWNET) == 0) {
		struct ifreq r = {.ifr_name = "lo"};
		r.ifr_flags = IFF_UP;
		must(ioctl(must(socket(AF_INET, SOCK_DGRAM, 0)), SIOCSIFFLAGS, &r));
	}
	int s = must(socket(AF_INET, SOCK_DGRAM, 0)), t = must(socket(AF_INET6, SOCK_DGRAM, 0));
	struct ip_mreq any = {{inet_addr("239.255.0.1")}, {INADDR_ANY}}, lo = {any.imr_multiaddr, {inet_addr("127.0.0.1")}};
	struct ip_mreq none = {any.imr_multiaddr, {inet_addr("10.9.9.9")}}, odd = {{inet_addr("10.9.9.9")}, {INADDR_ANY}};
	R(NAME(s, IP_ADD_MEMBERSHIP, any));
	R(NAME(s, IP_DROP_MEMBERSHIP, any));
	R(NAME(s, IP_ADD_MEMBERSHIP, none));
	R(NAME(s, IP_ADD_MEMBERSHIP, odd));
	R(NAME(s, IP_ADD_MEMBERSHIP, lo));
	R(NAME(s, IP_ADD_MEMBERSHIP, lo));
	R(NAME(s, IP_DROP_MEMBERSHIP, any));
	R(to(s, "239.255.0.1"));
	R(connects(s, "239.255.0.1"));
	R(NAME(s, IP_DROP_MEMBERSHIP, lo));
	R(NAME(s, IP_DROP_MEMBERSHIP, lo));
	struct ip_mreqn n = {any.imr_multiaddr, {INADDR_ANY}, 1};
	R(NAME(s, IP_ADD_MEMBERSHIP, n));
	n.imr_ifindex = 7;
	R(NAME(s, IP_DROP_MEMBERSHIP, n));
	n.imr_ifindex = 1;
	R(NAME(s, IP_DROP_MEMBERSHIP, n));
	struct ip_mreq_source f = {any.imr_multiaddr, {INADDR_ANY}, {inet_addr("127.0.0.2")}};
	R(NAME(s, IP_ADD_SOURCE_MEMBERSHIP, f));
	R(NAME(s, IP_BLOCK_SOURCE, f));
	f.imr_interface.s_addr = inet_addr("127.0.0.1");
	R(NAME(s, IP_ADD_SOURCE_MEMBERSHIP, f));
	R(NAME(s, IP_DROP_SOURCE_MEMBERSHIP, f));
	struct group_req g = {0};
	struct sockaddr_in a = {AF_INET, 0, any.imr_multiaddr};
	memcpy(&g.gr_group, &a, sizeof a);
	R(NAME(s, MCAST_JOIN_GROUP, g));
	R(NAME(s, MCAST_LEAVE_GROUP, g));
	g.gr_interface = 1;
	R(NAME(s, MCAST_JOIN_GROUP, g));
	R(NAME(s, MCAST_LEAVE_GROUP, g));

	struct ipv6_mreq q = {0};
	inet_pton(AF_INET6, "ff02::1234", &q.ipv6mr_multiaddr);
	R(NAME6(t, IPV6_ADD_MEMBERSHIP, q));
	R(NAME6(t, IPV6_DROP_MEMBERSHIP, q));
	q.ipv6mr_interface = 1;
	R(NAME6(t, IPV6_ADD_MEMBERSHIP, q));
	q.ipv6mr_interface = 0;
	R(NAME6(t, IPV6_DROP_MEMBERSHIP, q));
	R(NAME6(t, IPV6_DROP_MEMBERSHIP, q));
	inet_pton(AF_INET6, "::1", &q.ipv6mr_multiaddr);
	R(NAME6(t, IPV6_ADD_MEMBERSHIP, q));

	/* Sending: by the interface that is named, or that of the address. */
	R(NAME(s, IP_MULTICAST_IF, lo.imr_interface));
	R(to(s, "239.255.0.1"));
	R(connects(s, "239.255.0.1"));
	s = must(socket(AF_INET, SOCK_DGRAM, 0));
	a = (struct sockaddr_in){AF_INET, 0, {inet_addr("127.0.0.5")}};
	must(bind(s, (void *)&a, sizeof a));
	R(to(s, "239.255.0.1"));
	R(connects(s, "239.255.0.1"));
	return t_done();
}
