/* sigwaitinfo, sigtimedwait, sigwait: taking signals without handlers, from threads too. */
#include "t.h"
static sigset_t m;
static void *sender(void *a)
{
	t_asleep(getpid(), getpid());
	kill(getpid(), (int)(long)a);
	return 0;
}
static void h(int s) { say("handler %s\n", t_sig(s)); }
static void *taker(void *a)
{
	int s;
	(void)a;
	N(sigwait(&m, &s));
	say("thread took %s\n", t_sig(s));
	return 0;
}
int main(void)
{
	siginfo_t i;
	sigemptyset(&m);
	sigaddset(&m, SIGUSR1);
	sigaddset(&m, SIGCHLD);
	sigprocmask(SIG_BLOCK, &m, 0);
	struct timespec z = {0, 0}, s = {0, 30000000}, bad = {0, 1000000000};
	R(sigtimedwait(&m, &i, &z));
	long t = t_now();
	R(sigtimedwait(&m, &i, &s));
	T(t_now() - t >= 29);
	R(sigtimedwait(&m, &i, &bad));
	R(syscall(SYS_rt_sigtimedwait, 8, 0, 0, 8));
	R(syscall(SYS_rt_sigtimedwait, &m, 0, 0, 9));
	raise(SIGUSR1);
	T(sigwaitinfo(&m, &i) == SIGUSR1 && i.si_signo == SIGUSR1);
	pthread_t th;
	pthread_create(&th, 0, sender, (void *)SIGUSR1);
	T(sigwaitinfo(&m, &i) == SIGUSR1);
	T(i.si_code == SI_USER && i.si_pid == getpid());
	pthread_join(th, 0);
	pid_t p = must(fork());
	if (!p)
		_exit(3);
	T(sigwaitinfo(&m, &i) == SIGCHLD);
	T(i.si_pid == p);
	N(i.si_status);
	t_reap("child", p);
	/* A handler for another signal interrupts the wait. */
	t_handle(SIGUSR2, h, SA_RESTART);
	sigset_t u2;
	sigemptyset(&u2), sigaddset(&u2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &u2, 0); /* the sender shall not take it itself */
	pthread_create(&th, 0, sender, (void *)SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &u2, 0);
	struct timespec five = {5, 0};
	R(sigtimedwait(&m, &i, &five));
	pthread_join(th, 0);
	/* Of several threads the one that waits takes it. */
	pthread_create(&th, 0, taker, 0);
	t_ms(50);
	kill(getpid(), SIGUSR1);
	pthread_join(th, 0);
	return t_done();
}
