/* The queue of errors of datagram sockets (IP_RECVERR, MSG_ERRQUEUE), and the time of the last datagram (SIOCGSTAMP). */
/* not: i386 */
#include "t.h"
#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/socket.h>
static int v6;
static union any { struct sockaddr s; struct sockaddr_in v4; struct sockaddr_in6 v6; } closed;
static socklen_t len(void) { return v6 ? sizeof closed.v6 : sizeof closed.v4; }
static union any loopback(int port)
{
	union any a = {0};
	if (v6)
		a.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	else
		a.v4 = (struct sockaddr_in){AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}};
	return a;
}
static int sock(int want)
{
	int s = must(socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0));
	if (want)
		must(v6 ? setsockopt(s, IPPROTO_IPV6, IPV6_RECVERR, &want, sizeof want) : setsockopt(s, IPPROTO_IP, IP_RECVERR, &want, sizeof want));
	return s;
}
/* A port that nobody has: one that was just given up, held by nobody else on this address. */
static void close_port(void)
{
	int s = sock(0);
	union any a = loopback(0);
	must(bind(s, &a.s, len()));
	socklen_t n = sizeof a;
	must(getsockname(s, &a.s, &n));
	closed = a;
	close(s);
}
static void events(int s)
{
	struct pollfd p = {s, POLLIN | POLLOUT | POLLPRI};
	poll(&p, 1, 0);
	say("poll %x\n", p.revents);
}
static int so_error(int s)
{
	int e = -1;
	socklen_t n = sizeof e;
	must(getsockopt(s, SOL_SOCKET, SO_ERROR, &e, &n));
	return e;
}
static void take(int s, int room, int control)
{
	char b[100] = {0}, c[512] = {0};
	union any from = {0};
	struct iovec v = {b, room};
	struct msghdr m = {&from, sizeof from, &v, 1, c, control, 0};
	long r = recvmsg(s, &m, MSG_ERRQUEUE);
	if (r < 0) {
		say("nothing: %s\n", t_errno(errno));
		return;
	}
	say("%ld bytes \"%s\" flags %x control %ld name %d: %s\n", r, b, m.msg_flags, (long)m.msg_controllen, m.msg_namelen,
	    !m.msg_namelen ? "-" : memcmp(&from, &closed, v6 ? 24 : 8) ? "another" : "that it was sent to");
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		struct sock_extended_err *e = (void *)CMSG_DATA(h);
		union any *o = (void *)(e + 1);
		say("level %d type %d len %ld: errno %s origin %d type %d code %d info %u data %u\n", h->cmsg_level, h->cmsg_type, (long)h->cmsg_len,
		    t_errno(e->ee_errno), e->ee_origin, e->ee_type, e->ee_code, e->ee_info, e->ee_data);
		if (h->cmsg_len >= CMSG_LEN(sizeof *e + sizeof o->s)) {
			union any l = loopback(0);
			say("offender family %d port %d %s\n", o->s.sa_family, ntohs(v6 ? o->v6.sin6_port : o->v4.sin_port),
			    (v6 ? memcmp(&o->v6.sin6_addr, &l.v6.sin6_addr, 16) : memcmp(&o->v4.sin_addr, &l.v4.sin_addr, 4)) ? "another" : "loopback");
		}
	}
}
static void queue(void)
{
	close_port();
	int s = sock(1);
	char b[100];
	take(s, 100, 512);
	R(sendto(s, "hello", 5, 0, &closed.s, len()));
	events(s);
	/* The next call has the error, once; the queue keeps its entry. */
	R(recv(s, b, sizeof b, MSG_DONTWAIT));
	events(s);
	R(recv(s, b, sizeof b, MSG_DONTWAIT));
	take(s, 100, 512);
	events(s);
	take(s, 100, 512);
	/* Two: what was not asked for goes with the last entry. */
	R(sendto(s, "one", 3, 0, &closed.s, len()));
	N(so_error(s));
	R(sendto(s, "two", 3, 0, &closed.s, len()));
	R(sendto(s, "three", 5, 0, &closed.s, len()));
	take(s, 2, 512);
	events(s);
	take(s, 100, 20);
	N(so_error(s));
	events(s);
	take(s, 100, 512);
	/* Connected; and through another one's eyes. */
	R(connect(s, &closed.s, len()));
	R(send(s, "four", 4, 0));
	R(send(s, "five", 4, 0));
	R(send(s, "six", 3, 0));
	take(s, 100, 512);
	take(s, 100, 512);
	take(s, 100, 512);
	N(so_error(s));
	/* Switched off, what waits is gone. */
	R(send(s, "seven", 5, 0));
	int off = 0;
	R(v6 ? setsockopt(s, IPPROTO_IPV6, IPV6_RECVERR, &off, sizeof off) : setsockopt(s, IPPROTO_IP, IP_RECVERR, &off, sizeof off));
	take(s, 100, 512);
	N(so_error(s));
	close(s);
	/* Without it, nothing is kept, and who is not connected hears nothing. */
	s = sock(0);
	R(sendto(s, "hello", 5, 0, &closed.s, len()));
	events(s);
	take(s, 100, 512);
	close(s);
	/* Data beside errors. */
	s = sock(1);
	union any me = loopback(0);
	must(bind(s, &me.s, len()));
	socklen_t n = sizeof me;
	must(getsockname(s, &me.s, &n));
	R(sendto(s, "lost", 4, 0, &closed.s, len()));
	N(so_error(s));
	R(sendto(s, "mine", 4, 0, &me.s, len()));
	events(s);
	R(recv(s, b, sizeof b, MSG_DONTWAIT));
	take(s, 100, 512);
	/* A queue that nobody reads has an end, and sends go on. */
	int i = 0, lost = 0;
	for (; i < 3000; i++)
		if (sendto(s, "more", 4, 0, &closed.s, len()) != 4)
			lost++;
	T(lost > 0 && lost < 3000);
	while (recv(s, b, 100, MSG_ERRQUEUE) >= 0)
		i--;
	T(i > 0 && i < 3000);
	close(s);
}
static void stamps(void)
{
	int s = sock(0), t = sock(0);
	union any a = loopback(0);
	char b[10];
	must(bind(t, &a.s, len()));
	socklen_t n = sizeof a;
	must(getsockname(t, &a.s, &n));
	struct timeval v;
	struct timespec w;
	R(ioctl(t, SIOCGSTAMP, &v));
	must(sendto(s, "a", 1, 0, &a.s, len()));
	usleep(20000);
	struct timespec before;
	clock_gettime(CLOCK_REALTIME, &before);
	must(recv(t, b, 1, 0));
	R(ioctl(t, SIOCGSTAMP, &v));
	R(ioctl(t, SIOCGSTAMPNS, &w));
	T(w.tv_sec == v.tv_sec && w.tv_nsec / 1000 == v.tv_usec);
	/* It is that of the last one read: the same until the next. */
	usleep(20000);
	R(ioctl(t, SIOCGSTAMPNS, &before));
	T(before.tv_sec == w.tv_sec && before.tv_nsec == w.tv_nsec);
	must(sendto(s, "b", 1, 0, &a.s, len()));
	R(ioctl(t, SIOCGSTAMPNS, &before));
	T(before.tv_sec == w.tv_sec && before.tv_nsec == w.tv_nsec);
	usleep(20000);
	clock_gettime(CLOCK_REALTIME, &before);
	must(recv(t, b, 1, 0));
	R(ioctl(t, SIOCGSTAMPNS, &w));
	/* From now on it was taken when it arrived, not when it was read. */
	T(w.tv_sec < before.tv_sec || (w.tv_sec == before.tv_sec && w.tv_nsec < before.tv_nsec));
	R(ioctl(t, SIOCGSTAMPNS, 8));
	close(s), close(t);
	int p[2];
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, p));
	R(ioctl(p[0], SIOCGSTAMP, &v));
	must(write(p[1], "x", 1));
	must(read(p[0], b, 1));
	R(ioctl(p[0], SIOCGSTAMP, &v));
	int st = must(socket(AF_INET, SOCK_STREAM, 0));
	R(ioctl(st, SIOCGSTAMP, &v));
}
int main(void)
{
	queue();
	stamps();
	v6 = 1;
	queue();
	return t_failed;
}
