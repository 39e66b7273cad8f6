/* fork, exec, threads and ends with operations under way: what is left of them, and whose they are. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
static struct ring r;
static int p[2];
static char b[8];

static void *submits(void *arg)
{
	(void)arg;
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 1);
	must(ring_submit(&r, 0));
	t_ms(20);
	return 0;
}

static void *waits(void *arg)
{
	(void)arg;
	t_ms(20);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 3);
	must(ring_submit(&r, 0));
	return 0;
}

static int readable(void)
{
	struct pollfd f = {p[0], POLLIN, 0};
	return poll(&f, 1, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		/* The new program: the descriptor is closed, and what was under way takes nothing. */
		int w = atoi(argv[1]), rd = atoi(argv[2]);
		R(fcntl(atoi(argv[3]), F_GETFD));
		must(write(w, "e", 1));
		t_ms(20);
		struct pollfd f = {rd, POLLIN, 0};
		R(poll(&f, 1, 0));
		return 0;
	}
	must(pipe(p));
	/* A child has the ring, and may use it; what the parent has under way is the parent's. */
	must(ring_open(&r, 8, 0, 0));
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 1);
	R(ring_submit(&r, 0));
	CHILD("child",
		b[0] = 'c';
		must(write(p[1], "x", 1));
		t_ms(20);
		T(b[0] == 'c');
		ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 2);
		must(ring_submit(&r, 0)));
	ring_show(&r, "of both", 2);
	T(b[0] == 'x');
	r.tail = *r.sq_tail;
	/* A child that ends with something under way leaves nothing. */
	CHILD("child",
		ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 4);
		must(ring_submit(&r, 0)));
	r.tail = *r.sq_tail;
	must(write(p[1], "y", 1));
	t_ms(20);
	N(readable());
	must(read(p[0], b, 1));
	while (ring_ready(&r)) {
		struct io_uring_cqe c;
		ring_take(&r, &c);
	}
	CHILD("killed",
		ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 4);
		must(ring_submit(&r, 0));
		raise(SIGKILL));
	r.tail = *r.sq_tail;
	must(write(p[1], "y", 1));
	t_ms(20);
	N(readable());
	must(read(p[0], b, 1));
	while (ring_ready(&r)) {
		struct io_uring_cqe c;
		ring_take(&r, &c);
	}
	/* Closed with something under way. */
	struct ring o;
	must(ring_open(&o, 8, 0, 0));
	ring_sqe(&o, IORING_OP_READ, p[0], b, 1, -1, 1);
	ring_sqe(&o, IORING_OP_POLL_ADD, p[0], 0, 0, 0, 2)->poll32_events = POLLPRI;
	R(ring_submit(&o, 0));
	ring_close(&o);
	t_ms(20);
	must(write(p[1], "z", 1));
	N(readable());
	must(read(p[0], b, 1));
	/* A thread submits, another finds what came of it while it waits. */
	pthread_t t;
	must(write(p[1], "t", 1));
	pthread_create(&t, 0, submits, 0);
	pthread_join(t, 0);
	ring_show(&r, "by a thread", 1);
	pthread_create(&t, 0, waits, 0);
	R(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	pthread_join(t, 0);
	ring_show(&r, "woken", 1);
	/* Many at once, all given up by the end. */
	CHILD("many",
		struct ring m;
		must(ring_open(&m, 256, 0, 0));
		for (int k = 0; k < 8; k++) {
			for (int i = 0; i < 256; i++)
				ring_sqe(&m, IORING_OP_READ, p[0], b, 1, -1, i);
			must(ring_submit(&m, 0));
		});
	N(readable());
	/* exec. */
	char x[3][16];
	snprintf(x[0], 16, "%d", p[1]), snprintf(x[1], 16, "%d", p[0]), snprintf(x[2], 16, "%d", r.fd);
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 4);
	R(ring_submit(&r, 0));
	execl("/proc/self/exe", argv[0], x[0], x[1], x[2], (char *)0);
	return 1;
}
