/* Operations keep the file they were submitted with, whatever becomes of its descriptor; descriptors that registered sockets pass are the
 * process's; a buffer that was not used is whole again. */
/* host: io_uring */
/* not: musl */
/* linux: 6.1 */
#include "ring.h"
#include <sys/socket.h>
#include <sys/un.h>
static struct ring r;
static char buffers[4][64];

/* Closes a socket and gives its number to a new pair's first. */
static void reuse(int old, int pair[2])
{
	close(old);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	T(pair[0] == old);
}

static void once(int op)
{
	int a[2], b[2];
	char one[64] = "", two[64] = "";
	struct iovec v = {one, sizeof one};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a));
	ring_sqe(&r, op, a[0], op == IORING_OP_RECVMSG ? (void *)&m : one, op == IORING_OP_RECVMSG ? 1 : 64, 0, 1);
	R(ring_submit(&r, 0));
	reuse(a[0], b);
	must(write(b[1], "newer", 5));
	must(write(a[1], "old", 3));
	ring_show(&r, "once", 1);
	S(one);
	R(read(b[0], two, sizeof two));
	S(two);
	close(a[1]), close(b[0]), close(b[1]);
}

static void again_and_again(int gone)
{
	int a[2], b[2];
	char two[64] = "";
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a));
	ring_sqe(&r, IORING_OP_PROVIDE_BUFFERS, 4, buffers, 64, 0, 9)->buf_group = 1;
	ring_do(&r, "provided");
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_RECV, a[0], 0, 0, 0, 2);
	s->flags = IOSQE_BUFFER_SELECT, s->buf_group = 1, s->ioprio = IORING_RECV_MULTISHOT;
	R(ring_submit(&r, 0));
	reuse(a[0], b);
	must(write(b[1], "newer", 5));
	if (!gone) {
		must(write(a[1], "old", 3));
		ring_show(&r, "again", 1);
	}
	close(a[1]);
	ring_show(&r, "the end", 1);
	R(read(b[0], two, sizeof two));
	S(two);
	close(b[0]), close(b[1]);
	ring_sqe(&r, IORING_OP_REMOVE_BUFFERS, 4, 0, 0, 0, 1)->buf_group = 1;
	ring_do(&r, "removed");
}

static void accepts(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "\0ring-reuse"};
	int l = must(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)), b[2];
	must(bind(l, (void *)&un, sizeof un));
	must(listen(l, 4));
	ring_sqe(&r, IORING_OP_ACCEPT, l, 0, 0, 0, 1);
	R(ring_submit(&r, 0));
	reuse(l, b);
	int c = must(socket(AF_UNIX, SOCK_STREAM, 0));
	R(connect(c, (void *)&un, sizeof un));
	struct io_uring_cqe q;
	while (!ring_take(&r, &q))
		must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	ring_say("accepted", &q, 1);
	close(q.res), close(c), close(b[0]), close(b[1]);
}

static void passes(void)
{
	int a[2], files[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, a));
	R(r_register(r.fd, IORING_REGISTER_FILES, a, 2));
	must(pipe(files));
	char b[1] = {'x'};
	struct iovec v = {b, 1};
	union {
		char c[CMSG_SPACE(sizeof(int))];
		struct cmsghdr h;
	} u = {0};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = u.c, .msg_controllen = sizeof u.c};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &files[1], sizeof(int));
	ring_sqe(&r, IORING_OP_SENDMSG, 0, &m, 1, 0, 1)->flags = IOSQE_FIXED_FILE;
	ring_do(&r, "sent by a registered socket");
	memset(&u, 0, sizeof u);
	m.msg_controllen = sizeof u.c;
	ring_sqe(&r, IORING_OP_RECVMSG, 1, &m, 1, 0, 2)->flags = IOSQE_FIXED_FILE;
	ring_do(&r, "received by a registered socket");
	int got = -1;
	if (m.msg_controllen >= CMSG_LEN(sizeof(int)))
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
	T(got > files[1]);
	R(write(got, "y", 1));
	R(read(files[0], b, 1));
	T(b[0] == 'y');
	R(r_register(r.fd, IORING_UNREGISTER_FILES, 0, 0));
	close(got), close(files[0]), close(files[1]), close(a[0]), close(a[1]);
}

static void whole(void)
{
	int a[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, a));
	ring_sqe(&r, IORING_OP_PROVIDE_BUFFERS, 1, buffers, 64, 0, 9)->buf_group = 2;
	ring_do(&r, "provided");
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_RECV, a[0], 0, 8, 0, 1);
	s->flags = IOSQE_BUFFER_SELECT, s->buf_group = 2, s->msg_flags = MSG_DONTWAIT;
	ring_do(&r, "nothing yet");
	must(write(a[1], "0123456789abcdef0123456789abcdef", 32));
	s = ring_sqe(&r, IORING_OP_RECV, a[0], 0, 64, 0, 2);
	s->flags = IOSQE_BUFFER_SELECT, s->buf_group = 2;
	ring_do(&r, "a whole buffer");
	close(a[0]), close(a[1]);
}

int main(void)
{
	must(ring_open(&r, 16, 0, 0));
	once(IORING_OP_RECV);
	once(IORING_OP_RECVMSG);
	once(IORING_OP_READ);
	again_and_again(0);
	again_and_again(1);
	passes();
	whole();
	accepts();
	ring_close(&r);
	return t_failed;
}
