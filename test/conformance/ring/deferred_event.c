/* A ring whose work is done by who waits for completions (IORING_SETUP_DEFER_TASKRUN), in a loop of events: its event descriptor is signalled when there is
   something to be done, and the descriptor of the ring is readable, before anybody has asked for completions. */
/* host: io_uring */
/* not: musl */
/* linux: 6.1 */
#include "ring.h"
#include <poll.h>
#include <sys/eventfd.h>

static unsigned long long count(int e)
{
	unsigned long long n = 0;
	return read(e, &n, 8) == 8 ? n : 0;
}

static int ready(int fd, int wait)
{
	struct pollfd p = { fd, POLLIN, 0 };
	return poll(&p, 1, wait) > 0;
}

static void loop(int how)
{
	struct ring r;
	int p[2], e = must(eventfd(0, EFD_NONBLOCK));
	char byte;
	must(pipe(p));
	must(ring_open(&r, 8, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | how, 0));
	must(r_register(r.fd, IORING_REGISTER_EVENTFD, &e, 1));
	/* What waits, and is to be done once somebody writes. */
	ring_sqe(&r, IORING_OP_READ, p[0], &byte, 1, -1, 1);
	R(ring_submit(&r, 0));
	N(ready(e, 0));
	N(ready(r.fd, 0));
	must(write(p[1], "x", 1));
	N(ready(e, 5000));
	T(count(e) > 0);
	N(ready(r.fd, 5000));
	N(ring_ready(&r));
	if (how & IORING_SETUP_TASKRUN_FLAG)
		T(*r.sq_flags & IORING_SQ_TASKRUN);
	R(r_enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS));
	ring_show(&r, "read", 1);
	/* A completion at once, by the call that submits. */
	count(e);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 2);
	R(ring_submit(&r, 0));
	R(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	ring_show(&r, "nop", 1);
	ring_close(&r);
	close(p[0]), close(p[1]), close(e);
}

int main(void)
{
	loop(0);
	loop(IORING_SETUP_TASKRUN_FLAG);
	return t_done();
}
