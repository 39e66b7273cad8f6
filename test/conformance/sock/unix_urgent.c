/* MSG_OOB on streams of AF_UNIX: the byte and its mark, who reads past it, in the stream, SIGURG, poll(2), descriptors along with it. */
#include "t.h"
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#ifndef SIOCATMARK
#define SIOCATMARK 0x8905
#endif
static int s[2];
static volatile int urgent;
static void note(int n) { urgent += n == SIGURG; }
static void put(const char *b, int flags)
{
	int r = send(s[0], b, strlen(b), flags);
	if (r != (int)strlen(b))
		say("put \"%s\": %d %s\n", b, r, r < 0 ? t_errno(errno) : "");
}
static void get(int n, int flags)
{
	char b[64] = "";
	struct iovec v = {b, n};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	int r = recvmsg(s[1], &m, flags | MSG_DONTWAIT);
	const char *how = flags & MSG_OOB ? flags & MSG_PEEK ? "peek urgent" : "urgent" : flags & MSG_PEEK ? "peek" : "get";
	if (r < 0)
		say("%s %d: %s\n", how, n, t_errno(errno));
	else
		say("%s %d: %d \"%.*s\"%s\n", how, n, r, r, b, m.msg_flags & MSG_OOB ? " urgent" : "");
}
static void state(void)
{
	struct pollfd p = {s[1], POLLIN | POLLPRI | POLLRDBAND, 0};
	int mark = -1;
	poll(&p, 1, 0), ioctl(s[1], SIOCATMARK, &mark);
	say("poll%s%s%s, mark %d\n", p.revents & POLLIN ? " in" : "", p.revents & POLLPRI ? " pri" : "",
	    p.revents & POLLRDBAND ? " band" : "", mark);
}
static void empty(void)
{
	char b[64];
	while (recv(s[1], b, sizeof b, MSG_DONTWAIT) > 0)
		;
}
static volatile int over;
static void *poller(void *arg)
{
	struct pollfd p = {s[1], POLLIN | POLLPRI, 0};
	while (!over)
		poll(&p, 1, 0);
	return arg;
}
/* Who polls and who peeks at the byte do not get into each other's way. */
static void together(void)
{
	pthread_t t;
	int low = 2, bad = 0;
	char c;
	must(setsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low));
	put("o", MSG_OOB);
	pthread_create(&t, 0, poller, 0);
	for (int i = 0; i < 20000; i++)
		bad += recv(s[1], &c, 1, MSG_OOB | MSG_PEEK) != 1;
	over = 1;
	pthread_join(t, 0);
	N(bad);
	low = 1;
	must(setsockopt(s[1], SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low));
	empty();
}
int main(void)
{
	int one = 1, zero = 0;
	char b[16] = "";
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	state(), get(1, MSG_OOB);
	R(send(s[0], "", 0, MSG_OOB));
	put("hello", MSG_OOB), put("world", 0);
	state(), get(2, 0), get(9, MSG_PEEK), get(9, 0), state();
	get(9, MSG_PEEK), get(1, MSG_OOB | MSG_PEEK), get(1, MSG_OOB), state(), get(1, MSG_OOB), get(9, MSG_PEEK), get(9, 0), state();
	say("passed, it is lost\n");
	put("ab", MSG_OOB), put("cd", 0), get(9, 0), state(), get(1, 0), state(), get(1, MSG_OOB), get(9, 0);
	put("!", MSG_OOB), state(), get(9, 0), get(1, MSG_OOB), state();
	say("the last one counts\n");
	put("ab", MSG_OOB), put("cd", MSG_OOB), state(), get(9, 0), state(), get(1, MSG_OOB), get(9, 0);
	put("1", MSG_OOB), put("2", MSG_OOB), put("3", 0), state(), get(9, 0), state(), get(9, 0);
	say("taken before it is reached\n");
	put("abc", MSG_OOB), put("def", 0), get(1, MSG_OOB), state(), get(9, MSG_PEEK), get(9, 0), state(), get(9, 0), state();
	put("abc", MSG_OOB), get(1, MSG_OOB), put("d", 0), put("ef", MSG_OOB), state(), get(9, MSG_PEEK), get(9, 0), state(), get(1, MSG_OOB),
	    get(9, 0);
	put("x", MSG_OOB), get(1, MSG_OOB), state(), put("yz", 0), state(), get(1, 0), state(), get(9, 0);
	put("x", MSG_OOB), get(1, MSG_OOB), put("y", MSG_OOB), state(), get(1, MSG_OOB), state(), get(9, 0), state();
	put("x", MSG_OOB), get(1, MSG_OOB), state(), get(9, 0), state();
	put("xyz", MSG_OOB), put("uvw", 0);
	R(recv(s[1], b, 5, MSG_WAITALL)), S(b);
	get(9, 0);
	say("in the stream\n");
	setsockopt(s[1], SOL_SOCKET, SO_OOBINLINE, &one, sizeof one);
	put("ab", MSG_OOB), put("cd", 0), state(), get(1, MSG_OOB), get(9, MSG_PEEK), get(9, 0), state(), get(9, MSG_PEEK), get(2, 0), state(), get(9, 0);
	put("ab", MSG_OOB), put("cd", MSG_OOB), get(9, 0), state(), get(9, 0), state();
	setsockopt(s[1], SOL_SOCKET, SO_OOBINLINE, &zero, sizeof zero);
	put("ab", MSG_OOB), put("cd", 0), get(1, MSG_OOB);
	setsockopt(s[1], SOL_SOCKET, SO_OOBINLINE, &one, sizeof one);
	state(), get(9, 0), get(9, 0);
	setsockopt(s[1], SOL_SOCKET, SO_OOBINLINE, &zero, sizeof zero);
	say("the owner is notified\n");
	signal(SIGURG, note);
	put("!", MSG_OOB), N(urgent);
	R(fcntl(s[1], F_SETOWN, getpid()));
	put("!", MSG_OOB), N(urgent);
	put("!", 0), N(urgent);
	R(fcntl(s[1], F_SETOWN, 0));
	put("!", MSG_OOB), N(urgent);
	empty();
	say("together\n");
	together();
	say("with descriptors\n");
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} c;
	for (int len = 1; len < 4; len += 2) {
		struct iovec v = {"xyz", len};
		struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
		memset(&c, 0, sizeof c);
		c.h.cmsg_level = SOL_SOCKET, c.h.cmsg_type = SCM_RIGHTS, c.h.cmsg_len = CMSG_LEN(sizeof(int));
		*(int *)CMSG_DATA(&c.h) = 1;
		R(sendmsg(s[0], &m, MSG_OOB));
		for (int turn = 0; turn < 2; turn++) {
			v.iov_base = b, v.iov_len = 9, m.msg_controllen = sizeof c;
			int r = recvmsg(s[1], &m, (turn ? MSG_OOB : 0) | MSG_DONTWAIT);
			say("%s: %d %s, descriptors %d\n", turn ? "urgent" : "get", r, r < 0 ? t_errno(errno) : "", r > 0 && m.msg_controllen >= CMSG_LEN(sizeof(int)));
		}
		empty();
	}
	say("ends\n");
	put("ab", MSG_OOB);
	R(shutdown(s[0], SHUT_WR));
	state(), get(1, 0), get(1, 0), state();
	put("x", MSG_OOB | MSG_NOSIGNAL);
	must(close(s[0]));
	must(close(s[1]));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	put("ab", MSG_OOB);
	get(1, 0);
	must(close(s[0]));
	get(1, MSG_OOB), get(1, 0), get(1, 0);
	must(close(s[1]));
	for (int type = SOCK_DGRAM; type <= SOCK_SEQPACKET; type += SOCK_SEQPACKET - SOCK_DGRAM) {
		must(socketpair(AF_UNIX, type, 0, s));
		put("a", MSG_OOB), get(1, MSG_OOB);
		int mark = 7;
		R(ioctl(s[1], SIOCATMARK, &mark));
	}
	return t_done();
}
