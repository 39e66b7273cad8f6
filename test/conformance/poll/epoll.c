/* epoll: level, edge, one-shot, exclusive, nested; errors of epoll_ctl; descriptors that vanish. */
/* not: i386 */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
static int e;
static void show(const char *w, int timeout)
{
	struct epoll_event v[8];
	int n = epoll_wait(e, v, 8, timeout);
	if (n < 0) {
		say("%s: %s\n", w, t_errno(errno));
		return;
	}
	/* In the order of the numbers given by the test. */
	for (int i = 0; i < n; i++)
		for (int k = i + 1; k < n; k++)
			if (v[k].data.u64 < v[i].data.u64) {
				struct epoll_event t = v[i];
				v[i] = v[k], v[k] = t;
			}
	say("%s: %d", w, n);
	for (int i = 0; i < n; i++)
		say(" [%d %#x]", (int)v[i].data.u64, v[i].events);
	say("\n");
}
static int ctl(int op, int fd, uint32_t ev, int id)
{
	struct epoll_event v = {ev, {.u64 = id}};
	return epoll_ctl(e, op, fd, &v);
}
int main(void)
{
	int p[2], q[2], file = must(open("f", O_CREAT | O_RDWR, 0600));
	char c;
	must(pipe(p)), must(pipe(q));
	R(epoll_create(0));
	R(epoll_create1(0x1234));
	e = must(epoll_create1(EPOLL_CLOEXEC));
	T(fcntl(e, F_GETFD) == FD_CLOEXEC);
	R(ctl(EPOLL_CTL_ADD, 99, EPOLLIN, 0));
	R(ctl(EPOLL_CTL_ADD, e, EPOLLIN, 0));
	R(ctl(EPOLL_CTL_ADD, file, EPOLLIN, 0));
	R(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN, 0));
	R(ctl(EPOLL_CTL_DEL, p[0], EPOLLIN, 0));
	R(ctl(77, p[0], EPOLLIN, 0));
	R(epoll_ctl(p[0], EPOLL_CTL_ADD, p[1], 0));
	R(epoll_ctl(e, EPOLL_CTL_ADD, p[0], (void *)8));
	R(ctl(EPOLL_CTL_ADD, p[0], EPOLLIN, 1));
	R(ctl(EPOLL_CTL_ADD, p[0], EPOLLIN, 1));
	struct epoll_event v[2];
	R(epoll_wait(e, v, 0, 0));
	R(epoll_wait(e, v, -1, 0));
	R(epoll_wait(p[0], v, 1, 0));
	R(epoll_wait(99, v, 1, 0));
	show("empty", 0);
	must(write(p[1], "ab", 2));
	show("level", 0);
	show("level again", 0);
	R(epoll_wait(e, (void *)8, 1, 0));
	R(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLET, 2));
	show("edge", 0);
	show("edge again", 0);
	must(write(p[1], "c", 1));
	show("edge, more came", 0);
	must(read(p[0], &c, 1));
	show("edge, some went", 0);
	R(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 3));
	show("one-shot", 0);
	must(write(p[1], "d", 1));
	show("one-shot again", 0);
	R(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 4));
	show("rearmed", 0);
	R(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN, 5));
	R(ctl(EPOLL_CTL_ADD, p[1], EPOLLOUT, 6));
	R(ctl(EPOLL_CTL_ADD, q[0], EPOLLIN, 7));
	show("several", 0);
	close(q[1]);
	show("hang-up", 0);
	R(ctl(EPOLL_CTL_DEL, q[0], 0, 0));
	R(epoll_ctl(e, EPOLL_CTL_DEL, p[1], 0));
	show("fewer", 0);
	/* A duplicate keeps the entry alive after the close. */
	int d = must(dup(p[0]));
	close(p[0]);
	show("closed, a duplicate lives", 0);
	close(d);
	show("closed", 0);
	/* Nested. */
	int ev = must(eventfd(0, EFD_NONBLOCK)), inner = must(epoll_create1(0));
	struct epoll_event x = {EPOLLIN, {.u64 = 8}};
	must(epoll_ctl(inner, EPOLL_CTL_ADD, ev, &x));
	R(ctl(EPOLL_CTL_ADD, inner, EPOLLIN, 9));
	R(epoll_ctl(inner, EPOLL_CTL_ADD, e, &x));
	show("nested", 0);
	must(eventfd_write(ev, 1));
	show("nested", 0);
	struct pollfd pf = {e, POLLIN, 0};
	R(poll(&pf, 1, 0));
	must(ctl(EPOLL_CTL_DEL, inner, 0, 0));
	R(poll(&pf, 1, 0));
	/* Edge on a descriptor that is ready when added; exclusive flags. */
	R(ctl(EPOLL_CTL_ADD, ev, EPOLLIN | EPOLLOUT | EPOLLET, 10));
	show("ready when added", 0);
	must(eventfd_write(ev, 1));
	show("each write is an edge", 0);
	R(ctl(EPOLL_CTL_MOD, ev, EPOLLIN | EPOLLEXCLUSIVE, 10));
	must(ctl(EPOLL_CTL_DEL, ev, 0, 0));
	R(ctl(EPOLL_CTL_ADD, ev, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 10));
	R(ctl(EPOLL_CTL_ADD, ev, EPOLLIN | EPOLLEXCLUSIVE, 11));
	show("exclusive", 0);
	R(ctl(EPOLL_CTL_MOD, ev, EPOLLIN, 11));
	uint64_t n;
	read(ev, &n, 8);
	long t = t_now();
	show("timeout", 30);
	T(t_now() - t >= 30);
	pid_t k = must(fork());
	if (!k) {
		t_asleep(getppid(), getppid());
		eventfd_write(ev, 1);
		_exit(0);
	}
	show("woken", 5000);
	t_reap("waker", k);
	struct timespec ts = {0, 10000000};
	read(ev, &n, 8);
	R(syscall(441 /* epoll_pwait2 */, e, v, 2, &ts, 0, 8));
	ts.tv_nsec = -1;
	R(syscall(441, e, v, 2, &ts, 0, 8));
	return t_done();
}
