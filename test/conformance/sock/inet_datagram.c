/* UDP on loopback: borders, addresses, connect, refusal, peek, sizes, both families. */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
static struct sockaddr_in in(int p) { return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(p), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}; }
static int port(int f)
{
	struct sockaddr_in6 a;
	socklen_t n = sizeof a;
	must(getsockname(f, (void *)&a, &n));
	return ntohs(a.sin6_port);
}
int main(void)
{
	static char b[70000];
	struct sockaddr_in a = in(0), f;
	socklen_t n;
	int x = must(socket(AF_INET, SOCK_DGRAM, 0)), y = must(socket(AF_INET, SOCK_DGRAM, 0));
	R(listen(x, 1));
	R(send(must(socket(AF_INET, SOCK_DGRAM, 0)), "x", 1, 0));
	must(bind(x, (void *)&a, sizeof a));
	a = in(port(x));
	R(sendto(y, "one", 3, 0, (void *)&a, sizeof a));
	R(sendto(y, "", 0, 0, (void *)&a, sizeof a));
	R(sendto(y, "three", 5, 0, (void *)&a, sizeof a));
	T(port(y) != 0); /* bound by the first send */
	n = sizeof f;
	R(recvfrom(x, b, 100, MSG_PEEK, (void *)&f, &n));
	R(recvfrom(x, b, 100, 0, (void *)&f, &n));
	T(ntohs(f.sin_port) == port(y) && n == sizeof f);
	R(recv(x, b, 100, 0));
	R(recv(x, b, 2, MSG_TRUNC));
	R(recv(x, b, 100, MSG_DONTWAIT));
	R(sendto(y, b, 65507, 0, (void *)&a, sizeof a));
	R(recv(x, b, sizeof b, 0));
	R(sendto(y, b, 65508, 0, (void *)&a, sizeof a));
	R(sendto(y, "x", 1, 0, (void *)&a, 4));
	R(sendto(y, "x", 1, 0, (void *)8, sizeof a));
	R(connect(y, (void *)&a, sizeof a));
	n = sizeof f;
	R(getpeername(y, (void *)&f, &n));
	R(write(y, "connected", 9));
	n = sizeof f;
	R(recvfrom(x, b, 100, 0, (void *)&f, &n));
	R(connect(x, (void *)&f, sizeof f));
	R(send(x, "back", 4, 0));
	R(read(y, b, 100));
	int z = must(socket(AF_INET, SOCK_DGRAM, 0));
	R(sendto(z, "foreign", 7, 0, (void *)&a, sizeof a));
	R(recv(x, b, 100, MSG_DONTWAIT)); /* x hears only y */
	close(y);
	R(send(x, "gone", 4, 0));
	t_ms(20);
	R(send(x, "gone", 4, 0)); /* the refusal of the first */
	t_ms(20);
	R(recv(x, b, 100, MSG_DONTWAIT));
	R(connect(x, &(struct sockaddr){AF_UNSPEC, ""}, sizeof(struct sockaddr)));
	R(getpeername(x, (void *)&f, &n));
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int v = must(socket(AF_INET6, SOCK_DGRAM, 0)), w = must(socket(AF_INET6, SOCK_DGRAM, 0));
	must(bind(v, (void *)&a6, sizeof a6));
	a6.sin6_port = htons(port(v));
	R(sendto(w, "six", 3, 0, (void *)&a6, sizeof a6));
	R(recv(v, b, 100, 0));
	int q = must(socket(AF_INET, SOCK_DGRAM, 0));
	a = in(port(z));
	R(bind(q, (void *)&a, sizeof a));
	x = must(socket(AF_INET, SOCK_DGRAM, 0)); /* the old one lost its port with its peer */
	a = in(0);
	must(bind(x, (void *)&a, sizeof a));
	struct iovec io[2] = {{"ga", 2}, {"ther", 4}};
	a = in(port(x));
	struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = io, .msg_iovlen = 2};
	R(sendmsg(q, &m, 0));
	int k;
	R(ioctl(x, FIONREAD, &k));
	struct pollfd p = {x, POLLIN, 0};
	R(poll(&p, 1, 1000));
	R(ioctl(x, FIONREAD, &k));
	char c[3];
	io[0] = (struct iovec){c, 3}, m.msg_iovlen = 1;
	R(recvmsg(x, &m, 0));
	N(m.msg_flags);
	R(shutdown(z, SHUT_RD));
	return t_done();
}
