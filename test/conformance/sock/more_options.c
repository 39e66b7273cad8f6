/* Options that few programs set, and what they do: to what is sent and received, to the port that is chosen. */
#include "t.h"
#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#ifndef SO_TXTIME
#define SO_TXTIME 61
#endif
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif
#ifndef TCP_INQ
#define TCP_INQ 36
#endif

static int put(int s, int level, int name, int value) { return setsockopt(s, level, name, &value, sizeof value); }

static int number(int s, int level, int name) {
	int value = -77;
	socklen_t len = sizeof value;
	return getsockopt(s, level, name, &value, &len) < 0 ? -errno : value;
}

static struct sockaddr_in here(int port) {
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int bound(int kind) {
	struct sockaddr_in a = here(0);
	int s = must(socket(AF_INET, kind, 0));
	must(bind(s, (void *)&a, sizeof a));
	return s;
}

static struct sockaddr_in name_of(int s) {
	struct sockaddr_in a;
	socklen_t len = sizeof a;
	must(getsockname(s, (void *)&a, &len));
	return a;
}

static void connected(int pair[2]) {
	int l = bound(SOCK_STREAM);
	struct sockaddr_in a = name_of(l);
	must(listen(l, 5));
	pair[0] = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(pair[0], (void *)&a, sizeof a));
	pair[1] = must(accept(l, NULL, NULL));
	close(l);
}

/* Receives, and names the control messages. */
static void receive(int s, const char *what) {
	char data[64], control[256];
	struct iovec vec = {data, 4};
	struct msghdr hdr = {.msg_iov = &vec, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	long n = recvmsg(s, &hdr, MSG_DONTWAIT);
	say("%s: %ld", what, n);
	if (n < 0) {
		say("\n");
		return;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&hdr); c; c = CMSG_NXTHDR(&hdr, c)) {
		say(", level %d type %d", c->cmsg_level, c->cmsg_type);
		if (c->cmsg_level == IPPROTO_TCP)
			say(" value %d", *(int *)CMSG_DATA(c));
		if (c->cmsg_type == SO_TIMESTAMPING) {
			struct timespec *t = (void *)CMSG_DATA(c), now;
			clock_gettime(CLOCK_REALTIME, &now);
			say(" of %d bytes, %s, %d %d", (int)(c->cmsg_len - CMSG_LEN(0)), t->tv_sec && t->tv_sec <= now.tv_sec ? "past" : "wrong",
			    (int)t[1].tv_sec, (int)t[2].tv_sec);
		}
	}
	say("\n");
}

