/* Links, hard links, drain, completions that are skipped, and submissions that cannot be made: what is made, and in which order. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
static struct ring r;
static int p[2];

static struct io_uring_sqe *nop(uint64_t data, unsigned flags)
{
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, data);
	s->flags = flags;
	return s;
}

static void inject(uint64_t data, unsigned flags, int result)
{
	struct io_uring_sqe *s = nop(data, flags);
	s->rw_flags = 1, s->len = result;
}

/* Completions in the order they came in. */
static void in_order(const char *what, unsigned n)
{
	struct io_uring_cqe c;
	while (n--) {
		if (!ring_ready(&r))
			must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		if (ring_take(&r, &c))
			ring_say(what, &c, 0);
	}
}

int main(void)
{
	char a[8] = "", b[8] = "";
	must(ring_open(&r, 32, 0, 0));
	must(pipe(p));
	/* A chain: each begins when the one before has ended. */
	ring_sqe(&r, IORING_OP_READ, p[0], a, 3, -1, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_WRITE, p[1], "xyz", 3, -1, 2)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_READ, p[0], b, 3, -1, 3);
	nop(4, 0);
	R(ring_submit(&r, 1));
	in_order("first", 1);
	T(!ring_ready(&r));
	must(write(p[1], "abc", 3));
	in_order("chain", 3);
	T(!memcmp(a, "abc", 3) && !memcmp(b, "xyz", 3));
	/* A short transfer breaks it, and so does an error; a hard link does not. */
	must(write(p[1], "ab", 2));
	ring_sqe(&r, IORING_OP_READ, p[0], a, 3, -1, 1)->flags = IOSQE_IO_LINK;
	nop(2, IOSQE_IO_LINK);
	nop(3, 0);
	nop(4, 0);
	ring_do(&r, "short");
	ring_sqe(&r, IORING_OP_READ, 999, a, 3, -1, 1)->flags = IOSQE_IO_LINK;
	nop(2, 0);
	ring_do(&r, "error");
	ring_sqe(&r, IORING_OP_READ, 999, a, 3, -1, 1)->flags = IOSQE_IO_HARDLINK;
	nop(2, IOSQE_IO_HARDLINK);
	nop(3, 0);
	ring_do(&r, "hard");
	inject(1, IOSQE_IO_LINK, 5);
	inject(2, IOSQE_IO_LINK, -EBADF);
	nop(3, 0);
	ring_do(&r, "injected");
	/* A chain ends with its submission. */
	inject(1, IOSQE_IO_LINK, -EIO);
	ring_do(&r, "half");
	nop(2, 0);
	ring_do(&r, "other half");
	/* A chain with something wrong in it is not made at all. */
	ring_sqe(&r, IORING_OP_WRITE, p[1], "1", 1, -1, 1)->flags = IOSQE_IO_LINK;
	nop(2, IOSQE_IO_LINK)->opcode = 200;
	nop(3, 0);
	N(ring_submit(&r, 0));
	ring_show(&r, "wrong", 2);
	N(r_enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	ring_show(&r, "rest", 1);
	/* Drain: behind all before it. */
	ring_sqe(&r, IORING_OP_READ, p[0], a, 1, -1, 1);
	nop(2, IOSQE_IO_DRAIN);
	nop(3, 0);
	R(ring_submit(&r, 0));
	T(!ring_ready(&r));
	must(write(p[1], "a", 1));
	in_order("drained", 3);
	nop(1, IOSQE_IO_DRAIN);
	nop(2, IOSQE_IO_LINK);
	nop(3, IOSQE_IO_DRAIN);
	nop(4, 0);
	ring_do(&r, "nothing to wait for");
	/* Skipped completions: none of what went well, all of what failed. */
	nop(1, IOSQE_CQE_SKIP_SUCCESS);
	nop(2, 0);
	R(ring_submit(&r, 1));
	ring_show(&r, "skipped", 1);
	T(!ring_ready(&r));
	inject(1, IOSQE_CQE_SKIP_SUCCESS, -EIO);
	ring_do(&r, "not skipped");
	inject(1, IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK, -EIO);
	nop(2, 0);
	R(ring_submit(&r, 1));
	ring_show(&r, "silent rest", 1);
	T(!ring_ready(&r));
	ring_close(&r);

	/* Nothing goes on behind what cannot be made, unless all are to be tried. */
	must(ring_open(&r, 8, 0, 0));
	nop(1, 0), nop(2, 0)->opcode = 200, nop(3, 0);
	N(ring_submit(&r, 0));
	ring_show(&r, "stopped", 2);
	N(*r.sq_head);
	ring_close(&r);
	must(ring_open(&r, 8, IORING_SETUP_SUBMIT_ALL, 0));
	nop(1, 0), nop(2, 0)->flags = 0x80, nop(3, 0);
	N(ring_submit(&r, 0));
	ring_show(&r, "all", 3);
	nop(1, IOSQE_BUFFER_SELECT);
	ring_do(&r, "no buffers for it");
	nop(1, 0)->personality = 7;
	ring_do(&r, "nobody");
	nop(1, IOSQE_IO_DRAIN);
	ring_do(&r, "drain");
	ring_sqe(&r, IORING_OP_READ, p[0], a, 1, -1, 1)->ioprio = 0xffff;
	ring_do(&r, "no priority");
	nop(1, IOSQE_CQE_SKIP_SUCCESS), nop(2, IOSQE_IO_DRAIN);
	R(ring_submit(&r, 1));
	ring_show(&r, "drain behind a skip", 1);
	ring_close(&r);
	return t_failed;
}
