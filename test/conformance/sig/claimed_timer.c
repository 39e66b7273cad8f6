/* A signal that a program sends with a timer's code counts among those that may wait, arrives, and belongs to no timer. */
#include "t.h"

static int queue_one(int sig, int value)
{
	siginfo_t info;
	memset(&info, 0, sizeof info);
	info.si_signo = sig;
	info.si_code = SI_TIMER;
	info.si_value.sival_int = value;
	return syscall(SYS_rt_sigqueueinfo, getpid(), sig, &info);
}

int main(void)
{
	/* Others of the same user may have some waiting, too. */
	struct rlimit few = {200, 200};
	must(setrlimit(RLIMIT_SIGPENDING, &few));
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGUSR1);
	must(sigprocmask(SIG_BLOCK, &set, 0));
	R(queue_one(SIGRTMIN, 7));
	siginfo_t info;
	memset(&info, 0, sizeof info);
	struct timespec none = {0, 0};
	T(sigtimedwait(&set, &info, &none) == SIGRTMIN);
	N(info.si_code);
	N(info.si_value.sival_int);
	for (int n = 0; n < 3; n++)
		R(queue_one(SIGUSR1, n));
	T(sigtimedwait(&set, &info, &none) == SIGUSR1);
	N(info.si_value.sival_int);
	R(sigtimedwait(&set, &info, &none));
	int queued = 0;
	while (queued < 1000 && queue_one(SIGRTMIN, queued) == 0)
		queued++;
	T(queued <= 200);
	R(queue_one(SIGRTMIN, 0));
	return t_done();
}
