/* UDP-Lite: datagrams whose checksum covers a part of them. Its ports are its own; who wants more covered does not get what has less. */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
enum { LITE = 136, SEND_COVERAGE = 10, RECEIVE_COVERAGE = 11 };
static struct sockaddr_in at;
static int option(int s, int level, int name)
{
	int v = -2;
	socklen_t n = sizeof v;
	return getsockopt(s, level, name, &v, &n) ? -errno : v;
}
static int set(int s, int level, int name, int v)
{
	return setsockopt(s, level, name, &v, sizeof v);
}
static int bound(int protocol)
{
	socklen_t n = sizeof at;
	int s = must(socket(AF_INET, SOCK_DGRAM, protocol));
	must(bind(s, (void *)&at, n));
	must(getsockname(s, (void *)&at, &n));
	return s;
}
/* What arrives of a datagram of ten bytes: whatever is sent here is there at once. */
static void pass(int from, int to)
{
	char b[32];
	sendto(from, "0123456789", 10, 0, (void *)&at, sizeof at);
	R(recv(to, b, sizeof b, MSG_DONTWAIT));
}
static void coverage(void)
{
	at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int a = bound(LITE), b = must(socket(AF_INET, SOCK_DGRAM, LITE)), u = bound(IPPROTO_UDP);
	N(option(a, SOL_SOCKET, SO_PROTOCOL));
	N(option(a, SOL_SOCKET, SO_TYPE));
	static const int values[] = {0, 1, -1, 8, 12, 65535, 70000};
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
		R(set(a, LITE, SEND_COVERAGE, values[i]));
		N(option(a, LITE, SEND_COVERAGE));
		R(set(a, IPPROTO_UDP, RECEIVE_COVERAGE, values[i]));
		N(option(a, LITE, RECEIVE_COVERAGE));
	}
	R(set(a, LITE, 12, 1));
	R(setsockopt(a, LITE, SEND_COVERAGE, "", 1));
	R(set(u, LITE, SEND_COVERAGE, 8));
	N(option(u, LITE, SEND_COVERAGE));
	say("the sender covers all\n");
	pass(b, a);
	set(a, LITE, RECEIVE_COVERAGE, 0), pass(b, a);
	say("8 bytes\n");
	set(b, LITE, SEND_COVERAGE, 8), pass(b, a);
	set(a, LITE, RECEIVE_COVERAGE, 8), pass(b, a);
	set(a, LITE, RECEIVE_COVERAGE, 12), pass(b, a);
	say("12, 17, 18, 30 of 18\n");
	set(b, LITE, SEND_COVERAGE, 12), pass(b, a);
	set(a, LITE, RECEIVE_COVERAGE, 18), set(b, LITE, SEND_COVERAGE, 17), pass(b, a);
	set(b, LITE, SEND_COVERAGE, 18), pass(b, a);
	set(b, LITE, SEND_COVERAGE, 30), pass(b, a);
	close(a), close(b), close(u);
}
static void ports(void)
{
	at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int a = bound(LITE), u = bound(IPPROTO_UDP), b = must(socket(AF_INET, SOCK_DGRAM, LITE)), c = must(socket(AF_INET, SOCK_DGRAM, 0));
	say("the same port of both\n");
	R(bind(b, (void *)&at, sizeof at));
	pass(b, a), pass(c, u), pass(b, u), pass(c, a);
	char list[1 << 16], want[16];
	snprintf(want, sizeof want, ":%04X ", ntohs(at.sin_port));
	int f = open("/proc/net/udplite", O_RDONLY);
	int n = read(f, list, sizeof list - 1);
	list[n > 0 ? n : 0] = 0;
	T(strstr(list, want));
	close(f), close(a);
	R(connect(b, (void *)&at, sizeof at));
	OK(send(b, "x", 1, 0));
	R(recv(b, list, 1, MSG_DONTWAIT));
	R(socket(AF_INET, SOCK_STREAM, LITE));
	close(u), close(b), close(c);
}
static void v6(void)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t n = sizeof to;
	char b[16];
	int s = socket(AF_INET6, SOCK_DGRAM, LITE);
	OK(s);
	R(bind(s, (void *)&to, n));
	must(getsockname(s, (void *)&to, &n));
	R(set(s, LITE, SEND_COVERAGE, 9));
	R(sendto(s, "abc", 3, 0, (void *)&to, n));
	R(recv(s, b, sizeof b, MSG_DONTWAIT));
	close(s);
}
int main(void)
{
	coverage();
	ports();
	v6();
	return t_done();
}
