/* Operations on sockets: made, bound, connected, accepted once and again and again; sending and receiving, with buffers of a group. */
/* host: io_uring */
/* not: musl */
/* linux: 6.1 */
#include "ring.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
static struct ring r;

static int result(const char *what)
{
	struct io_uring_cqe c;
	must(ring_submit(&r, 1));
	while (!ring_take(&r, &c))
		must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	ring_say(what, &c, 1);
	return c.res;
}

/* The next completion with its buffer, and what is in that. */
static int buffer(const char *what, char (*b)[64])
{
	struct io_uring_cqe c;
	while (!ring_take(&r, &c))
		must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	ring_say(what, &c, 0);
	if (!(c.flags & IORING_CQE_F_BUFFER)) {
		say("%s: no buffer\n", what);
		return -1;
	}
	int id = c.flags >> IORING_CQE_BUFFER_SHIFT;
	say("%s: %.*s in %d\n", what, c.res, b[id], id);
	return id;
}

int main(void)
{
	must(ring_open(&r, 16, 0, 0));
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof in;
	ring_sqe(&r, IORING_OP_SOCKET, AF_INET, 0, 0, SOCK_STREAM, 1);
	int l = result("socket");
	ring_sqe(&r, IORING_OP_SOCKET, 999, 0, 0, SOCK_STREAM, 1);
	result("no such family");
	must(bind(l, (void *)&in, sizeof in));
	must(listen(l, 8));
	must(getsockname(l, (void *)&in, &len));
	ring_sqe(&r, IORING_OP_ACCEPT, l, 0, 0, 0, 1)->accept_flags = SOCK_CLOEXEC;
	R(ring_submit(&r, 0));
	int c = must(socket(AF_INET, SOCK_STREAM, 0));
	ring_sqe(&r, IORING_OP_CONNECT, c, &in, 0, sizeof in, 2);
	R(ring_submit(&r, 2));
	struct io_uring_cqe q;
	int a = -1;
	for (int i = 0; i < 2; i++) {
		while (!ring_take(&r, &q))
			must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		if (q.user_data == 1)
			a = q.res;
		else
			N(q.res);
	}
	T(a > 0 && fcntl(a, F_GETFD) == FD_CLOEXEC);
	char b[64] = "", buffers[8][64];
	ring_sqe(&r, IORING_OP_RECV, a, b, 64, 0, 1);
	R(ring_submit(&r, 0));
	ring_sqe(&r, IORING_OP_SEND, c, "hello", 5, 0, 2);
	ring_do(&r, "sent") ;
	ring_show(&r, "received", 1);
	S(b);
	struct iovec v[2] = {{"ab", 2}, {"cde", 3}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	ring_sqe(&r, IORING_OP_SENDMSG, a, &m, 1, 0, 1);
	ring_do(&r, "sendmsg");
	struct iovec w = {b, 64};
	struct msghdr n = {.msg_iov = &w, .msg_iovlen = 1};
	memset(b, 0, sizeof b);
	ring_sqe(&r, IORING_OP_RECVMSG, c, &n, 1, 0, 1);
	ring_do(&r, "recvmsg");
	S(b);
	ring_sqe(&r, IORING_OP_RECV, c, b, 64, 0, 1)->msg_flags = MSG_DONTWAIT;
	ring_do(&r, "recv of nothing");
	ring_sqe(&r, IORING_OP_SEND, 1, "x", 1, 0, 1);
	ring_do(&r, "send to no socket");
	ring_one(&r, "send what is nowhere", IORING_OP_SEND, c, (void *)8, 1, 0);
	/* Buffers of a group. */
	ring_sqe(&r, IORING_OP_RECV, c, 0, 64, 0, 1)->flags = IOSQE_BUFFER_SELECT;
	must(send(a, "x", 1, 0));
	ring_do(&r, "no group");
	ring_sqe(&r, IORING_OP_PROVIDE_BUFFERS, 2, buffers[0], 64, 0, 1)->buf_group = 3;
	ring_do(&r, "provided");
	ring_sqe(&r, IORING_OP_PROVIDE_BUFFERS, 1, buffers[2], 64, 2, 1)->buf_group = 3;
	ring_do(&r, "provided");
	for (int i = 0; i < 2; i++) {
		if (i)
			must(send(a, "yz", 2, 0));
		struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_RECV, c, 0, i ? 1 : 0, 0, 1);
		s->flags = IOSQE_BUFFER_SELECT, s->buf_group = 3;
		R(ring_submit(&r, 1));
		buffer("selected", buffers);
	}
	ring_sqe(&r, IORING_OP_REMOVE_BUFFERS, 5, 0, 0, 0, 1)->buf_group = 3;
	ring_do(&r, "removed");
	ring_sqe(&r, IORING_OP_REMOVE_BUFFERS, 5, 0, 0, 0, 1)->buf_group = 3;
	ring_do(&r, "removed again");
	must(read(c, b, 1));
	/* A ring of them, and one operation for all that comes. */
	struct io_uring_buf *ring = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)ring, .ring_entries = 4, .bgid = 9};
	R(r_register(r.fd, IORING_REGISTER_PBUF_RING, &reg, 1));
	R(r_register(r.fd, IORING_REGISTER_PBUF_RING, &reg, 1));
	reg.bgid = 10, reg.ring_entries = 3;
	R(r_register(r.fd, IORING_REGISTER_PBUF_RING, &reg, 1));
	for (int i = 0; i < 3; i++)
		ring[i].addr = (uintptr_t)buffers[i], ring[i].len = 64, ring[i].bid = i;
	__atomic_store_n(&ring[0].resv, 3, __ATOMIC_RELEASE);
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_RECV, c, 0, 0, 0, 4);
	s->flags = IOSQE_BUFFER_SELECT, s->buf_group = 9, s->ioprio = IORING_RECV_MULTISHOT;
	R(ring_submit(&r, 0));
	for (int i = 0; i < 3; i++) {
		must(send(a, "0123" + i, 2, 0));
		buffer("multishot", buffers);
	}
	must(send(a, "z", 1, 0));
	ring_show(&r, "no buffers left", 1);
	reg.bgid = 9;
	R(r_register(r.fd, IORING_UNREGISTER_PBUF_RING, &reg, 1));
	R(r_register(r.fd, IORING_UNREGISTER_PBUF_RING, &reg, 1));
	must(read(c, b, 1));
	/* The end of a connection. */
	ring_sqe(&r, IORING_OP_SHUTDOWN, a, 0, SHUT_WR, 0, 1);
	ring_do(&r, "shutdown");
	ring_one(&r, "recv at the end", IORING_OP_RECV, c, b, 64, 0);
	ring_one(&r, "send behind the end", IORING_OP_SEND, a, b, 1, 0);
	close(c), close(a);
	/* Accept again and again. */
	ring_sqe(&r, IORING_OP_ACCEPT, l, 0, 0, 0, 6)->ioprio = IORING_ACCEPT_MULTISHOT;
	R(ring_submit(&r, 0));
	for (int i = 0; i < 3; i++) {
		c = must(socket(AF_INET, SOCK_STREAM, 0));
		must(connect(c, (void *)&in, sizeof in));
		while (!ring_take(&r, &q))
			must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		ring_say("accepted", &q, 1);
		close(q.res), close(c);
	}
	ring_sqe(&r, IORING_OP_ASYNC_CANCEL, -1, (void *)6, 0, 0, 7);
	R(ring_submit(&r, 2));
	ring_show(&r, "no more", 2);
	/* Operations wait for a descriptor that does not; with flags of their own they do not. */
	int pair[2];
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	for (int i = 0; i < 2; i++) {
		ring_sqe(&r, i ? IORING_OP_RECV : IORING_OP_READ, pair[0], b, 1, 0, 1);
		R(ring_submit(&r, 0));
		T(!ring_ready(&r));
		must(write(pair[1], "x", 1));
		ring_show(&r, "waiting", 1);
	}
	ring_sqe(&r, IORING_OP_READ, pair[0], b, 1, 0, 1)->rw_flags = RWF_NOWAIT;
	ring_do(&r, "not waiting");
	ring_close(&r);
	return t_failed;
}
