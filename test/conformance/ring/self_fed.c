/* Polls that go on, of what the ring's own completions make ready: they end instead of feeding themselves for ever. */
/* host: io_uring */
/* not: musl */
/* linux: 6.2 */
#include "ring.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
static struct ring r;
/* Completions until none comes any more. */
static void drain(const char *what)
{
	struct io_uring_cqe c;
	for (int i = 0, quiet = 0; i < 1000 && quiet < 20;) {
		r_enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS);
		if (!ring_take(&r, &c)) {
			t_ms(2), quiet++;
			continue;
		}
		ring_say(what, &c, 0);
		quiet = 0, i++;
	}
	say("%s: no more\n", what);
}
static void poll_of(int fd, int data)
{
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_POLL_ADD, fd, 0, IORING_POLL_ADD_MULTI, 0, data);
	s->poll32_events = POLLIN;
	must(ring_submit(&r, 0));
}
int main(void)
{
	/* An epoll that has the ring in it. */
	must(ring_open(&r, 8, 0, 0));
	int e = must(epoll_create1(0)), v;
	struct epoll_event ev = {EPOLLIN, {0}};
	must(epoll_ctl(e, EPOLL_CTL_ADD, r.fd, &ev));
	poll_of(e, 1);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 2);
	must(ring_submit(&r, 0));
	drain("epoll");
	ring_close(&r), close(e);
	/* An eventfd that is notified of completions. */
	must(ring_open(&r, 8, 0, 0));
	v = must(eventfd(0, EFD_NONBLOCK));
	must(r_register(r.fd, IORING_REGISTER_EVENTFD, &v, 1));
	poll_of(v, 1);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 2);
	must(ring_submit(&r, 0));
	drain("eventfd");
	ring_close(&r), close(v);
	/* One that others make ready goes on. */
	must(ring_open(&r, 8, 0, 0));
	v = must(eventfd(0, EFD_NONBLOCK));
	poll_of(v, 1);
	for (int i = 0; i < 4; i++) {
		uint64_t one = 1;
		must(write(v, &one, 8));
		ring_show(&r, "written", 1);
		must(read(v, &one, 8));
	}
	drain("written");
	ring_close(&r);
	return t_done();
}
