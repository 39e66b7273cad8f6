/* Stop and continue: sleeping and blocked calls go on, CONT discards stops, KILL ends the stopped, orphaned groups. */
#include "t.h"
static void h(int s) { say("handler %s\n", t_sig(s)); }
int main(void)
{
	int p[2], st;
	must(pipe(p));
	pid_t c = must(fork());
	if (!c) {
		char b;
		t_handle(SIGCONT, h, SA_RESTART);
		R(read(p[0], &b, 1));
		_exit(0);
	}
	t_asleep(c, c);
	kill(c, SIGSTOP);
	must(waitpid(c, &st, WUNTRACED));
	t_status("reader", st);
	write(p[1], "x", 1);
	t_ms(30);
	R(waitpid(c, &st, WNOHANG));
	kill(c, SIGCONT);
	t_reap("reader", c);
	/* A stopped process keeps its signals until it goes on. */
	c = must(fork());
	if (!c) {
		t_handle(SIGUSR1, h, 0);
		raise(SIGSTOP);
		say("goes on\n");
		_exit(4);
	}
	must(waitpid(c, &st, WUNTRACED));
	t_status("self", st);
	kill(c, SIGUSR1);
	t_ms(30);
	say("before CONT\n");
	kill(c, SIGCONT);
	t_reap("self", c);
	c = must(fork());
	if (!c) {
		raise(SIGSTOP);
		_exit(0);
	}
	must(waitpid(c, &st, WUNTRACED));
	kill(c, SIGKILL);
	t_reap("killed while stopped", c);
	/* TERM waits for CONT; CONT clears pending stops. */
	c = must(fork());
	if (!c) {
		sigset_t m;
		sigemptyset(&m), sigaddset(&m, SIGTSTP);
		sigprocmask(SIG_BLOCK, &m, 0);
		raise(SIGTSTP);
		raise(SIGCONT);
		sigpending(&m);
		N(sigismember(&m, SIGTSTP));
		sigemptyset(&m);
		sigprocmask(SIG_SETMASK, &m, 0);
		_exit(t_failed);
	}
	t_reap("CONT discards", c);
	/* In an orphaned group terminal stops do nothing, SIGSTOP does. */
	c = must(fork());
	if (!c) {
		setsid();
		R(raise(SIGTSTP));
		R(raise(SIGTTIN));
		_exit(0);
	}
	must(waitpid(c, &st, WUNTRACED));
	t_status("orphaned group", st);
	/* A group that becomes orphaned with stopped members gets HUP and CONT. */
	must(pipe(p));
	c = must(fork());
	if (!c) {
		setsid();
		pid_t leader = fork();
		if (!leader) {
			pid_t q = fork();
			if (!q) {
				setpgid(0, 0);
				t_handle(SIGHUP, h, 0);
				t_handle(SIGCONT, h, 0);
				write(p[1], "r", 1);
				raise(SIGSTOP);
				say("orphan goes on\n");
				write(p[1], "e", 1);
				_exit(0);
			}
			must(waitpid(q, &st, WUNTRACED));
			t_status("member", st);
			_exit(0);
		}
		char b;
		read(p[0], &b, 1), read(p[0], &b, 1);
		t_reap("leader", leader);
		_exit(0);
	}
	t_reap("session", c);
	return t_done();
}
