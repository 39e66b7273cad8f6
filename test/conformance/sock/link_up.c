/* The loopback interface switched on that is on already, as scripts of tests begin. */
#include "t.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
static struct {
	struct nlmsghdr h;
	struct ifinfomsg i;
	char more[64];
} q;
static void ask(int s, int kind, int index, unsigned flags, unsigned change, const char *name, const char *what, int admin)
{
	char b[512];
	memset(&q, 0, sizeof q);
	q.h.nlmsg_len = NLMSG_LENGTH(sizeof q.i), q.h.nlmsg_type = kind, q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	q.i.ifi_index = index, q.i.ifi_flags = flags, q.i.ifi_change = change;
	if (name) {
		struct rtattr *a = (void *)q.more;
		a->rta_type = IFLA_IFNAME, a->rta_len = RTA_LENGTH(strlen(name) + 1);
		strcpy(RTA_DATA(a), name);
		q.h.nlmsg_len += a->rta_len;
	}
	must(send(s, &q, q.h.nlmsg_len, 0));
	must(recv(s, b, sizeof b, 0));
	struct nlmsghdr *h = (void *)b;
	struct nlmsgerr *e = NLMSG_DATA(h);
	say("%s\n", what);
	T(h->nlmsg_type == NLMSG_ERROR && e->error == (admin ? 0 : -EPERM));
}
static void tries(int admin)
{
	int s = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)), u = must(socket(AF_INET, SOCK_DGRAM, 0));
	ask(s, RTM_NEWLINK, 1, IFF_UP, IFF_UP, 0, "up, by number", admin);
	ask(s, RTM_SETLINK, 1, IFF_UP, IFF_UP, 0, "up, as a change", admin);
	ask(s, RTM_NEWLINK, 0, IFF_UP, IFF_UP, "lo", "up, by name", admin);
	struct ifreq r = {.ifr_name = "lo"};
	must(ioctl(u, SIOCGIFFLAGS, &r));
	T(r.ifr_flags & IFF_UP);
	int done = ioctl(u, SIOCSIFFLAGS, &r);
	T(admin ? done == 0 : done == -1 && errno == EPERM);
	close(s), close(u);
}
int main(void)
{
	/* CAP_NET_ADMIN */
	char line[256];
	unsigned long long caps = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, f))
		sscanf(line, "CapEff: %llx", &caps);
	fclose(f);
	tries(caps >> 12 & 1);
	if (geteuid() == 0)
		CHILD("nobody", must(setresuid(65534, 65534, 65534)); tries(0));
	return t_done();
}