/* Linux begins to take times of arrival a while after they are asked for: leaves the first datagram that has one. */
static void until_stamped(int from, int to) {
	char data[4], control[256];
	struct iovec vec = {data, 4};
	for (int i = 0; i < 1000; i++) {
		struct msghdr hdr = {.msg_iov = &vec, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
		must(send(from, "abc", 3, 0));
		must(recvmsg(to, &hdr, MSG_PEEK));
		if (hdr.msg_controllen)
			return;
		must(recv(to, data, sizeof data, 0));
		t_ms(10);
	}
}

static void of_all(void) {
	int kinds[] = {bound(SOCK_STREAM), bound(SOCK_DGRAM), must(socket(AF_UNIX, SOCK_STREAM, 0))};
	for (int i = 0; i < 3; i++) {
		unsigned long long cookies[2] = {0, 0};
		socklen_t len = 8;
		R(getsockopt(kinds[i], SOL_SOCKET, SO_COOKIE, &cookies[0], &len));
		R(getsockopt(kinds[(i + 1) % 3], SOL_SOCKET, SO_COOKIE, &cookies[1], &len));
		say("%d: %s\n", i, cookies[0] && cookies[1] && cookies[0] != cookies[1] ? "cookies of their own" : "the same");
		len = 4;
		R(getsockopt(kinds[i], SOL_SOCKET, SO_COOKIE, &cookies[0], &len));
		R(put(kinds[i], SOL_SOCKET, SO_COOKIE, 1));
		N(number(kinds[i], SOL_SOCKET, SO_PEERGROUPS));
		N(number(kinds[i], SOL_SOCKET, SO_INCOMING_CPU));
		R(put(kinds[i], SOL_SOCKET, SO_INCOMING_CPU, 5));
		N(number(kinds[i], SOL_SOCKET, SO_INCOMING_CPU));
		unsigned info[9];
		len = sizeof info;
		R(getsockopt(kinds[i], SOL_SOCKET, SO_MEMINFO, info, &len));
		say("%d bytes, %u received, %d %d, %u queued, %u lost\n", (int)len, info[0], (int)info[1] == number(kinds[i], SOL_SOCKET, SO_RCVBUF),
		    (int)info[3] == number(kinds[i], SOL_SOCKET, SO_SNDBUF), info[5], info[8]);
		len = 4;
		R(getsockopt(kinds[i], SOL_SOCKET, SO_MEMINFO, info, &len));
		N(len);
		unsigned long rate = 0;
		len = sizeof rate;
		R(getsockopt(kinds[i], SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &len));
		say("%d, %lx, %x\n", (int)len, rate, number(kinds[i], SOL_SOCKET, SO_MAX_PACING_RATE));
		rate = -1UL;
		R(setsockopt(kinds[i], SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate));
		R(put(kinds[i], SOL_SOCKET, SO_MAX_PACING_RATE, -1));
	}
}

static void datagrams(void) {
	int to = bound(SOCK_DGRAM), from = bound(SOCK_DGRAM);
	struct sockaddr_in a = name_of(to);
	must(connect(from, (void *)&a, sizeof a));
	unsigned info[9];
	socklen_t len = sizeof info;
	must(send(from, "abc", 3, 0));
	must(getsockopt(to, SOL_SOCKET, SO_MEMINFO, info, &len));
	say("something is received: %d\n", info[0] > 3);
	receive(to, "no time");
	R(put(to, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_RX_SOFTWARE));
	must(send(from, "abc", 3, 0));
	receive(to, "taken, not reported");
	R(put(to, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE));
	N(number(to, SOL_SOCKET, SO_TIMESTAMPING));
	until_stamped(from, to);
	receive(to, "a time");
	R(put(to, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE));
	must(send(from, "abc", 3, 0));
	receive(to, "no hardware");
	R(put(to, SOL_SOCKET, SO_TIMESTAMPING, 1 << 30));
	R(put(to, SOL_SOCKET, SO_TIMESTAMPING, 0));

	/* Small buffers: what is lost is counted. */
	R(put(to, SOL_SOCKET, SO_RCVBUF, 1));
	for (int i = 0; i < 50; i++)
		send(from, "abc", 3, 0);
	must(getsockopt(to, SOL_SOCKET, SO_MEMINFO, info, &len));
	say("some are lost: %d\n", info[8] > 0);
}

static void send_at(int s, long long when, int len) {
	char control[64] = {0};
	struct iovec vec = {"now", 3};
	struct msghdr hdr = {.msg_iov = &vec, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(len)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&hdr);
	*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(len), .cmsg_level = SOL_SOCKET, .cmsg_type = SO_TXTIME};
	memcpy(CMSG_DATA(c), &when, len);
	R(sendmsg(s, &hdr, 0));
}

/* Nothing on the loopback interface keeps back what is to be sent later. */
static void times_of_sending(void) {
	int to = bound(SOCK_DGRAM), from = bound(SOCK_DGRAM);
	struct sockaddr_in a = name_of(to);
	must(connect(from, (void *)&a, sizeof a));
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	long long when = now.tv_sec * 1000000000LL + 3600000000000LL;
	send_at(from, when, 8);
	struct { int clock; unsigned flags; } value = {CLOCK_MONOTONIC, 4}, got = {-1, -1};
	socklen_t len = sizeof got;
	R(setsockopt(from, SOL_SOCKET, SO_TXTIME, &value, sizeof value));
	value.flags = 2;
	R(setsockopt(from, SOL_SOCKET, SO_TXTIME, &value, 4));
	R(setsockopt(from, SOL_SOCKET, SO_TXTIME, &value, sizeof value));
	R(getsockopt(from, SOL_SOCKET, SO_TXTIME, &got, &len));
	say("%d %d %u\n", (int)len, got.clock, got.flags);
	send_at(from, when, 8);
	receive(to, "sent at once");
	send_at(from, when, 4);
	receive(to, "not sent");
}

