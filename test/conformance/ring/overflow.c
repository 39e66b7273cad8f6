/* More completions than the ring holds: none is lost, and the program is notified. Counts and indices that are forged, entries that change: the kernel goes on. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
static struct ring r;

static void nops(int n, int first)
{
	for (int i = 0; i < n; i++)
		ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, first + i);
}

int main(void)
{
	struct io_uring_cqe c;
	must(ring_open(&r, 4, 0, 4));
	for (int i = 0; i < 3; i++) {
		nops(4, 4 * i);
		R(ring_submit(&r, 0));
	}
	N(ring_ready(&r));
	T(*r.sq_flags & IORING_SQ_CQ_OVERFLOW);
	N(*r.cq_overflow);
	for (int i = 0; i < 12; i++) {
		while (!ring_take(&r, &c))
			must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		T(c.user_data == i && c.res == 0);
	}
	T(!(*r.sq_flags & IORING_SQ_CQ_OVERFLOW));
	/* What waits meanwhile is reported later, too. */
	int p[2];
	char b[8];
	must(pipe(p));
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 99);
	R(ring_submit(&r, 0));
	nops(4, 0);
	R(ring_submit(&r, 0));
	must(write(p[1], "x", 1));
	R(r_enter(r.fd, 0, 4, IORING_ENTER_GETEVENTS));
	ring_show(&r, "full", 4);
	ring_show(&r, "kept", 1);
	/* More submissions than there are. */
	nops(1, 7);
	N(ring_submit(&r, 0));
	N(r_enter(r.fd, 5, 0, 0));
	ring_show(&r, "one", 1);
	/* A tail that cannot be: the ring is full of what was there before. */
	unsigned tail = *r.sq_tail;
	__atomic_store_n(r.sq_tail, tail + 1000, __ATOMIC_RELEASE);
	T(r_enter(r.fd, 4, 0, 0) <= 4);
	while (ring_take(&r, &c))
		;
	__atomic_store_n(r.sq_tail, *r.sq_head, __ATOMIC_RELEASE);
	N(r_enter(r.fd, 4, 0, 0));
	r.tail = *r.sq_tail;
	/* An index that is none: it is dropped, and counted. */
	nops(1, 8);
	r.sq_array[(r.tail - 1) & 3] = 77;
	N(ring_submit(&r, 0));
	N(*r.sq_dropped);
	nops(1, 9);
	N(ring_submit(&r, 0));
	ring_show(&r, "behind it", 1);
	/* A head that cannot be. */
	unsigned head = *r.cq_head;
	__atomic_store_n(r.cq_head, head - 100, __ATOMIC_RELEASE);
	nops(4, 10);
	N(ring_submit(&r, 0));
	__atomic_store_n(r.cq_head, head, __ATOMIC_RELEASE);
	must(r_enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS));
	int n = 0;
	while (ring_take(&r, &c))
		n++;
	T(n <= 4);
	/* Words that are the kernel's, overwritten. */
	memset(r.rings, 0xff, 256);
	memset(r.entries, 0xff, r.entries_len);
	for (int i = 0; i < 4; i++)
		r_enter(r.fd, 4, 0, IORING_ENTER_GETEVENTS);
	close(r.fd);
	/* Entries that change while they are taken. */
	struct ring s;
	must(ring_open(&s, 64, 0, 0));
	pid_t child = must(fork());
	if (!child)
		for (unsigned i = 0;; i++)
			((volatile unsigned char *)s.entries)[i * 7919 % s.entries_len] = i;
	for (int i = 0; i < 2000; i++) {
		s.tail += 8;
		__atomic_store_n(s.sq_tail, s.tail, __ATOMIC_RELEASE);
		struct io_uring_sqe *e = &s.sqes[s.tail & 63];
		e->opcode = IORING_OP_NOP, e->flags = 0;
		r_enter(s.fd, 8, 0, IORING_ENTER_GETEVENTS);
		while (ring_take(&s, &c))
			;
		__atomic_store_n(s.sq_tail, *s.sq_head, __ATOMIC_RELEASE);
		s.tail = *s.sq_tail;
	}
	kill(child, SIGKILL);
	t_reap("child", child);
	close(s.fd);
	must(ring_open(&r, 4, 0, 0));
	ring_one(&r, "another", IORING_OP_NOP, -1, 0, 0, 0);
	ring_close(&r);
	return t_failed;
}
