/* A timer inside an epoll inside an epoll, circles of epolls, signal masks of waiting calls. */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
static void h(int s) {}
static int pending(int s)
{
	sigset_t m;
	sigpending(&m);
	return sigismember(&m, s);
}
int main(void)
{
	int inner = must(epoll_create1(0)), outer = must(epoll_create1(0)), timer = must(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
	struct epoll_event e = {EPOLLIN, {.u64 = 7}}, o;
	R(epoll_ctl(inner, EPOLL_CTL_ADD, timer, &e));
	e.data.u64 = 8;
	R(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &e));
	struct itimerspec s = {{0, 10000000}, {0, 10000000}}, z = {{0, 0}, {0, 0}};
	must(timerfd_settime(timer, 0, &s, 0));
	uint64_t n;
	for (int i = 0; i < 3; i++) {
		R(epoll_wait(outer, &o, 1, 1000));
		R(epoll_wait(inner, &o, 1, 0));
		N((int)o.data.u64);
		R(read(timer, &n, 8));
	}
	struct pollfd p = {outer, POLLIN, 0};
	R(poll(&p, 1, 1000));
	N(p.revents);
	must(timerfd_settime(timer, 0, &z, 0));
	R(epoll_wait(outer, &o, 1, 20));
	R(epoll_ctl(inner, EPOLL_CTL_ADD, outer, &e));
	R(epoll_ctl(inner, EPOLL_CTL_ADD, inner, &e));
	int chain[6];
	for (int i = 0; i < 6; i++)
		chain[i] = must(epoll_create1(0));
	for (int i = 0; i < 5; i++)
		R(epoll_ctl(chain[i], EPOLL_CTL_ADD, chain[i + 1], &e));

	t_handle(SIGUSR1, h, SA_RESTART);
	sigset_t none, usr;
	sigemptyset(&none);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr, 0);
	struct timespec w = {0, 50000000};
	kill(getpid(), SIGUSR1);
	R(ppoll(0, 0, &w, &none));
	N(pending(SIGUSR1));
	kill(getpid(), SIGUSR1);
	p.fd = must(eventfd(1, 0)), p.events = POLLIN;
	R(ppoll(&p, 1, &w, &none)); /* ready: the signal is not taken */
	N(pending(SIGUSR1));
	R(epoll_pwait(outer, &o, 1, 100, &none));
	N(pending(SIGUSR1));
	kill(getpid(), SIGUSR1);
	fd_set r;
	FD_ZERO(&r);
	R(pselect(0, &r, 0, 0, &w, &none));
	N(pending(SIGUSR1));
	return t_done();
}
