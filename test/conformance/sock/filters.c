/* Classic BPF on sockets: what is taken, what is refused, what a program sees, what it lets through. */
/* not: i386 */
#include "t.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#ifndef SO_LOCK_FILTER
#define SO_LOCK_FILTER 44
#endif
#ifndef SO_ATTACH_BPF
#define SO_ATTACH_BPF 50
#endif
static int attach(int s, struct sock_filter *f, int n)
{
	struct sock_fprog p = {n, f};
	return setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p);
}
#define CODE(...) (struct sock_filter[]){__VA_ARGS__}
#define ATTACH(s, ...) attach(s, CODE(__VA_ARGS__), sizeof(CODE(__VA_ARGS__)) / sizeof(struct sock_filter))
#define ALL BPF_STMT(BPF_RET | BPF_K, 0xffffffff)
#define NONE BPF_STMT(BPF_RET | BPF_K, 0)
#define OUT BPF_STMT(BPF_RET | BPF_A, 0)
/* What a program that returns its accumulator leaves of 64 bytes sent to a datagram socket of AF_UNIX: the accumulator, up to there. */
static int unix_pair[2];
static long left(struct sock_filter *f, int n)
{
	char b[200];
	for (int i = 0; i < 64; i++)
		b[i] = i + 1;
	if (attach(unix_pair[1], f, n))
		return -1000 - errno;
	if (send(unix_pair[0], b, 64, 0) != 64)
		return -2000 - errno;
	memset(b, 0, sizeof b);
	long r = recv(unix_pair[1], b, sizeof b, MSG_DONTWAIT);
	for (int i = 0; i < r; i++)
		if (b[i] != i + 1)
			return -3000;
	return r == -1 ? -errno : r;
}
#define LEFT(...) say("%s: %ld\n", #__VA_ARGS__, left(CODE(__VA_ARGS__), sizeof(CODE(__VA_ARGS__)) / sizeof(struct sock_filter)))
static void refused(void)
{
	int s = must(socket(AF_UNIX, SOCK_DGRAM, 0));
	struct sock_filter many[5000];
	for (int i = 0; i < 5000; i++)
		many[i] = (struct sock_filter)ALL;
	R(attach(s, many, 0));
	R(attach(s, 0, 1));
	R(attach(s, many, 4096));
	R(attach(s, many, 4097));
	R(setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, many, 4));
	R(setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, many, 0));
	R(ATTACH(s, BPF_STMT(BPF_LD | BPF_IMM, 1)));			      /* no return at the end */
	R(ATTACH(s, BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), ALL));		      /* out of the program */
	R(ATTACH(s, BPF_JUMP(BPF_JMP | BPF_JA, 0xffffffff, 0, 0), ALL));      /* back */
	R(ATTACH(s, BPF_JUMP(BPF_JMP | BPF_JEQ, 0, 0, 1), ALL));
	R(ATTACH(s, BPF_JUMP(BPF_JMP | BPF_JEQ, 0, 1, 0), ALL));
	R(ATTACH(s, BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), ALL));
	R(ATTACH(s, BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 0), ALL));
	R(ATTACH(s, BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), ALL));
	R(ATTACH(s, BPF_STMT(BPF_ST, 16), ALL));
	R(ATTACH(s, BPF_STMT(BPF_LD | BPF_MEM, 16), ALL));
	R(ATTACH(s, BPF_STMT(BPF_LD | BPF_MEM, 1), ALL));		      /* never stored */
	R(ATTACH(s, BPF_STMT(BPF_ST, 1), BPF_STMT(BPF_LD | BPF_MEM, 1), ALL));
	R(ATTACH(s, BPF_JUMP(BPF_JMP | BPF_JEQ, 0, 0, 1), BPF_STMT(BPF_ST, 1), BPF_STMT(BPF_LD | BPF_MEM, 1), ALL)); /* on one way only */
	R(ATTACH(s, BPF_STMT(0x77, 1), ALL));
	R(ATTACH(s, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, -0x1000 - 1), ALL));
	R(ATTACH(s, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, -0x1000 + 1000), ALL)); /* no such extension */
	R(ATTACH(s, ALL));
	R(setsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, 0, 0));
	int v = 0;
	R(setsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, &v, sizeof v));
	R(setsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, &v, sizeof v));
	R(ATTACH(s, ALL));
	v = -1;
	R(setsockopt(s, SOL_SOCKET, SO_ATTACH_BPF, &v, sizeof v));
	v = 0;
	R(setsockopt(s, SOL_SOCKET, SO_ATTACH_BPF, &v, sizeof v));
	/* Locked, it stays. */
	socklen_t n = sizeof v;
	R(getsockopt(s, SOL_SOCKET, SO_LOCK_FILTER, &v, &n));
	N(v);
	v = 1;
	R(setsockopt(s, SOL_SOCKET, SO_LOCK_FILTER, &v, sizeof v));
	R(setsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, &v, sizeof v));
	R(ATTACH(s, ALL));
	R(setsockopt(s, SOL_SOCKET, SO_LOCK_FILTER, &v, sizeof v));
	v = 0;
	R(setsockopt(s, SOL_SOCKET, SO_LOCK_FILTER, &v, sizeof v));
	close(s);
}
/* SO_GET_FILTER gives the program back: counted in instructions. */
static void given_back(void)
{
	int s = must(socket(AF_UNIX, SOCK_DGRAM, 0));
	struct sock_filter f[8];
	socklen_t n = 0;
	R(getsockopt(s, SOL_SOCKET, SO_GET_FILTER, 0, &n));
	N(n);
	must(ATTACH(s, BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_RET | BPF_A, 0)));
	n = 0;
	R(getsockopt(s, SOL_SOCKET, SO_GET_FILTER, 0, &n));
	N(n);
	n = 1;
	R(getsockopt(s, SOL_SOCKET, SO_GET_FILTER, f, &n));
	n = 8;
	R(getsockopt(s, SOL_SOCKET, SO_GET_FILTER, f, &n));
	N(n);
	T(f[0].code == (BPF_LD | BPF_W | BPF_LEN) && f[1].code == (BPF_RET | BPF_A));
	close(s);
}
static void machine(void)
{
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, unix_pair));
	LEFT(ALL);
	LEFT(NONE);
	LEFT(BPF_STMT(BPF_RET | BPF_K, 10));
	LEFT(BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 4), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 0x0100), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 60), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 61), ALL); /* beyond the end: nothing */
	LEFT(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 64), ALL);
	LEFT(BPF_STMT(BPF_LDX | BPF_IMM, 5), BPF_STMT(BPF_LD | BPF_B | BPF_IND, 2), OUT);
	LEFT(BPF_STMT(BPF_LDX | BPF_IMM, 0xfffffffe), BPF_STMT(BPF_LD | BPF_B | BPF_IND, 4), ALL);
	LEFT(BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 3), BPF_STMT(BPF_MISC | BPF_TXA, 0), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 7), BPF_STMT(BPF_MISC | BPF_TAX, 0), BPF_STMT(BPF_LD | BPF_IMM, 5), BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 33), BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 4), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 33), BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 4), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 33), BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), ALL); /* by zero */
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 33), BPF_STMT(BPF_ALU | BPF_MOD | BPF_X, 0), ALL);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 3), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 3), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 48), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 3), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 48), BPF_STMT(BPF_LDX | BPF_IMM, 33), BPF_STMT(BPF_ALU | BPF_RSH | BPF_X, 0), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 48), BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 3), BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 4), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, -48), BPF_STMT(BPF_ALU | BPF_NEG, 0), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 9), BPF_STMT(BPF_ST, 15), BPF_STMT(BPF_LD | BPF_IMM, 1), BPF_STMT(BPF_LDX | BPF_MEM, 15), BPF_STMT(BPF_MISC | BPF_TXA, 0), OUT);
	LEFT(BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_STX, 3), BPF_STMT(BPF_LD | BPF_MEM, 3), BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, -1), OUT);
	/* Jumps. */
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 9), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 8, 0, 1), BPF_STMT(BPF_RET | BPF_K, 1), BPF_STMT(BPF_RET | BPF_K, 2));
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 9), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 9, 0, 1), BPF_STMT(BPF_RET | BPF_K, 1), BPF_STMT(BPF_RET | BPF_K, 2));
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 9), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 9, 0, 1), BPF_STMT(BPF_RET | BPF_K, 1), BPF_STMT(BPF_RET | BPF_K, 2));
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 9), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 6, 0, 1), BPF_STMT(BPF_RET | BPF_K, 1), BPF_STMT(BPF_RET | BPF_K, 2));
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 9), BPF_STMT(BPF_LDX | BPF_IMM, 9), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1), BPF_STMT(BPF_RET | BPF_K, 1), BPF_STMT(BPF_RET | BPF_K, 2));
	LEFT(BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), BPF_STMT(BPF_RET | BPF_K, 1), BPF_STMT(BPF_RET | BPF_K, 2));
	/* What Linux adds: the cpu, a random number, exclusive or with X, the payload's offset. */
	LEFT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_CPU), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0), BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 5), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_RANDOM), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0), BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 6), OUT);
	LEFT(BPF_STMT(BPF_LD | BPF_IMM, 12), BPF_STMT(BPF_LDX | BPF_IMM, 10), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_ALU_XOR_X), OUT);
	/* The peer keeps sending; SOCK_SEQPACKET is filtered too, streams are not. */
	close(unix_pair[0]), close(unix_pair[1]);
	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, unix_pair));
	LEFT(NONE);
	LEFT(BPF_STMT(BPF_RET | BPF_K, 10));
	close(unix_pair[0]), close(unix_pair[1]);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, unix_pair));
	LEFT(NONE);
	close(unix_pair[0]), close(unix_pair[1]);
}
/* Datagrams begin with their UDP header; a length that cuts into it drops them. */
static void udp(void)
{
	int s = must(socket(AF_INET, SOCK_DGRAM, 0)), t = must(socket(AF_INET, SOCK_DGRAM, 0));
	struct sockaddr_in a = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}}, from;
	socklen_t n = sizeof a;
	char b[200];
	must(bind(t, (void *)&a, sizeof a));
	must(getsockname(t, (void *)&a, &n));
	must(connect(s, (void *)&a, sizeof a));
	n = sizeof from;
	must(getsockname(s, (void *)&from, &n));
	int to = ntohs(a.sin_port), src = ntohs(from.sin_port);
	struct { const char *what; struct sock_filter f[4]; } list[] = {
		{"all", {ALL, ALL, ALL, ALL}},
		{"header only", {BPF_STMT(BPF_RET | BPF_K, 8), ALL, ALL, ALL}},
		{"less", {BPF_STMT(BPF_RET | BPF_K, 3), ALL, ALL, ALL}},
		{"five bytes", {BPF_STMT(BPF_RET | BPF_K, 13), ALL, ALL, ALL}},
		{"source port", {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ, src, 1, 0), NONE, ALL}},
		{"another source port", {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ, src ^ 1, 1, 0), NONE, ALL}},
		{"destination port", {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 2), BPF_JUMP(BPF_JMP | BPF_JEQ, to, 1, 0), NONE, ALL}},
		{"length", {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4), BPF_JUMP(BPF_JMP | BPF_JEQ, 28, 1, 0), NONE, ALL}},
		{"first byte", {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8), BPF_JUMP(BPF_JMP | BPF_JEQ, 'a', 1, 0), NONE, ALL}},
		{"IP version", {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SKF_NET_OFF), BPF_JUMP(BPF_JMP | BPF_JEQ, 0x45, 1, 0), NONE, ALL}},
		{"IP protocol", {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SKF_NET_OFF + 9), BPF_JUMP(BPF_JMP | BPF_JEQ, 17, 1, 0), NONE, ALL}},
		{"IP source", {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_NET_OFF + 12), BPF_JUMP(BPF_JMP | BPF_JEQ, INADDR_LOOPBACK, 1, 0), NONE, ALL}},
		{"IP length", {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SKF_NET_OFF + 2), BPF_JUMP(BPF_JMP | BPF_JEQ, 48, 1, 0), NONE, ALL}},
		{"protocol", {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_PROTOCOL), BPF_JUMP(BPF_JMP | BPF_JEQ, 0x0800, 1, 0), NONE, ALL}},
		{"interface", {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_IFINDEX), BPF_JUMP(BPF_JMP | BPF_JEQ, 1, 1, 0), NONE, ALL}},
		{"hardware", {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_HATYPE), BPF_JUMP(BPF_JMP | BPF_JEQ, 772, 1, 0), NONE, ALL}},
	};
	for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
		must(attach(t, list[i].f, 4));
		must(send(s, "abcdefghijklmnopqrst", 20, 0));
		struct pollfd p = {t, POLLIN};
		poll(&p, 1, 0);
		say("%s: poll %x\n", list[i].what, p.revents);
		R(recv(t, b, sizeof b, MSG_DONTWAIT | MSG_TRUNC));
	}
	/* What waits already has passed. */
	struct sock_filter none[] = {NONE};
	int v = 0;
	must(setsockopt(t, SOL_SOCKET, SO_DETACH_FILTER, &v, sizeof v));
	must(send(s, "abc", 3, 0));
	must(attach(t, none, 1));
	must(send(s, "defg", 4, 0));
	R(recv(t, b, sizeof b, MSG_DONTWAIT));
	R(recv(t, b, sizeof b, MSG_DONTWAIT));
	close(s), close(t);
}
int main(void)
{
	refused();
	given_back();
	machine();
	udp();
	return t_failed;
}
