/* Connections and datagrams counted in /proc/net/snmp and snmp6; the form of these, of netstat and of softnet_stat. Others use the network too: a count
 * grows by no less than what was done here. */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
static char b[1 << 16];
static char *text(const char *n)
{
	int f = open(n, O_RDONLY), k, o = 0;
	while (f >= 0 && o < (int)sizeof b - 1 && (k = read(f, b + o, sizeof b - 1 - o)) > 0)
		o += k;
	if (f >= 0)
		close(f);
	b[o] = 0;
	return b;
}
/* The number in the column of that name in the second of a protocol's two lines. */
static long column(const char *file, const char *protocol, const char *name)
{
	char head[64], *names, *values, *n, *v, *ns, *vs;
	snprintf(head, sizeof head, "%s: ", protocol);
	text(file);
	for (names = b; names && strncmp(names, head, strlen(head)); names = strchr(names, '\n') ? strchr(names, '\n') + 1 : 0)
		;
	if (!names || !(values = strchr(names, '\n')) || strncmp(values + 1, head, strlen(head)))
		return -1;
	*values++ = 0;
	if (strchr(values, '\n'))
		*strchr(values, '\n') = 0;
	for (n = strtok_r(names, " ", &ns), v = strtok_r(values, " ", &vs); n && v; n = strtok_r(0, " ", &ns), v = strtok_r(0, " ", &vs))
		if (!strcmp(n, name))
			return atol(v);
	return -1;
}
static long line(const char *name)
{
	size_t n = strlen(name);
	for (char *l = text("/proc/net/snmp6"); l && *l; l = strchr(l, '\n') + 1)
		if (!strncmp(l, name, n) && (l[n] == ' ' || l[n] == '\t'))
			return atol(l + n);
	return -1;
}
#define SNMP "/proc/net/snmp"
int main(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t n = sizeof a;
	T(column(SNMP, "Ip", "DefaultTTL") == 64 && column(SNMP, "Ip", "ForwDatagrams") >= 0 && column(SNMP, "Ip", "FragCreates") >= 0);
	T(column(SNMP, "Icmp", "InMsgs") >= 0 && column(SNMP, "Icmp", "OutAddrMaskReps") >= 0);
	N(column(SNMP, "Tcp", "RtoMin"));
	N(column(SNMP, "Tcp", "MaxConn"));
	long active = column(SNMP, "Tcp", "ActiveOpens"), passive = column(SNMP, "Tcp", "PassiveOpens"), fails = column(SNMP, "Tcp", "AttemptFails");
	T(active >= 0 && passive >= 0 && fails >= 0 && column(SNMP, "Tcp", "RetransSegs") >= 0 && column(SNMP, "Tcp", "InCsumErrors") >= 0);
	int l = must(socket(AF_INET, SOCK_STREAM, 0)), c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(l, (void *)&a, sizeof a));
	must(getsockname(l, (void *)&a, &n));
	R(connect(c, (void *)&a, sizeof a));
	close(c);
	must(listen(l, 5));
	int s[3];
	for (int i = 0; i < 3; i++)
		must(connect(s[i] = must(socket(AF_INET, SOCK_STREAM, 0)), (void *)&a, sizeof a));
	T(column(SNMP, "Tcp", "ActiveOpens") - active >= 4);
	T(column(SNMP, "Tcp", "PassiveOpens") - passive >= 3);
	T(column(SNMP, "Tcp", "AttemptFails") - fails >= 1);
	T(column(SNMP, "Tcp", "CurrEstab") >= 6);
	for (int i = 0; i < 3; i++)
		close(s[i]);
	close(l);
	long sent = column(SNMP, "Udp", "OutDatagrams"), got = column(SNMP, "Udp", "InDatagrams"), none = column(SNMP, "Udp", "NoPorts");
	long lost = column(SNMP, "Udp", "RcvbufErrors"), errors = column(SNMP, "Udp", "InErrors");
	T(sent >= 0 && got >= 0 && none >= 0 && lost >= 0 && errors >= lost);
	int u = must(socket(AF_INET, SOCK_DGRAM, 0)), v = must(socket(AF_INET, SOCK_DGRAM, 0)), small = 2000;
	a.sin_port = 0;
	must(bind(u, (void *)&a, sizeof a));
	must(getsockname(u, (void *)&a, &n));
	for (int i = 0; i < 5; i++) {
		must(sendto(v, b, 100, 0, (void *)&a, sizeof a));
		must(recv(u, b, 100, 0));
	}
	T(column(SNMP, "Udp", "OutDatagrams") - sent >= 5);
	T(column(SNMP, "Udp", "InDatagrams") - got >= 5);
	must(setsockopt(u, SOL_SOCKET, SO_RCVBUF, &small, sizeof small));
	for (int i = 0; i < 50; i++)
		must(sendto(v, b, 1000, 0, (void *)&a, sizeof a));
	T(column(SNMP, "Udp", "RcvbufErrors") > lost && column(SNMP, "Udp", "InErrors") > errors);
	close(u);
	must(sendto(v, b, 100, 0, (void *)&a, sizeof a));
	T(column(SNMP, "Udp", "NoPorts") > none);
	T(column(SNMP, "UdpLite", "InDatagrams") >= 0);
	sent = line("Udp6OutDatagrams"), got = line("Udp6InDatagrams"), none = line("Udp6NoPorts");
	T(sent >= 0 && got >= 0 && none >= 0 && line("Ip6InReceives") >= 0 && line("Icmp6OutMsgs") >= 0 && line("UdpLite6MemErrors") >= 0);
	n = sizeof a6;
	u = must(socket(AF_INET6, SOCK_DGRAM, 0)), v = must(socket(AF_INET6, SOCK_DGRAM, 0));
	must(bind(u, (void *)&a6, sizeof a6));
	must(getsockname(u, (void *)&a6, &n));
	must(sendto(v, b, 100, 0, (void *)&a6, sizeof a6));
	must(recv(u, b, 100, 0));
	close(u);
	must(sendto(v, b, 100, 0, (void *)&a6, sizeof a6));
	T(line("Udp6OutDatagrams") - sent >= 2 && line("Udp6InDatagrams") - got >= 1 && line("Udp6NoPorts") > none);
	T(column("/proc/net/netstat", "TcpExt", "ListenOverflows") >= 0 && column("/proc/net/netstat", "TcpExt", "TCPTimeouts") >= 0);
	T(column("/proc/net/netstat", "IpExt", "InOctets") >= 0);
	int lines = 0, bad = 0;
	for (char *w = text("/proc/net/softnet_stat"); *w; w = strchr(w, '\n') + 1, lines++)
		bad += strcspn(w, "\n") != 15 * 9 - 1;
	T(!bad && lines == sysconf(_SC_NPROCESSORS_ONLN));
	return t_done();
}
