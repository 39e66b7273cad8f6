/* poll, ppoll, select, pselect: what is ready, hang-ups, bad descriptors, timeouts, masks. */
#include "t.h"
#include <sys/select.h>
static volatile int n;
static void h(int s) { (void)s, n++; }
static void rev(struct pollfd *p, int k)
{
	for (int i = 0; i < k; i++)
		say(" %#x", p[i].revents);
	say("\n");
}
int main(void)
{
	int p[2], q[2];
	must(pipe(p)), must(pipe(q));
	struct pollfd f[4] = {{p[0], POLLIN, 0}, {p[1], POLLOUT, 0}, {-1, POLLIN, 77}, {99, POLLIN, 0}};
	R(poll(f, 4, 0));
	rev(f, 4);
	R(poll(f, 1, 0));
	must(write(p[1], "x", 1));
	f[0].events = POLLIN | POLLRDNORM | POLLPRI | POLLOUT;
	R(poll(f, 1, 0));
	rev(f, 1);
	close(p[1]);
	R(poll(f, 1, 0));
	rev(f, 1);
	char c;
	must(read(p[0], &c, 1));
	R(poll(f, 1, 0));
	rev(f, 1);
	f[0].events = 0;
	R(poll(f, 1, 0)); /* hang-up is always reported */
	rev(f, 1);
	close(q[0]);
	f[0] = (struct pollfd){q[1], POLLOUT, 0};
	R(poll(f, 1, 0));
	rev(f, 1);
	int file = must(open("f", O_CREAT | O_RDWR, 0600));
	f[0] = (struct pollfd){file, POLLIN | POLLOUT, 0};
	R(poll(f, 1, 0));
	rev(f, 1);
	int null = must(open("/dev/null", O_RDWR));
	f[0].fd = null;
	R(poll(f, 1, 0));
	rev(f, 1);
	long t = t_now();
	R(poll(0, 0, 30));
	T(t_now() - t >= 30);
	R(poll((void *)8, 1, 0));
	R(poll(f, 1 << 30, 0));
	struct timespec z = {0, 30000000}, bad = {0, 1000000000};
	must(pipe(p));
	f[0] = (struct pollfd){p[0], POLLIN, 0};
	R(ppoll(f, 1, &z, 0));
	R(ppoll(f, 1, &bad, 0));
	sigset_t m, e;
	sigemptyset(&e), sigemptyset(&m), sigaddset(&m, SIGUSR1);
	t_handle(SIGUSR1, h, SA_RESTART);
	sigprocmask(SIG_BLOCK, &m, 0);
	raise(SIGUSR1);
	R(ppoll(f, 1, 0, &e));
	N(n);
	raise(SIGUSR1);
	fd_set r, w, x;
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	R(pselect(p[0] + 1, &r, 0, 0, 0, &e));
	N(n);
	sigprocmask(SIG_BLOCK, 0, &e);
	N(sigismember(&e, SIGUSR1));
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&x);
	FD_SET(p[0], &r);
	FD_SET(p[1], &w);
	FD_SET(p[0], &x);
	R(select(p[1] + 1, &r, &w, &x, 0));
	say("%d %d %d\n", FD_ISSET(p[0], &r), FD_ISSET(p[1], &w), FD_ISSET(p[0], &x));
	must(write(p[1], "x", 1));
	FD_SET(p[0], &r);
	R(select(p[1] + 1, &r, &w, 0, 0));
	/* Below 64: beyond the size of its descriptor table, which depends on the past, the host does not look. */
	FD_SET(60, &r);
	R(select(61, &r, 0, 0, &(struct timeval){0, 0}));
	R(select(-1, 0, 0, 0, 0));
	R(select(0, 0, 0, 0, &(struct timeval){0, -1}));
	R(select(0, 0, 0, 0, &(struct timeval){0, 20000}));
	struct timeval tv = {5, 0};
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	R(select(p[1] + 1, &r, 0, 0, &tv));
	T(tv.tv_sec == 4 || tv.tv_sec == 5); /* what is left of the time */
	read(p[0], &c, 1);
	/* Woken by another process. */
	pid_t k = must(fork());
	if (!k) {
		t_asleep(getppid(), getppid());
		write(p[1], "w", 1);
		_exit(0);
	}
	f[0] = (struct pollfd){p[0], POLLIN, 0};
	R(poll(f, 1, 5000));
	rev(f, 1);
	t_reap("waker", k);
	return t_done();
}
