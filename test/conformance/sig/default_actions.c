/* Default actions of all signals, sent by the process itself and by another. */
#include "t.h"
int main(void)
{
	for (int s = 1; s <= 64; s++) {
		if (s == 32 || s == 33) /* the C library's own */
			continue;
		pid_t p = must(fork());
		if (!p) {
			struct rlimit l = {0, 0};
			setrlimit(RLIMIT_CORE, &l);
			signal(s, SIG_DFL);
			kill(getpid(), s);
			_exit(0);
		}
		int st;
		must(waitpid(p, &st, WUNTRACED));
		char n[40];
		snprintf(n, sizeof n, "%d %s", s, t_sig(s));
		t_status(n, st);
		if (WIFSTOPPED(st)) {
			kill(p, SIGCONT);
			must(waitpid(p, &st, 0));
			t_status(n, st);
		}
	}
	pid_t p = must(fork());
	if (!p)
		for (;;)
			pause();
	kill(p, SIGWINCH), kill(p, SIGURG), kill(p, SIGCHLD), kill(p, SIGCONT);
	t_ms(20);
	R(waitpid(p, 0, WNOHANG));
	kill(p, SIGHUP);
	t_reap("ignored, then HUP", p);
	R(kill(p, 0));
	R(kill(getpid(), 65));
	R(kill(getpid(), -1));
	R(kill(0x3ffffff, 0));
	R(kill(getpid(), 0));
	CHILD("core flag", {
		struct rlimit l = {0, 0};
		setrlimit(RLIMIT_CORE, &l);
		raise(SIGQUIT);
	});
	return t_done();
}
