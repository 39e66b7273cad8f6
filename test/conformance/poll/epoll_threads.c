/* epoll with several waiting threads: one event wakes one, no event is lost, changes while others wait. */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
static int e, stop, woken, taken;
static void *th(void *a)
{
	(void)a;
	struct epoll_event v;
	for (;;) {
		if (epoll_wait(e, &v, 1, -1) != 1)
			continue;
		if ((int)v.data.u64 == stop)
			return 0;
		__atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
		uint64_t n;
		if (read(v.data.u64, &n, 8) == 8)
			__atomic_add_fetch(&taken, n, __ATOMIC_SEQ_CST);
	}
}
int main(void)
{
	e = must(epoll_create1(0));
	stop = must(eventfd(0, EFD_NONBLOCK));
	int f[20];
	for (int i = 0; i < 20; i++) {
		f[i] = must(eventfd(0, EFD_NONBLOCK));
		struct epoll_event v = {EPOLLIN | (i & 1 ? EPOLLET : 0), {.u64 = f[i]}};
		must(epoll_ctl(e, EPOLL_CTL_ADD, f[i], &v));
	}
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, th, 0);
	for (int i = 0; i < 5000; i++)
		eventfd_write(f[i % 20], 1);
	for (int i = 0; i < 1000 && taken < 5000; i++)
		t_ms(5);
	N(taken);
	t_ms(100); /* all wait again */
	woken = 0;
	eventfd_write(f[1], 1);
	t_ms(100);
	N(woken); /* an edge wakes one of them */
	int late = must(eventfd(1, EFD_NONBLOCK));
	struct epoll_event v = {EPOLLIN, {.u64 = late}};
	must(epoll_ctl(e, EPOLL_CTL_ADD, late, &v)); /* added while others wait: seen at once */
	for (int i = 0; i < 1000 && taken < 5002; i++)
		t_ms(5);
	N(taken);
	v.events = EPOLLIN, v.data.u64 = stop;
	must(epoll_ctl(e, EPOLL_CTL_ADD, stop, &v));
	eventfd_write(stop, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	say("all gone\n");
	return t_done();
}
