/* getaddrinfo of localhost and numbers, interfaces by ioctl, by getifaddrs and by netlink. */
#include "t.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
int main(void)
{
	struct addrinfo h = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *r = 0;
	char b[8192];
	N(getaddrinfo("localhost", "80", &h, &r));
	if (r)
		S(inet_ntop(AF_INET, &((struct sockaddr_in *)r->ai_addr)->sin_addr, b, 100));
	h.ai_flags = AI_NUMERICHOST;
	N(getaddrinfo("127.0.0.1", "8080", &h, &r));
	T(getaddrinfo("not-a-number", 0, &h, &r) == EAI_NONAME);
	h.ai_flags = AI_PASSIVE;
	N(getaddrinfo(0, "1", &h, &r));
	int s = must(socket(AF_INET, SOCK_DGRAM, 0));
	struct ifreq q;
	memset(&q, 0, sizeof q);
	strcpy(q.ifr_name, "lo");
	R(ioctl(s, SIOCGIFFLAGS, &q));
	T((q.ifr_flags & (IFF_UP | IFF_LOOPBACK)) == (IFF_UP | IFF_LOOPBACK));
	R(ioctl(s, SIOCGIFADDR, &q));
	S(inet_ntop(AF_INET, &((struct sockaddr_in *)&q.ifr_addr)->sin_addr, b, 100));
	R(ioctl(s, SIOCGIFNETMASK, &q));
	S(inet_ntop(AF_INET, &((struct sockaddr_in *)&q.ifr_addr)->sin_addr, b, 100));
	R(ioctl(s, SIOCGIFINDEX, &q));
	N(q.ifr_ifindex);
	R(ioctl(s, SIOCGIFMTU, &q));
	N(q.ifr_mtu);
	unsigned link[2] = {ETHTOOL_GLINK, 7};
	q.ifr_data = (void *)link;
	R(ioctl(s, SIOCETHTOOL, &q));
	N(link[1]);
	struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
	q.ifr_data = (void *)&settings;
	R(ioctl(s, SIOCETHTOOL, &q));
	strcpy(q.ifr_name, "nosuch0");
	R(ioctl(s, SIOCETHTOOL, &q));
	R(ioctl(s, SIOCGIFFLAGS, &q));
	struct { struct ifreq q; char behind[8]; } map;
	memset(&map, 5, sizeof map);
	strcpy(map.q.ifr_name, "lo");
	R(ioctl(s, SIOCGIFMAP, &map.q));
	T(map.q.ifr_map.mem_start == 0 && map.q.ifr_map.irq == 0 && map.behind[0] == 5);
	struct ifconf c = {.ifc_len = sizeof b, .ifc_buf = b};
	R(ioctl(s, SIOCGIFCONF, &c));
	int lo = 0;
	for (struct ifreq *i = c.ifc_req; (char *)i < b + c.ifc_len; i++)
		lo += !strcmp(i->ifr_name, "lo");
	N(lo);
	T(c.ifc_len % sizeof(struct ifreq) == 0);
	int all = c.ifc_len;
	c = (struct ifconf){.ifc_len = 7};
	R(ioctl(s, SIOCGIFCONF, &c));
	T(c.ifc_len == all);
	c = (struct ifconf){.ifc_len = sizeof(struct ifreq) - 1, .ifc_buf = b};
	R(ioctl(s, SIOCGIFCONF, &c));
	N(c.ifc_len);
	c = (struct ifconf){.ifc_len = sizeof(struct ifreq), .ifc_buf = (char *)8};
	R(ioctl(s, SIOCGIFCONF, &c));
	N(if_nametoindex("lo"));
	S(if_indextoname(1, b));
	struct ifaddrs *a = 0;
	N(getifaddrs(&a));
	int v4 = 0, v6 = 0;
	for (struct ifaddrs *i = a; i; i = i->ifa_next)
		if (!strcmp(i->ifa_name, "lo") && i->ifa_addr) {
			if (i->ifa_addr->sa_family == AF_INET)
				v4 += ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
			if (i->ifa_addr->sa_family == AF_INET6)
				v6++;
		}
	T(v4 == 1);
	T(v6 <= 1);
	/* Netlink by hand. */
	R(socket(AF_NETLINK, SOCK_RAW, 999));
	R(socket(AF_INET, SOCK_RAW, 0));
	R(socketpair(AF_INET, SOCK_RAW, 0, (int[2]){0}));
	int n = must(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	struct sockaddr_nl l = {.nl_family = AF_NETLINK};
	R(bind(n, (void *)&l, sizeof l));
	socklen_t k = sizeof l;
	R(getsockname(n, (void *)&l, &k));
	T(l.nl_family == AF_NETLINK && l.nl_pid != 0);
	struct { struct nlmsghdr h; struct rtgenmsg g; } m = {{sizeof m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 7, 0}, {AF_UNSPEC}};
	R(send(n, &m, sizeof m, 0) > 0);
	int done = 0, links = 0;
	while (!done) {
		ssize_t g = recv(n, b, sizeof b, 0);
		if (g <= 0)
			break;
		for (struct nlmsghdr *x = (void *)b; NLMSG_OK(x, (unsigned)g); x = NLMSG_NEXT(x, g)) {
			done |= x->nlmsg_type == NLMSG_DONE || x->nlmsg_type == NLMSG_ERROR;
			if (x->nlmsg_type == RTM_NEWLINK && x->nlmsg_seq == 7)
				links += ((struct ifinfomsg *)NLMSG_DATA(x))->ifi_index == 1;
		}
	}
	N(links);
	m.h.nlmsg_type = 9999, m.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	R(send(n, &m, sizeof m, 0) > 0);
	T(recv(n, b, sizeof b, 0) > 0 && ((struct nlmsghdr *)b)->nlmsg_type == NLMSG_ERROR);
	N(((struct nlmsgerr *)NLMSG_DATA(b))->error);
	return t_done();
}
