/* What waits: polls once and again and again, timeouts, limits of other operations, cancelling; waiting in io_uring_enter with a time, a mask, a signal. */
/* host: io_uring */
/* not: musl */
/* linux: 6.1 */
#include "ring.h"
#include <sys/eventfd.h>
#include <sys/epoll.h>
static struct ring r;
static volatile sig_atomic_t caught;
static void handler(int s) { (void)s; caught++; }

static struct __kernel_timespec ms(long n) { return (struct __kernel_timespec){n / 1000, n % 1000 * 1000000}; }

static struct io_uring_sqe *poll_add(int fd, unsigned events, uint64_t data)
{
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_POLL_ADD, fd, 0, 0, 0, data);
	s->poll32_events = events;
	return s;
}

static void cancel(uint64_t which, unsigned flags, int fd, uint64_t data)
{
	ring_sqe(&r, IORING_OP_ASYNC_CANCEL, fd, (void *)(uintptr_t)which, 0, 0, data)->cancel_flags = flags;
}

int main(void)
{
	int p[2], e = must(eventfd(0, EFD_NONBLOCK));
	char b[8];
	must(pipe(p));
	must(ring_open(&r, 16, 0, 0));
	/* Poll. */
	poll_add(p[1], POLLOUT | POLLIN, 1);
	ring_do(&r, "ready");
	poll_add(p[0], POLLIN, 1);
	R(ring_submit(&r, 0));
	T(!ring_ready(&r));
	must(write(p[1], "x", 1));
	ring_show(&r, "later", 1);
	must(read(p[0], b, 1));
	poll_add(999, POLLIN, 1);
	ring_do(&r, "nothing open");
	poll_add(e, POLLIN, 1)->len = IORING_POLL_ADD_MULTI;
	R(ring_submit(&r, 0));
	for (int i = 0; i < 3; i++) {
		must(eventfd_write(e, 1));
		ring_show(&r, "again", 1);
		eventfd_t v;
		must(eventfd_read(e, &v));
	}
	ring_sqe(&r, IORING_OP_POLL_REMOVE, -1, (void *)1, IORING_POLL_UPDATE_USER_DATA, 5, 2);
	R(ring_submit(&r, 1));
	ring_show(&r, "renamed", 1);
	must(eventfd_write(e, 1));
	ring_show(&r, "by its new name", 1);
	ring_sqe(&r, IORING_OP_POLL_REMOVE, -1, (void *)5, 0, 0, 2);
	R(ring_submit(&r, 2));
	ring_show(&r, "removed", 2);
	ring_sqe(&r, IORING_OP_POLL_REMOVE, -1, (void *)5, 0, 0, 2);
	ring_do(&r, "removed again");
	/* Timeouts. */
	struct __kernel_timespec t = ms(20), bad = {-1, 0}, longer = ms(100000), zero = ms(0);
	long before = t_now();
	ring_one(&r, "timeout", IORING_OP_TIMEOUT, -1, &t, 1, 0);
	T(t_now() - before >= 19);
	ring_one(&r, "at once", IORING_OP_TIMEOUT, -1, &zero, 1, 0);
	ring_one(&r, "no time", IORING_OP_TIMEOUT, -1, &bad, 1, 0);
	ring_one(&r, "nowhere", IORING_OP_TIMEOUT, -1, (void *)8, 1, 0);
	ring_one(&r, "two", IORING_OP_TIMEOUT, -1, &t, 2, 0);
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	struct __kernel_timespec at = {now.tv_sec, now.tv_nsec};
	ring_sqe(&r, IORING_OP_TIMEOUT, -1, &at, 1, 0, 1)->timeout_flags = IORING_TIMEOUT_ABS;
	ring_do(&r, "passed");
	ring_sqe(&r, IORING_OP_TIMEOUT, -1, &at, 1, 0, 1)->timeout_flags = IORING_TIMEOUT_BOOTTIME | IORING_TIMEOUT_REALTIME;
	ring_do(&r, "two clocks");
	ring_sqe(&r, IORING_OP_TIMEOUT, -1, &longer, 1, 2, 1);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 2), ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 3);
	ring_do(&r, "so many");
	ring_sqe(&r, IORING_OP_TIMEOUT, -1, &longer, 1, 0, 1);
	R(ring_submit(&r, 0));
	ring_sqe(&r, IORING_OP_TIMEOUT_REMOVE, -1, (void *)1, 0, 0, 2);
	R(ring_submit(&r, 2));
	ring_show(&r, "removed", 2);
	ring_one(&r, "none", IORING_OP_TIMEOUT_REMOVE, -1, (void *)77, 0, 0);
	ring_sqe(&r, IORING_OP_TIMEOUT, -1, &longer, 1, 0, 1);
	R(ring_submit(&r, 0));
	ring_sqe(&r, IORING_OP_TIMEOUT_REMOVE, -1, (void *)1, 0, (uintptr_t)&t, 2)->timeout_flags = IORING_TIMEOUT_UPDATE;
	R(ring_submit(&r, 2));
	ring_show(&r, "sooner", 2);
	/* Limits. */
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_LINK_TIMEOUT, -1, &t, 1, 0, 2);
	R(ring_submit(&r, 2));
	ring_show(&r, "limited", 2);
	must(write(p[1], "x", 1));
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_LINK_TIMEOUT, -1, &longer, 1, 0, 2);
	R(ring_submit(&r, 2));
	ring_show(&r, "in time", 2);
	must(write(p[1], "x", 1));
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_LINK_TIMEOUT, -1, &longer, 1, 0, 2)->flags = IOSQE_CQE_SKIP_SUCCESS;
	R(ring_submit(&r, 1));
	ring_show(&r, "in time, and silently", 1);
	T(!ring_ready(&r));
	ring_sqe(&r, IORING_OP_LINK_TIMEOUT, -1, &t, 1, 0, 2);
	ring_do(&r, "a limit of nothing");
	ring_sqe(&r, IORING_OP_POLL_ADD, p[0], 0, 0, 0, 1)->flags = IOSQE_IO_LINK;
	r.sqes[(r.tail - 1) & 15].poll32_events = POLLIN;
	ring_sqe(&r, IORING_OP_LINK_TIMEOUT, -1, &t, 1, 0, 2)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 3);
	R(ring_submit(&r, 3));
	ring_show(&r, "limited chain", 3);
	/* Cancelling. */
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 1);
	R(ring_submit(&r, 0));
	cancel(1, 0, -1, 2);
	R(ring_submit(&r, 2));
	ring_show(&r, "cancelled", 2);
	cancel(1, 0, -1, 2);
	ring_do(&r, "nothing to cancel");
	for (int i = 0; i < 3; i++)
		poll_add(i ? p[0] : e, POLLPRI, 7);
	R(ring_submit(&r, 0));
	cancel(0, IORING_ASYNC_CANCEL_FD, e, 8);
	R(ring_submit(&r, 2));
	ring_show(&r, "by its file", 2);
	cancel(7, IORING_ASYNC_CANCEL_ALL, -1, 8);
	R(ring_submit(&r, 3));
	ring_show(&r, "all of the name", 3);
	poll_add(e, POLLPRI, 1), poll_add(p[0], POLLPRI, 2);
	R(ring_submit(&r, 0));
	cancel(0, IORING_ASYNC_CANCEL_ANY, -1, 8);
	R(ring_submit(&r, 3));
	ring_show(&r, "any", 3);
	cancel(0, IORING_ASYNC_CANCEL_ALL, -1, 8);
	ring_do(&r, "all of none");
	cancel(0, 1u << 20, -1, 8);
	ring_do(&r, "unknown flags");
	/* Waiting in the call. */
	struct io_uring_getevents_arg arg = {.ts = (uintptr_t)&t};
