/* What /proc/self/fdinfo shows of timers and counters; TFD_IOC_SET_TICKS; F_CREATED_QUERY; which mistake epoll_wait names first. */
/* linux: 6.15 */
/* not: i386 */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#define SET_TICKS _IOW('T', 0, uint64_t)
#define CREATED (1024 + 4)
/* The lines that begin so, of those behind the first four; the rest of a line where a number is no matter. */
static void info(const char *what, int f)
{
	char n[64], b[1024];
	snprintf(n, sizeof n, "/proc/self/fdinfo/%d", f);
	int g = must(open(n, O_RDONLY));
	int k = must(read(g, b, sizeof b - 1));
	close(g);
	b[k] = 0;
	say("-- %s\n", what);
	for (char *l = strtok(b, "\n"); l; l = strtok(0, "\n")) {
		long s = 0, ns = 0;
		if (!strncmp(l, "clockid", 7) || !strncmp(l, "ticks", 5) || !strncmp(l, "settime", 7) || !strncmp(l, "eventfd-c", 9) || !strncmp(l, "eventfd-s", 9) || !strncmp(l, "it_interval", 11))
			say("%s\n", l);
		if (sscanf(l, "it_value: (%ld, %ld)", &s, &ns) == 2)
			say("it_value %d %d\n", s > 0, s > 0 || ns > 0);
		if (sscanf(l, "eventfd-id: %ld", &s) == 1)
			say("an id\n");
	}
}
int main(void)
{
	int t = must(timerfd_create(CLOCK_MONOTONIC, 0)), r = must(timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK)), b = must(timerfd_create(CLOCK_BOOTTIME, 0));
	struct itimerspec v = {{7, 5}, {100, 3}};
	must(timerfd_settime(t, 0, &v, 0));
	info("monotonic", t);
	info("real time, unset", r);
	v = (struct itimerspec){{0, 0}, {2000000000, 0}};
	must(timerfd_settime(r, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &v, 0));
	info("real time", r);
	info("since boot", b);
	uint64_t n = 5, g = 0;
	R(ioctl(t, SET_TICKS, &n));
	info("ticks", t);
	R(read(t, &g, 8));
	N(g);
	n = 0;
	R(ioctl(t, SET_TICKS, &n));
	R(ioctl(t, SET_TICKS, 1));
	R(ioctl(t, _IOW('T', 1, uint64_t), &n));
	n = 3;
	R(ioctl(b, SET_TICKS, &n));
	struct pollfd p = {b, POLLIN, 0};
	R(poll(&p, 1, 0));
	v = (struct itimerspec){{0, 0}, {0, 1}};
	must(timerfd_settime(t, 0, &v, 0));
	p.fd = t;
	R(poll(&p, 1, 1000));
	info("expired", t);
	R(read(t, &g, 8));
	info("read", t);
	/* Who waits is woken. */
	pid_t c = must(fork());
	if (!c) {
		g = 0;
		R(read(t, &g, 8));
		N(g);
		_exit(0);
	}
	t_asleep(c, c);
	n = 9;
	int set = ioctl(t, SET_TICKS, &n);
	t_reap("reader", c);
	N(set);
	info("counter", must(eventfd(3, 0)));
	info("semaphore", must(eventfd(77, EFD_SEMAPHORE)));

	int f = must(open("new", O_CREAT | O_RDWR, 0600)), h = must(open("new", O_CREAT | O_RDWR, 0600));
	R(fcntl(f, CREATED, 0));
	R(fcntl(must(dup(f)), CREATED, 7));
	R(fcntl(h, CREATED, 0));
	R(fcntl(must(open("new", O_PATH)), CREATED, 0));
	R(fcntl(must(open("newer", O_CREAT | O_EXCL | O_WRONLY, 0600)), CREATED, 0));
	R(fcntl(t, CREATED, 0));
	R(fcntl(-1, CREATED, 0));
	must(unlink("new"));
	must(unlink("newer"));

	struct epoll_event ev[2];
	int e = must(epoll_create1(0));
	void *bad = (void *)-4096l;
	R(epoll_wait(-1, ev, 0, 0));
	R(epoll_wait(-1, ev, -1, 0));
	R(epoll_wait(-1, bad, 1, 0));
	R(epoll_wait(t, ev, 0, 0));
	R(epoll_wait(t, bad, 1, 0));
	R(epoll_wait(t, ev, 1, 0));
	R(epoll_wait(e, bad, 0, 0));
	R(epoll_wait(e, bad, 1, 0));
	R(epoll_wait(e, ev, 2, 0));
	return t_done();
}
