/* Corners of sockets: parts of messages, empty ones, who is connected, what is pending, owners by ioctl, order of checks. */
/* not: i386 */
#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <linux/sockios.h>
#include <sys/socket.h>
#include <sys/un.h>
static char b[70000];
static struct sockaddr_in lo(int port) { return (struct sockaddr_in){AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}}; }
static void parts(void)
{
	int p[2], on = 1;
	char c[CMSG_SPACE(sizeof(struct ucred))];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	must(setsockopt(p[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	must(write(p[0], "abcdef", 6));
	for (int i = 0; i < 3; i++) {
		struct iovec v = {b, 2};
		struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = sizeof c};
		R(recvmsg(p[1], &m, 0));
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);
		T(h && h->cmsg_type == SCM_CREDENTIALS && ((struct ucred *)CMSG_DATA(h))->pid == getpid());
	}
	/* Nothing wanted of an empty queue. */
	struct iovec v = {b, 0};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	R(recvmsg(p[1], &m, MSG_DONTWAIT));
	R(recv(p[1], b, 0, MSG_DONTWAIT));
	R(read(p[1], b, 0));
	must(write(p[0], "x", 1));
	R(recvmsg(p[1], &m, MSG_DONTWAIT));
	R(recv(p[1], b, 10, MSG_DONTWAIT));
	close(p[0]), close(p[1]);
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, p));
	R(recvmsg(p[1], &m, MSG_DONTWAIT));
	must(send(p[0], "xyz", 3, 0));
	R(recvmsg(p[1], &m, MSG_DONTWAIT));
	R(recv(p[1], b, 10, MSG_DONTWAIT));
	close(p[0]), close(p[1]);
}
static void udp(void)
{
	int s = must(socket(AF_INET, SOCK_DGRAM, 0)), t = must(socket(AF_INET, SOCK_DGRAM, 0));
	struct sockaddr_in a = lo(0), c;
	socklen_t n = sizeof a;
	R(connect(s, (void *)&a, sizeof a)); /* port 0 */
	R(getpeername(s, (void *)&c, &n));
	struct sockaddr un = {AF_UNSPEC};
	R(connect(s, &un, sizeof un));
	must(bind(t, (void *)&a, sizeof a));
	n = sizeof a;
	must(getsockname(t, (void *)&a, &n));
	/* Connected, then not: a bound address stays, one taken on the way goes. */
	R(connect(s, (void *)&a, sizeof a));
	n = sizeof c;
	must(getsockname(s, (void *)&c, &n));
	T(c.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && c.sin_port);
	R(connect(s, &un, sizeof un));
	n = sizeof c;
	must(getsockname(s, (void *)&c, &n));
	N(c.sin_addr.s_addr);
	N(c.sin_port != 0);
	R(connect(t, (void *)&a, sizeof a));
	R(connect(t, &un, sizeof un));
	n = sizeof c;
	must(getsockname(t, (void *)&c, &n));
	T(c.sin_addr.s_addr == a.sin_addr.s_addr);
	R(getpeername(t, (void *)&c, &n));
	R(shutdown(t, SHUT_RD));
	close(s), close(t);
	/* What is pending is there after a shutdown. */
	s = must(socket(AF_INET, SOCK_DGRAM, 0)), t = must(socket(AF_INET, SOCK_DGRAM, 0));
	a = lo(0), c = lo(0);
	must(bind(s, (void *)&a, sizeof a)), must(bind(t, (void *)&c, sizeof c));
	n = sizeof a;
	must(getsockname(s, (void *)&a, &n)), must(getsockname(t, (void *)&c, &n));
	must(connect(s, (void *)&c, sizeof c)), must(connect(t, (void *)&a, sizeof a));
	must(send(s, "pending", 7, 0));
	R(shutdown(t, SHUT_RD));
	R(recv(t, b, 10, 0));
	R(recv(t, b, 10, 0));
	/* Held back until the message is complete. */
	int u = must(socket(AF_INET, SOCK_DGRAM, 0)), w = must(socket(AF_INET, SOCK_DGRAM, 0));
	a = lo(0);
	must(bind(u, (void *)&a, sizeof a));
	n = sizeof a;
	must(getsockname(u, (void *)&a, &n));
	must(connect(w, (void *)&a, sizeof a));
	R(send(w, "one", 3, MSG_MORE));
	R(recv(u, b, 10, MSG_DONTWAIT));
	R(send(w, "two", 3, MSG_MORE));
	R(send(w, "end", 3, 0));
	R(recv(u, b, 20, MSG_DONTWAIT));
	b[9] = 0;
	S(b);
	R(recv(u, b, 10, MSG_DONTWAIT));
	R(recv(u, b, 10, MSG_ERRQUEUE));
	R(recv(u, b, 10, MSG_ERRQUEUE | MSG_DONTWAIT));
	close(s), close(t), close(u), close(w);
}
static void errors(void)
{
	/* The queue of errors is not that of data. */
	struct sockaddr_in a = lo(0);
	socklen_t n = sizeof a;
	int l = must(socket(AF_INET, SOCK_STREAM, 0)), c = must(socket(AF_INET, SOCK_STREAM, 0)), s;
	must(bind(l, (void *)&a, sizeof a)), must(listen(l, 1)), must(getsockname(l, (void *)&a, &n));
	must(connect(c, (void *)&a, sizeof a)), s = must(accept(l, 0, 0));
	R(recv(l, b, 1, MSG_ERRQUEUE));
	R(recv(c, b, 1, MSG_ERRQUEUE));
	must(write(s, "x", 1));
	R(recv(c, b, 1, MSG_ERRQUEUE));
	R(recv(c, b, 1, 0));
	close(s);
	R(recv(c, b, 1, MSG_ERRQUEUE));
	close(c), close(l);
}
static volatile int io;
static void h(int s) { io = s; }
static void owners(void)
{
	int p[2], me = getpid(), v, on = 1;
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	R(ioctl(p[0], FIOSETOWN, &me));
	v = 0;
	R(ioctl(p[0], FIOGETOWN, &v));
	T(v == me && fcntl(p[0], F_GETOWN) == me);
	v = -getpgrp();
	R(ioctl(p[0], SIOCSPGRP, &v));
	int w = 0;
	R(ioctl(p[0], SIOCGPGRP, &w));
	T(w == v);
	R(ioctl(p[0], SIOCSPGRP, &me));
	t_handle(SIGIO, h, 0);
	R(ioctl(p[0], FIOASYNC, &on));
	must(write(p[1], "x", 1));
	for (int i = 0; i < 2000 && !io; i++)
		t_ms(1);
	N(io == SIGIO);
	int q[2];
	must(pipe(q));
	R(ioctl(q[0], FIOSETOWN, &me));
	v = 99999999;
	R(ioctl(p[0], SIOCSPGRP, &v));
	close(p[0]), close(p[1]), close(q[0]), close(q[1]);
}
static void order(void)
{
	R(socket(-1, SOCK_STREAM, 0));
	R(socket(AF_UNIX, 99, 0));
	R(socket(AF_UNIX, SOCK_STREAM, 99));
	R(socket(99, 99, 0));
	R(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
	R(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
	R(socket(AF_INET, 0, 0));
	R(socket(AF_INET, SOCK_SEQPACKET, 0));
	R(socket(AF_INET, SOCK_STREAM, -1));
	R(socket(AF_INET, SOCK_STREAM, 1000));
	R(socket(AF_INET, SOCK_STREAM | 0x100, 0));
	R(socket(45, SOCK_STREAM, 0));
	int s = must(socket(AF_INET, SOCK_STREAM, 0)), v = 0;
	socklen_t n = 4;
	R(getsockopt(s, SOL_SOCKET, 9999, &v, &n));
	R(getsockopt(s, 9999, 1, &v, &n));
	R(getsockopt(s, SOL_SOCKET, SO_TYPE, 0, &n));
	R(getsockopt(s, SOL_SOCKET, SO_TYPE, &v, 0));
	n = -1;
	R(getsockopt(s, SOL_SOCKET, SO_TYPE, &v, &n));
	n = 0;
	R(getsockopt(s, SOL_SOCKET, SO_TYPE, &v, &n));
	n = 2;
	R(getsockopt(s, SOL_SOCKET, SO_TYPE, &v, &n));
	N(n);
	R(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, 0, 4));
	R(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &v, -1));
	R(setsockopt(s, 9999, 1, &v, 4));
	close(s);
}
int main(void)
{
	parts();
	udp();
	errors();
	owners();
	order();
	return t_done();
}