#define wait_arg(n, a, size) syscall(__NR_io_uring_enter, r.fd, 0, n, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, a, size)
	R(wait_arg(1, &arg, sizeof arg));
	R(wait_arg(0, &arg, sizeof arg));
	R(wait_arg(1, &arg, 8));
	R(wait_arg(1, (void *)8, sizeof arg));
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 1);
	R(ring_submit(&r, 0));
	R(wait_arg(2, &arg, sizeof arg));
	ring_show(&r, "one of two", 1);
	struct sigaction sa = {.sa_handler = handler};
	sigaction(SIGALRM, &sa, 0);
	struct itimerval soon = {{0, 0}, {0, 20000}};
	setitimer(ITIMER_REAL, &soon, 0);
	R(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	N(caught);
	sigset_t block, none;
	sigemptyset(&none), sigemptyset(&block), sigaddset(&block, SIGALRM);
	sigprocmask(SIG_BLOCK, &block, 0);
	raise(SIGALRM);
	N(caught);
	R(syscall(__NR_io_uring_enter, r.fd, 0, 1, IORING_ENTER_GETEVENTS, &none, 8));
	N(caught);
	sigset_t after;
	sigprocmask(SIG_SETMASK, 0, &after);
	T(sigismember(&after, SIGALRM));
	R(r_enter(r.fd, 0, 0, 1u << 30));
	/* A ring is waited for like any file. */
	int ep = must(epoll_create1(0));
	struct epoll_event ev = {.events = EPOLLIN};
	must(epoll_ctl(ep, EPOLL_CTL_ADD, r.fd, &ev));
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 1);
	R(ring_submit(&r, 0));
	R(epoll_wait(ep, &ev, 1, 0));
	pid_t child = must(fork());
	if (!child) {
		t_ms(30);
		must(write(p[1], "x", 1));
		_exit(0);
	}
	int n;
	/* Linux may interrupt it for what the ring has to do. */
	while ((n = epoll_wait(ep, &ev, 1, -1)) == -1 && errno == EINTR)
		;
	N(n);
	ring_show(&r, "in epoll", 1);
	t_reap("child", child);
	/* A program that makes no call at all finds what has ended. */
	ring_sqe(&r, IORING_OP_TIMEOUT, -1, &t, 1, 0, 1);
	R(ring_submit(&r, 0));
	while (!ring_ready(&r))
		;
	ring_show(&r, "seen", 1);
	ring_close(&r);
	return t_failed;
}
