/* wait4 and waitpid: which children, which events, which results. */
#include "t.h"
int main(void)
{
	int st = 0;
	struct rusage u;
	R(waitpid(-1, &st, 0));
	R(waitpid(-1, &st, WNOHANG));
	R(waitpid(-1, &st, 0x100));
	pid_t p = must(fork());
	if (!p) {
		pause();
		_exit(0);
	}
	R(waitpid(p, &st, WNOHANG));
	R(waitpid(p + 100000, &st, WNOHANG));
	must(kill(p, SIGSTOP));
	T(waitpid(p, &st, WUNTRACED) == p);
	t_status("stop", st);
	R(waitpid(p, &st, WUNTRACED | WNOHANG));
	must(kill(p, SIGCONT));
	T(waitpid(p, &st, WCONTINUED) == p);
	t_status("cont", st);
	must(kill(p, SIGKILL));
	memset(&u, 0xff, sizeof u);
	T(wait4(p, &st, 0, &u) == p);
	t_status("kill", st);
	T(u.ru_utime.tv_sec >= 0 && u.ru_utime.tv_sec < 100);
	/* By group. */
	pid_t g = must(fork());
	if (!g) {
		setpgid(0, 0);
		pause();
	}
	setpgid(g, g);
	p = must(fork());
	if (!p)
		_exit(9);
	T(waitpid(0, &st, 0) == p);
	t_status("own group", st);
	kill(g, SIGTERM);
	T(waitpid(-g, &st, 0) == g);
	t_status("other group", st);
	R(waitpid(-g, &st, 0));
	/* Each child is found once, whatever the order. */
	pid_t c[8];
	int sum = 0;
	for (int i = 0; i < 8; i++)
		if (!(c[i] = must(fork())))
			_exit(1 << i);
	for (int i = 0; i < 8; i++)
		if (wait(&st) > 0 && WIFEXITED(st))
			sum += WEXITSTATUS(st);
	N(sum);
	R(wait(&st));
	p = must(fork());
	if (!p)
		_exit(1);
	t_ms(50);
	R(waitpid(p, (int *)8, 0));
	R(waitpid(p, 0, 0));
	/* SIGCHLD ignored: children reap themselves, wait gives ECHILD after the last. */
	signal(SIGCHLD, SIG_IGN);
	if (!(p = must(fork()))) {
		t_ms(30);
		_exit(5);
	}
	R(waitpid(p, &st, 0));
	signal(SIGCHLD, SIG_DFL);
	return t_done();
}
