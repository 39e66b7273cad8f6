/* AF_UNIX datagrams and sequenced packets: borders, truncation, connect, full queues, sendmmsg. */
#include "t.h"
#include <sys/socket.h>
#include <sys/un.h>
static struct sockaddr_un at(const char *n)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	strcpy(a.sun_path, n);
	return a;
}
int main(void)
{
	char b[64], big[300000];
	struct sockaddr_un a = at("a"), c = at("c"), f;
	socklen_t n;
	int x = must(socket(AF_UNIX, SOCK_DGRAM, 0)), y = must(socket(AF_UNIX, SOCK_DGRAM, 0)), z = must(socket(AF_UNIX, SOCK_DGRAM, 0));
	must(bind(x, (void *)&a, sizeof a)), must(bind(y, (void *)&c, sizeof c));
	R(listen(x, 5));
	R(send(y, "x", 1, 0));
	R(sendto(y, "one", 3, 0, (void *)&a, sizeof a));
	R(sendto(y, "", 0, 0, (void *)&a, sizeof a));
	R(sendto(z, "three", 5, 0, (void *)&a, sizeof a));
	n = sizeof f;
	R(recvfrom(x, b, 64, 0, (void *)&f, &n));
	say("from <%s>\n", f.sun_path);
	n = sizeof f;
	R(recvfrom(x, b, 64, 0, (void *)&f, &n));
	n = sizeof f;
	R(recvfrom(x, b, 2, MSG_TRUNC, (void *)&f, &n));
	N(n);
	R(recv(x, b, 1, MSG_DONTWAIT));
	R(connect(y, (void *)&a, sizeof a));
	R(send(y, "connected", 9, 0));
	R(recv(x, b, 64, 0));
	R(sendto(x, "back", 4, 0, (void *)&c, sizeof c));
	R(recv(y, b, 64, 0));
	R(sendto(z, "foreign", 7, 0, (void *)&c, sizeof c)); /* y hears only a */
	R(connect(y, &(struct sockaddr){AF_UNSPEC, ""}, 2));
	R(sendto(z, "again", 5, 0, (void *)&c, sizeof c));
	R(recv(y, b, 64, MSG_DONTWAIT));
	f = at("none");
	R(sendto(z, "x", 1, 0, (void *)&f, sizeof f));
	R(send(z, big, sizeof big, MSG_DONTWAIT));
	R(sendto(z, big, sizeof big, MSG_DONTWAIT, (void *)&a, sizeof a));
	close(x);
	R(sendto(z, "x", 1, 0, (void *)&a, sizeof a));
	/* A pair. */
	int p[2];
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, p));
	int k = 0;
	while (send(p[0], "0123456789", 10, MSG_DONTWAIT) == 10 && k < 100000)
		k++;
	S(t_errno(errno));
	T(k >= 5);
	struct mmsghdr m[3];
	char r[3][16];
	struct iovec v[3];
	memset(m, 0, sizeof m);
	for (int i = 0; i < 3; i++)
		v[i] = (struct iovec){r[i], 16}, m[i].msg_hdr.msg_iov = &v[i], m[i].msg_hdr.msg_iovlen = 1;
	R(recvmmsg(p[1], m, 3, 0, 0));
	N(m[2].msg_len);
	for (int i = 0; i < 3; i++)
		v[i].iov_len = i + 1;
	R(sendmmsg(p[1], m, 3, 0));
	R(recv(p[0], b, 64, 0));
	R(recv(p[0], b, 64, 0));
	close(p[1]);
	R(recv(p[0], b, 64, 0));
	R(recv(p[0], b, 64, MSG_DONTWAIT));
	R(send(p[0], "x", 1, MSG_NOSIGNAL));
	/* Sequenced packets. */
	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p));
	R(write(p[0], "first", 5));
	R(write(p[0], "second", 6));
	R(read(p[1], b, 3));
	R(read(p[1], b, 64));
	struct iovec w[2] = {{"ab", 2}, {"cd", 2}};
	R(writev(p[0], w, 2));
	struct msghdr h = {.msg_iov = &(struct iovec){b, 2}, .msg_iovlen = 1};
	R(recvmsg(p[1], &h, 0));
	N(h.msg_flags);
	R(sendto(p[0], "x", 1, 0, (void *)&a, sizeof a));
	close(p[0]);
	R(read(p[1], b, 1));
	f = at("q");
	int l = must(socket(AF_UNIX, SOCK_SEQPACKET, 0)), o = must(socket(AF_UNIX, SOCK_STREAM, 0));
	must(bind(l, (void *)&f, sizeof f)), must(listen(l, 1));
	R(connect(o, (void *)&f, sizeof f)); /* the wrong type */
	R(socketpair(AF_INET, SOCK_STREAM, 0, p));
	R(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)8));
	return t_done();
}
