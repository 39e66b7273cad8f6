/* siginfo by source: kill, tgkill, sigqueue, timer, child, and the refusal to forge. */
#include "t.h"
static void h(int s, siginfo_t *i, void *u)
{
	(void)u;
	say("%s code %d pid %s uid %s value %d\n", t_sig(s), i->si_code, i->si_pid == getpid() ? "own" : i->si_pid == getppid() ? "parent" : "other", i->si_uid == getuid() ? "own" : "other",
	    i->si_code == SI_QUEUE ? i->si_value.sival_int : 0);
}
static volatile pid_t child;
static void chld(int s, siginfo_t *i, void *u)
{
	(void)u, (void)s;
	say("CHLD code %d status %d pid %s\n", i->si_code, i->si_status, i->si_pid == child ? "child" : "other");
}
static void tim(int s, siginfo_t *i, void *u)
{
	(void)u;
	say("%s code %d value %d overrun %d\n", t_sig(s), i->si_code, i->si_value.sival_int, i->si_overrun);
}
int main(void)
{
	t_info(SIGUSR1, h, 0);
	t_info(SIGRTMIN + 3, h, 0);
	R(kill(getpid(), SIGUSR1));
	R(syscall(SYS_tgkill, getpid(), t_gettid(), SIGUSR1));
	R(syscall(SYS_tkill, t_gettid(), SIGUSR1));
	R(raise(SIGUSR1));
	R(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 77}));
	R(pthread_kill(pthread_self(), SIGRTMIN + 3));
	R(syscall(SYS_tgkill, getpid(), 0x3ffffff, SIGUSR1));
	R(syscall(SYS_tgkill, -1, t_gettid(), SIGUSR1));
	R(syscall(SYS_tkill, 0, SIGUSR1));
	siginfo_t i = {.si_signo = SIGUSR1, .si_code = -60};
	i.si_pid = getpid(), i.si_uid = getuid(), i.si_value.sival_int = 5;
	R(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &i));
	R(syscall(SYS_rt_tgsigqueueinfo, getpid(), t_gettid(), SIGUSR1, &i));
	pid_t me = getpid();
	CHILD("forger", {
		i.si_code = SI_USER;
		R(syscall(SYS_rt_sigqueueinfo, me, SIGUSR1, &i));
		i.si_code = SI_TKILL;
		R(syscall(SYS_rt_sigqueueinfo, me, SIGUSR1, &i));
	});
	int p[2];
	must(pipe(p));
	CHILD("sender", kill(me, SIGUSR1));
	t_info(SIGCHLD, chld, 0);
	sigset_t m, o;
	sigemptyset(&m);
	sigaddset(&m, SIGCHLD);
	sigprocmask(SIG_BLOCK, &m, &o);
	child = must(fork());
	if (!child) {
		close(p[1]);
		char c;
		read(p[0], &c, 1);
		_exit(33);
	}
	kill(child, SIGSTOP);
	sigsuspend(&o);
	kill(child, SIGCONT);
	sigsuspend(&o);
	close(p[1]);
	sigsuspend(&o);
	t_reap("child", child);
	t_info(SIGCHLD, chld, SA_NOCLDSTOP);
	child = must(fork());
	if (!child) {
		pause();
		_exit(0);
	}
	kill(child, SIGSTOP);
	must(waitpid(child, 0, WUNTRACED));
	kill(child, SIGKILL);
	sigsuspend(&o);
	t_reap("child", child);
	/* SA_NOCLDWAIT leaves nothing to wait for. */
	t_info(SIGCHLD, chld, SA_NOCLDWAIT);
	child = must(fork());
	if (!child)
		_exit(2);
	sigsuspend(&o);
	R(waitpid(child, 0, 0));
	t_info(SIGRTMIN + 1, tim, 0);
	timer_t t;
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 99};
	R(timer_create(CLOCK_MONOTONIC, &e, &t));
	struct itimerspec v = {{0, 0}, {0, 20000000}};
	R(timer_settime(t, 0, &v, 0));
	pause();
	R(timer_delete(t));
	return t_done();
}
