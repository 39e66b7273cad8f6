/* clone3: the argument structure, its checks, pidfd and exit signal. */
#include "t.h"
#include <linux/sched.h>
static long c3(struct clone_args *a, size_t n) { return syscall(SYS_clone3, a, n); }
static int usr1;
static void h(int s) { usr1 = s; }
int main(void)
{
	struct clone_args a = {.exit_signal = SIGCHLD};
	pid_t p = c3(&a, sizeof a);
	if (!p)
		_exit(11);
	T(p > 0);
	t_reap("plain", p);
	int fd = -1;
	a = (struct clone_args){.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&fd, .exit_signal = SIGCHLD};
	p = c3(&a, sizeof a);
	if (!p) {
		pause();
		_exit(1);
	}
	T(p > 0 && fd >= 0);
	T(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	struct pollfd q = {fd, POLLIN, 0};
	R(poll(&q, 1, 0));
	R(syscall(SYS_pidfd_send_signal, fd, SIGTERM, 0, 0));
	R(poll(&q, 1, 5000));
	N(q.revents);
	siginfo_t i = {0};
	R(waitid(P_PIDFD, fd, &i, WEXITED));
	T(i.si_pid == p && i.si_code == CLD_KILLED);
	N(i.si_status);
	R(syscall(SYS_pidfd_send_signal, fd, 0, 0, 0));
	t_handle(SIGUSR1, h, 0);
	a = (struct clone_args){.exit_signal = SIGUSR1};
	p = c3(&a, sizeof a);
	if (!p)
		_exit(12);
	int st;
	while (waitpid(p, &st, __WALL) == -1 && errno == EINTR)
		;
	t_status("SIGUSR1 at exit", st);
	S(t_sig(usr1));
	/* Refusals. */
	a = (struct clone_args){.exit_signal = SIGCHLD};
	R(c3(&a, 8));
	R(c3(0, sizeof a));
	R(c3(&a, 100000));
	a.exit_signal = 1000;
	R(c3(&a, sizeof a));
	a = (struct clone_args){.flags = CLONE_THREAD, .exit_signal = 0};
	R(c3(&a, sizeof a));
	a = (struct clone_args){.flags = CLONE_SIGHAND, .exit_signal = SIGCHLD};
	R(c3(&a, sizeof a));
	a = (struct clone_args){.stack = 4096, .exit_signal = SIGCHLD};
	R(c3(&a, sizeof a));
	a = (struct clone_args){.stack_size = 4096, .exit_signal = SIGCHLD};
	R(c3(&a, sizeof a));
	a = (struct clone_args){.flags = CLONE_DETACHED, .exit_signal = SIGCHLD};
	R(c3(&a, sizeof a));
	return t_done();
}
