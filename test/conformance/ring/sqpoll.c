/* A ring that the kernel looks into by itself: submissions without a call, and the flag that shows when one is needed. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
static struct ring r;

/* Submits without a call, unless the kernel sleeps. */
static void submit(void)
{
	__atomic_store_n(r.sq_tail, r.tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(r.sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP)
		must(r_enter(r.fd, 1, 0, IORING_ENTER_SQ_WAKEUP));
}

int main(void)
{
	char b[64] = "";
	int p[2], f = must(open("file", O_RDWR | O_CREAT, 0600));
	must(pipe(p));
	memset(&r, 0, sizeof r);
	r.p.flags = IORING_SETUP_SQPOLL, r.p.sq_thread_idle = 50;
	r.fd = must(r_setup(8, &r.p));
	must(ring_map(&r));
	for (int i = 0; i < 3; i++) {
		ring_sqe(&r, IORING_OP_WRITE, f, "hello", 5, 5 * i, i);
		submit();
		while (!ring_ready(&r))
			;
		ring_show(&r, "without a call", 1);
	}
	/* It sleeps after a while, and shows it. */
	while (!(__atomic_load_n(r.sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP))
		t_ms(1);
	T(!ring_ready(&r));
	ring_sqe(&r, IORING_OP_READ, f, b, 64, 0, 7);
	submit();
	R(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	ring_show(&r, "woken", 1);
	S(b);
	/* What waits, while the program does nothing or sleeps. */
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 8);
	submit();
	t_ms(10);
	T(!ring_ready(&r));
	must(write(p[1], "x", 1));
	R(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	ring_show(&r, "later", 1);
	/* A full ring is waited for. */
	for (int i = 0; i < 8; i++)
		ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, i);
	submit();
	R(r_enter(r.fd, 0, 0, IORING_ENTER_SQ_WAIT));
	T(r.tail - __atomic_load_n(r.sq_head, __ATOMIC_ACQUIRE) < 8);
	ring_show(&r, "all", 8);
	/* It ends with the program, whatever is in it. */
	CHILD("child",
		struct ring o = {0};
		o.p.flags = IORING_SETUP_SQPOLL;
		o.fd = must(r_setup(8, &o.p));
		must(ring_map(&o));
		ring_sqe(&o, IORING_OP_READ, p[0], b, 1, -1, 1);
		__atomic_store_n(o.sq_tail, o.tail, __ATOMIC_RELEASE);
		t_ms(20));
	ring_close(&r);
	unlink("file");
	return t_failed;
}
