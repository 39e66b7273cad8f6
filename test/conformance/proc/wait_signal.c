/* Who has waited for a child has had its signal: the handler has run when the wait is over. */
#include "t.h"
#include <sched.h>
static volatile int signals;
static void count(int n) { signals += n == SIGCHLD; }
int main(void)
{
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
	return t_done();
}
