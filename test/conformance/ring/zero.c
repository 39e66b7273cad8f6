/* Transfers without a copy, which end twice, and messages into buffers of a group, once and again and again. */
/* host: io_uring */
/* not: musl */
/* linux: 6.2 */
#include "ring.h"
#include <netinet/in.h>
#include <sys/socket.h>
#ifndef IORING_OP_SEND_ZC
#define IORING_OP_SEND_ZC 47
#endif
#define SENDMSG_ZC 48
#define REPORT_USAGE (1 << 3)
#define CQE_NOTIF (1 << 3)
static struct ring r;

static void next(const char *what)
{
	struct io_uring_cqe c;
	while (!ring_take(&r, &c))
		must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	const char *result = c.res < 0 && (unsigned)c.res != 1u << 31 ? t_errno(-c.res) : (unsigned)c.res == 1u << 31 ? "copied" : "";
	say("%s: %d %d %s%s%s\n", what, (int)c.user_data, *result ? 0 : c.res, result, c.flags & IORING_CQE_F_MORE ? " more" : "",
	    c.flags & CQE_NOTIF ? " notified" : "");
}

static void both(const char *what)
{
	must(ring_submit(&r, 1));
	next(what);
	next(what);
}

static int pair(int *c)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof in;
	int l = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(l, (void *)&in, sizeof in));
	must(listen(l, 1));
	must(getsockname(l, (void *)&in, &len));
	*c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(*c, (void *)&in, len));
	int a = must(accept(l, 0, 0));
	close(l);
	return a;
}

/* A message in a buffer: what a multishot operation has left there. */
static void message(const char *what, char (*b)[256], unsigned name)
{
	struct io_uring_cqe c;
	while (!ring_take(&r, &c))
		must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	if (c.res < 0 || !(c.flags & IORING_CQE_F_BUFFER)) {
		say("%s: %s%s\n", what, c.res < 0 ? t_errno(-c.res) : "nothing", c.flags & IORING_CQE_F_MORE ? " more" : "");
		return;
	}
	char *at = b[c.flags >> IORING_CQE_BUFFER_SHIFT];
	unsigned out[4];
	memcpy(out, at, sizeof out);
	struct sockaddr_in from = {0};
	memcpy(&from, at + 16, name < sizeof from ? name : sizeof from);
	say("%s: %d%s, name %u control %u payload %u flags %x, from %s, \"%.*s\"\n", what, c.res, c.flags & IORING_CQE_F_MORE ? " more" : "", out[0],
	    out[1], out[2], out[3], from.sin_family == AF_INET ? "inet" : "nobody", (int)(c.res - 16 - name), at + 16 + name);
}

int main(void)
{
	char b[64] = "";
	int c, a = pair(&c), u[2];
	must(ring_open(&r, 16, 0, 0));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, u));
	ring_sqe(&r, IORING_OP_SEND_ZC, c, "hello", 5, 0, 1);
	both("send");
	N(read(a, b, 64));
	ring_sqe(&r, IORING_OP_SEND_ZC, c, "hello", 5, 0, 2)->ioprio = REPORT_USAGE;
	both("send, and say how");
	N(read(a, b, 64));
	struct iovec v[2] = {{"ab", 2}, {"cde", 3}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	ring_sqe(&r, SENDMSG_ZC, c, &m, 1, 0, 3);
	both("sendmsg");
	N(read(a, b, 64));
	ring_sqe(&r, IORING_OP_SEND_ZC, u[0], "hello", 5, 0, 4);
	both("a pair of local sockets");
	ring_sqe(&r, IORING_OP_SEND_ZC, c, (void *)8, 5, 0, 5);
	both("a bad address");
	/* Buffers of a group. */
	static char buffers[8][256];
	ring_sqe(&r, IORING_OP_PROVIDE_BUFFERS, 8, buffers, 256, 0, 8)->buf_group = 7;
	must(ring_submit(&r, 1));
	next("provide");
	struct iovec w = {0, 3};
	struct msghdr n = {.msg_iov = &w, .msg_iovlen = 1};
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_RECVMSG, a, &n, 1, 0, 9);
	s->flags = IOSQE_BUFFER_SELECT, s->buf_group = 7;
	must(write(c, "hello", 5));
	must(ring_submit(&r, 1));
	next("recvmsg of three");
	T(!memcmp(buffers[0], "hel", 3) || !memcmp(buffers[7], "hel", 3));
	n.msg_iovlen = 2;
	s = ring_sqe(&r, IORING_OP_RECVMSG, a, &n, 1, 0, 10);
	s->flags = IOSQE_BUFFER_SELECT, s->buf_group = 7;
	must(ring_submit(&r, 1));
	next("recvmsg of two pieces");
	N(read(a, b, 64));
	/* Datagrams, again and again. */
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof in;
	int d = must(socket(AF_INET, SOCK_DGRAM, 0)), e = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(bind(d, (void *)&in, sizeof in));
	must(getsockname(d, (void *)&in, &len));
	must(connect(e, (void *)&in, len));
	struct msghdr h = {.msg_namelen = sizeof in};
	s = ring_sqe(&r, IORING_OP_RECVMSG, d, &h, 1, 0, 11);
	s->flags = IOSQE_BUFFER_SELECT, s->buf_group = 7, s->ioprio = IORING_RECV_MULTISHOT;
	must(ring_submit(&r, 0));
	must(write(e, "one", 3));
	message("first", buffers, sizeof in);
	must(write(e, "second", 6));
	message("second", buffers, sizeof in);
	for (int i = 0; i < 5; i++) {
		must(write(e, "more", 4));
		message("more", buffers, sizeof in);
	}
	must(write(e, "none left", 9));
	message("none left", buffers, sizeof in);
	R(read(d, b, 64));
	ring_sqe(&r, IORING_OP_PROVIDE_BUFFERS, 8, buffers, 256, 0, 8)->buf_group = 7;
	must(ring_submit(&r, 1));
	next("provide");
	s = ring_sqe(&r, IORING_OP_RECVMSG, d, &h, 1, 0, 12);
	s->flags = IOSQE_BUFFER_SELECT, s->buf_group = 7, s->ioprio = IORING_RECV_MULTISHOT;
	must(ring_submit(&r, 0));
	must(write(e, "", 0));
	message("an empty one", buffers, sizeof in);
	ring_close(&r);
	return t_failed;
}
