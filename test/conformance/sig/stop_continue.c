/* Stop and continue: sleeping and blocked calls go on, CONT discards stops, KILL ends the stopped, orphaned groups. */
#include "t.h"
static void h(int s) { say("handler %s\n", t_sig(s)); }
/* Stops, continuations and ends sent at the same time: whatever comes first, nobody is left in a stop that has been continued. */
#define MANY 60
static pid_t many[MANY];
static void *send_all(void *sig)
{
	for (int i = 0; i < MANY; i++)
		kill(many[i], (int)(long)sig);
	return 0;
}
static void stopped_in_between(void)
{
	int sigs[] = {SIGSTOP, SIGCONT, SIGSTOP, SIGCONT, SIGTERM}, ended = 0;
	pthread_t t[5];
	for (int i = 0; i < MANY; i++)
		if (!(many[i] = must(fork())))
			for (;;)
				getppid();
	for (long i = 0; i < 5; i++)
		pthread_create(&t[i], 0, send_all, (void *)(long)sigs[i]);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], 0);
	send_all((void *)(long)SIGCONT);
	for (long end = t_now() + 20000; ended < MANY && t_now() < end; t_ms(2))
		while (ended < MANY && waitpid(-1, 0, WNOHANG) > 0)
			ended++;
	say("%d of %d ended\n", ended, MANY);
	send_all((void *)(long)SIGKILL);
	while (waitpid(-1, 0, 0) > 0)
		;
}
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
	/* One that was orphaned before gets nothing when a member ends, be it the parent of the stopped one. */
	c = must(fork());
	if (!c) {
		setsid();
		pid_t q = fork();
		if (!q) {
			raise(SIGSTOP);
			_exit(7);
		}
		must(waitpid(q, &st, WUNTRACED));
		t_status("job", st);
		pid_t other = fork();
		if (!other)
			_exit(0);
		t_reap("other", other);
		other = fork();
		if (!other) {
			pid_t r = fork();
			if (!r) {
				raise(SIGSTOP);
				_exit(0);
			}
			waitpid(r, &st, WUNTRACED);
			t_status("grandchild", st);
			write(p[1], &r, sizeof r);
			_exit(0);
		}
		t_reap("its parent", other);
		pid_t r;
		read(p[0], &r, sizeof r);
		T(t_state(r, r) == 'T' && t_state(q, q) == 'T');
		kill(r, SIGKILL);
		kill(q, SIGCONT);
		t_reap("job", q);
		_exit(t_failed);
	}
	t_reap("orphaned before", c);
	stopped_in_between();
	return t_done();
}
