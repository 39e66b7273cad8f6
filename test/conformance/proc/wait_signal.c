/* Who has waited for a child has had its signal: the handler has run when the wait is over. And who has the signal finds the child. */
#include "t.h"
#include <sched.h>
#include <sys/epoll.h>
static volatile int signals;
static void count(int n) { signals += n == SIGCHLD; }
static volatile int reaped, missed;
static void reap(int n)
{
	(void)n;
	int some = 0;
	while (waitpid(-1, 0, WNOHANG) > 0)
		some++;
	reaped += some;
	missed += !some;
}
/* As shells do it: a parent that is notified once and finds nothing would wait for ever. */
static void notified(void)
{
	sigset_t chld, none;
	sigemptyset(&none);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	must(sigprocmask(SIG_BLOCK, &chld, 0));
	t_handle(SIGCHLD, reap, 0);
	for (int i = 1; i <= 300; i++) {
		if (!must(fork()))
			_exit(0);
		while (reaped < i)
			sigsuspend(&none);
	}
	N(reaped);
	N(missed);
}
/* Any eight bits are an exit signal for clone(2); what is no signal is not sent. */
static void none(void)
{
	int ep = must(epoll_create1(0)), cut = 0;
	struct epoll_event e;
	for (int signal = 65; signal < 256; signal += 19) {
		pid_t p = must(syscall(SYS_clone, signal, 0, 0, 0, 0));
		if (!p) {
			t_ms(2);
			_exit(0);
		}
		cut += epoll_wait(ep, &e, 1, 20) != 0;
		must(waitpid(p, 0, __WALL));
	}
	N(cut);
}
int main(void)
{
	alarm(60);
	int late = 0;
	t_handle(SIGCHLD, count, 0);
	for (int i = 1; i <= 300; i++) {
		pid_t p = must(fork());
		if (!p)
			_exit(0);
		/* Some find it at once, some wait, some look again and again. */
		int got, how = i % 3 == 2 ? WNOHANG : 0;
		if (i % 3 == 0)
			sched_yield();
		while ((got = waitpid(p, 0, how)) != p)
			if (got == -1 && errno != EINTR)
				return 1;
		late += signals != i;
	}
	N(late);
	notified();
	none();
	return t_done();
}
