/* Rings whose work only their submitter does (IORING_SETUP_DEFER_TASKRUN), with polls that wait for rings: the own one, by itself and by an epoll that has
   it, and each the next of a long row. */
/* host: io_uring */
/* not: musl */
/* linux: 6.4 */
#include "ring.h"
#include <sys/epoll.h>
#include <sys/resource.h>
#define DEFERRED (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)
#define ROW 200
static struct ring r, row[ROW];
static void poll_of(struct ring *of, int fd, int data)
{
	ring_sqe(of, IORING_OP_POLL_ADD, fd, 0, 0, 0, data)->poll32_events = POLLIN;
}
static void an_epoll(const char *what, int by_time)
{
	struct __kernel_timespec ms = {0, 10000000};
	struct epoll_event ev = {EPOLLIN, {0}};
	must(ring_open(&r, 8, DEFERRED, 0));
	int e = must(epoll_create1(0));
	must(epoll_ctl(e, EPOLL_CTL_ADD, r.fd, &ev));
	poll_of(&r, e, 1);
	if (by_time)
		ring_sqe(&r, IORING_OP_TIMEOUT, -1, &ms, 1, 0, 2);
	else
		ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 2);
	must(ring_submit(&r, 0));
	if (by_time)
		t_ms(50);
	/* Nothing is taken before the poll has seen it. */
	must(r_enter(r.fd, 0, 2, IORING_ENTER_GETEVENTS));
	ring_show(&r, what, 2);
	ring_close(&r), close(e);
}
static void itself(const char *what, int by_time)
{
	struct __kernel_timespec ms = {0, 10000000};
	struct io_uring_cqe c = {0};
	must(ring_open(&r, 16, DEFERRED, 0));
	for (int i = 1; i <= 6; i++)
		poll_of(&r, r.fd, i);
	must(ring_submit(&r, 0));
	if (by_time)
		ring_sqe(&r, IORING_OP_TIMEOUT, -1, &ms, 1, 0, 7);
	else
		ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 7);
	must(ring_submit(&r, 0));
	if (by_time)
		t_ms(50);
	/* Whether such a poll ends is a matter of what it was woken by first. */
	do {
		must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		while (ring_take(&r, &c) && c.user_data != 7)
			;
	} while (c.user_data != 7);
	ring_say(what, &c, 0);
	ring_close(&r);
}
int main(void)
{
	struct rlimit most = {4 * ROW, 4 * ROW};
	an_epoll("epoll", 0);
	an_epoll("epoll, by time", 1);
	itself("itself", 0);
	itself("itself, by time", 1);
	/* Timers go on. */
	t_ms(20);
	/* Each waits for the next. */
	setrlimit(RLIMIT_NOFILE, &most);
	for (int i = 0; i < ROW; i++)
		must(ring_open(&row[i], 4, DEFERRED, 0));
	for (int i = 0; i < ROW - 1; i++) {
		poll_of(&row[i], row[i + 1].fd, i);
		must(ring_submit(&row[i], 0));
	}
	ring_sqe(&row[ROW - 1], IORING_OP_NOP, -1, 0, 0, 0, ROW - 1);
	must(ring_submit(&row[ROW - 1], 0));
	int right = 0;
	/* What is waited for is taken when all have found it. */
	for (int i = ROW - 1; i >= 0; i--)
		must(r_enter(row[i].fd, 0, 1, IORING_ENTER_GETEVENTS));
	for (int i = ROW - 1; i >= 0; i--) {
		struct io_uring_cqe c = {0};
		right += ring_take(&row[i], &c) && c.user_data == (unsigned)i && c.res == (i == ROW - 1 ? 0 : POLLIN);
	}
	say("a row: %d of %d\n", right, ROW);
	for (int i = 0; i < ROW; i++)
		ring_close(&row[i]);
	return t_done();
}
