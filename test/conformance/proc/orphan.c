/* Orphans go to init or to the nearest subreaper; death signals reach children. */
#include "t.h"
#include <sys/prctl.h>
static volatile int got;
static void h(int s) { got = s; }
int main(void)
{
	int pi[2];
	must(pipe(pi));
	R(prctl(PR_SET_CHILD_SUBREAPER, 1));
	int v = -1;
	R(prctl(PR_GET_CHILD_SUBREAPER, &v));
	N(v);
	pid_t me = getpid(), p = must(fork());
	if (!p) {
		pid_t mid = getpid();
		if (!fork()) {
			while (getppid() == mid)
				t_ms(5);
			char c = getppid() == me ? 'y' : 'n';
			write(pi[1], &c, 1);
			_exit(21);
		}
		_exit(0);
	}
	t_reap("middle", p);
	char c;
	R(read(pi[0], &c, 1));
	T(c == 'y');
	t_reap("adopted", -1);
	R(prctl(PR_SET_CHILD_SUBREAPER, 0));
	/* PR_SET_PDEATHSIG. */
	p = must(fork());
	if (!p) {
		pid_t q = fork();
		if (!q) {
			t_handle(SIGUSR2, h, 0);
			prctl(PR_SET_PDEATHSIG, SIGUSR2);
			int s = 0;
			prctl(PR_GET_PDEATHSIG, &s);
			c = s == SIGUSR2 ? 'r' : '?';
			write(pi[1], &c, 1);
			for (int i = 0; i < 1000 && !got; i++)
				t_ms(5);
			c = got == SIGUSR2 ? 'd' : '?';
			write(pi[1], &c, 1);
			_exit(0);
		}
		read(pi[0], &c, 1);
		say("ready %c\n", c);
		_exit(0);
	}
	t_reap("parent", p);
	R(read(pi[0], &c, 1));
	say("told %c\n", c);
	R(prctl(PR_SET_PDEATHSIG, 100));
	return t_done();
}
