/* Real-time signals queue, arrive lowest number first and in order; ordinary ones come once and before them. */
#include "t.h"
static void h(int s, siginfo_t *i, void *u)
{
	(void)u;
	say("%s %d\n", t_sig(s), i->si_code == SI_QUEUE ? i->si_value.sival_int : -1);
}
static void q(int s, int v) { must(sigqueue(getpid(), s, (union sigval){.sival_int = v})); }
int main(void)
{
	sigset_t m, o;
	sigfillset(&m);
	sigprocmask(SIG_SETMASK, &m, &o);
	/* All are blocked in each handler, so that one is done before the next begins. */
	int all[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGRTMIN, SIGRTMIN + 1, SIGRTMIN + 5, SIGRTMAX};
	for (int i = 0; i < 7; i++) {
		struct sigaction a = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
		sigfillset(&a.sa_mask);
		sigaction(all[i], &a, 0);
	}
	q(SIGRTMAX, 1), q(SIGRTMIN + 5, 2), q(SIGRTMIN, 3), q(SIGRTMIN + 5, 4), q(SIGRTMIN, 5), q(SIGRTMIN + 1, 6), q(SIGRTMIN + 5, 7);
	q(SIGUSR2, 8), q(SIGUSR2, 9), q(SIGUSR1, 10), q(SIGTERM, 11);
	sigpending(&m);
	N(sigismember(&m, SIGRTMIN) + sigismember(&m, SIGRTMIN + 5) + sigismember(&m, SIGUSR2) + sigismember(&m, SIGHUP));
	sigprocmask(SIG_SETMASK, &o, 0);
	say("all at once\n");
	sigfillset(&m);
	sigprocmask(SIG_SETMASK, &m, 0);
	for (int i = 0; i < 5; i++)
		q(SIGRTMIN + 2, i);
	/* A thread's own signals come before the process's. */
	q(SIGRTMIN + 1, 20);
	siginfo_t i = {.si_signo = SIGRTMIN + 1, .si_code = SI_QUEUE};
	i.si_value.sival_int = 21;
	must(syscall(SYS_rt_tgsigqueueinfo, getpid(), t_gettid(), SIGRTMIN + 1, &i));
	sigemptyset(&m);
	sigaddset(&m, SIGRTMIN + 1);
	sigaddset(&m, SIGRTMIN + 2);
	struct timespec z = {0, 0};
	int s;
	while ((s = sigtimedwait(&m, &i, &z)) > 0)
		say("took %s %d\n", t_sig(s), i.si_value.sival_int);
	S(t_errno(errno));
	CHILD("queue limit", {
		struct rlimit l = {10, 10};
		setrlimit(RLIMIT_SIGPENDING, &l);
		int n = 0;
		while (n < 100 && sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0)
			n++;
		T(n <= 10 && errno == EAGAIN);
	});
	return t_done();
}