static void streams(void) {
	int pair[2], s = must(socket(AF_INET, SOCK_STREAM, 0));
	connected(pair);
	R(put(pair[1], IPPROTO_TCP, TCP_INQ, 2));
	R(put(pair[1], IPPROTO_TCP, TCP_INQ, 1));
	N(number(pair[1], IPPROTO_TCP, TCP_INQ));
	must(send(pair[0], "0123456789", 10, 0));
	receive(pair[1], "six are left");
	receive(pair[1], "two are left");
	receive(pair[1], "none is left");
	shutdown(pair[0], SHUT_WR);
	receive(pair[1], "the end");
	R(put(pair[1], IPPROTO_TCP, TCP_INQ, 0));
	receive(pair[1], "not asked");

	R(put(s, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 2));
	R(put(s, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1));
	N(number(s, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS));
	R(put(s, IPPROTO_TCP, TCP_FASTOPEN, -1));
	R(put(s, IPPROTO_TCP, TCP_FASTOPEN, 7));
	N(number(s, IPPROTO_TCP, TCP_FASTOPEN));
	R(put(pair[0], IPPROTO_TCP, TCP_FASTOPEN, 7));
	R(setsockopt(s, IPPROTO_TCP, TCP_ULP, "nothing", 7));
	R(setsockopt(s, IPPROTO_TCP, TCP_ULP, "", 0));
	char ulp[16];
	socklen_t len = sizeof ulp;
	R(getsockopt(s, IPPROTO_TCP, TCP_ULP, ulp, &len));
	N(len);
	struct tcp_info info;
	for (int i = 0; i < 2; i++) {
		len = sizeof info;
		must(getsockopt(i ? s : pair[0], IPPROTO_TCP, TCP_INFO, &info, &len));
		say("options %d\n", info.tcpi_options & 7);
	}
	for (int value = -1; value < 2; value++) {
		R(put(s, IPPROTO_IP, IP_MULTICAST_TTL, value));
		R(put(s, IPPROTO_IP, IP_MULTICAST_IF, value));
	}
	R(put(s, IPPROTO_IP, IP_MULTICAST_ALL, 2));
	int s6 = must(socket(AF_INET6, SOCK_STREAM, 0));
	R(put(s6, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 1));
	R(put(s6, IPPROTO_IPV6, IPV6_MULTICAST_IF, 1));
}

static void places(void) {
	int s = must(socket(AF_INET, SOCK_STREAM, 0));
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)}; /* 192.0.2.1 */
	R(bind(s, (void *)&far, sizeof far));
	R(put(s, IPPROTO_IP, IP_TRANSPARENT, 3));
	N(number(s, IPPROTO_IP, IP_TRANSPARENT));
	R(bind(s, (void *)&far, sizeof far));
	socklen_t len = 40;
	char options[40];
	R(getsockopt(s, IPPROTO_IP, IP_OPTIONS, options, &len));
	N(len);
	R(setsockopt(s, IPPROTO_IP, IP_OPTIONS, NULL, 0));

	for (int kind = SOCK_STREAM; kind <= SOCK_DGRAM; kind++) {
		int seen[5] = {0};
		for (int i = 0; i < 5; i++) {
			struct sockaddr_in a = here(0);
			s = must(socket(AF_INET, kind, 0));
			if (i == 0) {
				R(put(s, IPPROTO_IP, IP_LOCAL_PORT_RANGE, 0x10002));
				N(number(s, IPPROTO_IP, IP_LOCAL_PORT_RANGE));
				short half = 0;
				R(setsockopt(s, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &half, sizeof half));
			}
			must(put(s, IPPROTO_IP, IP_LOCAL_PORT_RANGE, (41003u << 16) + 41000));
			if (R(bind(s, (void *)&a, sizeof a)) == 0)
				seen[(ntohs(name_of(s).sin_port) - 41000) & 3]++;
		}
		say("%d %d %d %d\n", seen[0], seen[1], seen[2], seen[3]);
	}
}

static void interface(void) {
	int s = must(socket(AF_INET6, SOCK_DGRAM, 0));
	struct in6_pktinfo info = {.ipi6_addr = IN6ADDR_LOOPBACK_INIT, .ipi6_ifindex = 1};
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	R(put(s, IPPROTO_IPV6, IPV6_PKTINFO, 1));
	R(setsockopt(s, IPPROTO_IPV6, IPV6_PKTINFO, NULL, 0));
	R(setsockopt(s, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info));
	R(sendto(s, "a", 1, 0, (void *)&a, sizeof a));
	info.ipi6_ifindex = 7777;
	R(setsockopt(s, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info));
	R(sendto(s, "a", 1, 0, (void *)&a, sizeof a));
	must(setsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	R(setsockopt(s, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info));
	int v4 = must(socket(AF_INET, SOCK_DGRAM, 0));
	R(setsockopt(v4, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info));
}

/* Unprivileged it is another's address still. */
static void without_rights(void) {
	must(setuid(65534));
	int s = must(socket(AF_INET, SOCK_STREAM, 0));
	R(put(s, IPPROTO_IP, IP_TRANSPARENT, 1));
	R(put(s, IPPROTO_IP, IP_TRANSPARENT, 0));
	int s6 = must(socket(AF_INET6, SOCK_STREAM, 0));
	R(put(s6, IPPROTO_IPV6, IPV6_TRANSPARENT, 1));
	struct { int clock; unsigned flags; } value = {CLOCK_TAI, 0};
	R(setsockopt(s, SOL_SOCKET, SO_TXTIME, &value, sizeof value));
}

int main(void) {
	of_all();
	datagrams();
	times_of_sending();
	streams();
	places();
	interface();
	without_rights();
	return 0;
}
