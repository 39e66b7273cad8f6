/* The route to an address of one's own, as programs read it: what is in the answer, and in which order. */
#include "t.h"
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

static void ask(unsigned flags)
{
	struct { struct nlmsghdr h; struct rtmsg r; struct rtattr a; struct in_addr to; } q = {
		.h = { sizeof q, RTM_GETROUTE, NLM_F_REQUEST, 7, 0 },
		.r = { .rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_flags = flags },
		.a = { RTA_LENGTH(4), RTA_DST },
		.to = { htonl(INADDR_LOOPBACK) },
	};
	char b[4096];
	int s = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	must(send(s, &q, sizeof q, 0));
	int n = must(recv(s, b, sizeof b, 0));
	struct nlmsghdr *h = (void *)b;
	struct rtmsg *r = NLMSG_DATA(h);
	N(h->nlmsg_type);
	N(h->nlmsg_flags);
	N(r->rtm_dst_len), N(r->rtm_table), N(r->rtm_protocol), N(r->rtm_scope), N(r->rtm_type);
	printf("flags %#x\n", r->rtm_flags);
	int len = n - NLMSG_LENGTH(sizeof *r);
	for (struct rtattr *a = RTM_RTA(r); RTA_OK(a, len); a = RTA_NEXT(a, len))
		printf("attribute %d of %d bytes: %#x\n", a->rta_type, (int)RTA_PAYLOAD(a), a->rta_type == RTA_CACHEINFO ? 0 : *(unsigned *)RTA_DATA(a));
	fflush(stdout);
	close(s);
}

int main(void)
{
	ask(0);
	ask(RTM_F_LOOKUP_TABLE);
	return t_done();
}
