/* sigsuspend restores the mask, siglongjmp leaves a handler, pause returns only after one ran. */
#include "t.h"
#include <setjmp.h>
static sigjmp_buf j;
static volatile int n;
static void h(int s) { (void)s, n++; }
static void jump(int s) { (void)s, n++; siglongjmp(j, n); }
static int blocked(int s)
{
	sigset_t m;
	sigprocmask(SIG_BLOCK, 0, &m);
	return sigismember(&m, s);
}
int main(void)
{
	sigset_t m, e;
	sigemptyset(&e);
	sigemptyset(&m), sigaddset(&m, SIGUSR1);
	t_handle(SIGUSR1, h, 0);
	sigprocmask(SIG_BLOCK, &m, 0);
	raise(SIGUSR1);
	R(sigsuspend(&e));
	N(n);
	N(blocked(SIGUSR1));
	R(syscall(SYS_rt_sigsuspend, 8, 8));
	R(syscall(SYS_rt_sigsuspend, &e, 4));
	pid_t me = getpid(), p = must(fork());
	if (!p) {
		signal(SIGUSR1, SIG_DFL);
		for (int i = 0; i < 3; i++)
			t_asleep(me, me), kill(me, SIGWINCH);
		kill(me, SIGUSR1);
		_exit(0);
	}
	R(sigsuspend(&e)); /* an ignored signal does not end it */
	N(n);
	t_reap("sender", p);
	sigprocmask(SIG_SETMASK, &e, 0);
	t_handle(SIGUSR2, jump, 0);
	for (volatile int i = 0; i < 3; i++) {
		int r = sigsetjmp(j, 1);
		if (!r)
			raise(SIGUSR2);
		say("jumped %d blocked %d\n", r, blocked(SIGUSR2));
	}
	if (!sigsetjmp(j, 0))
		raise(SIGUSR2);
	say("without the mask: blocked %d\n", blocked(SIGUSR2));
	sigprocmask(SIG_SETMASK, &e, 0);
	/* Out of a blocking call. */
	p = must(fork());
	if (!p) {
		t_asleep(me, me), kill(me, SIGUSR2);
		_exit(0);
	}
	if (!sigsetjmp(j, 1))
		for (;;)
			pause();
	say("out of pause\n");
	t_reap("sender", p);
	/* Very often. */
	n = 0;
	for (volatile int i = 0; i < 10000; i++)
		if (!sigsetjmp(j, 1))
			raise(SIGUSR2);
	N(n);
	for (int i = 0; i < 10000; i++)
		raise(SIGUSR1);
	N(n);
	return t_done();
}
