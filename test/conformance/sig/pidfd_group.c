/* pidfd_send_signal(2) to a group: the one that the descriptor's process leads, or has led. */
/* linux: 6.9 */
#include "t.h"
#define PROCESS_GROUP 4
static int waiting[2];
static pid_t member(pid_t group)
{
	pid_t pid = must(fork());
	if (!pid) {
		char c;
		close(waiting[1]);
		setpgid(0, group);
		read(waiting[0], &c, 1);
		_exit(7);
	}
	must(setpgid(pid, group));
	return pid;
}
static int pidfd(pid_t pid) { return must(syscall(SYS_pidfd_open, pid, 0)); }
static long group(int fd, int signal) { return syscall(SYS_pidfd_send_signal, fd, signal, (void *)0, PROCESS_GROUP); }
/* How a child ended: its signal, or its exit code plus 1000. */
static int end(pid_t pid)
{
	int st;
	must(waitpid(pid, &st, 0));
	return WIFSIGNALED(st) ? WTERMSIG(st) : 1000 + WEXITSTATUS(st);
}
int main(void)
{
	must(pipe(waiting));
	pid_t leader = member(0), second = member(leader), third = member(leader), other = member(0);
	int of_leader = pidfd(leader), of_second = pidfd(second), of_other = pidfd(other);
	R(group(of_leader, 0));
	/* It leads none. */
	R(group(of_second, 0));
	R(group(of_second, SIGKILL));
	R(group(of_leader, 65));
	R(syscall(SYS_pidfd_send_signal, of_leader, 0, (void *)0, PROCESS_GROUP | 1));
	R(syscall(SYS_pidfd_send_signal, of_leader, 0, (void *)0, 8));
	/* A leader that has ended, and one that is forgotten, while members live. */
	must(kill(leader, SIGKILL));
	siginfo_t info;
	must(waitid(P_PID, leader, &info, WEXITED | WNOWAIT));
	R(group(of_leader, 0));
	N(end(leader));
	R(group(of_leader, 0));
	R(group(of_leader, SIGTERM));
	N(end(second));
	N(end(third));
	R(group(of_leader, 0));
	R(group(of_leader, SIGTERM));
	/* The other group has felt nothing. */
	R(group(of_other, SIGUSR1));
	N(end(other));
	R(group(of_other, 0));
	/* Information of one's own: to others not as if the kernel had sent it. */
	pid_t last = member(0);
	int of_last = pidfd(last);
	memset(&info, 0, sizeof info);
	info.si_signo = SIGUSR2, info.si_code = SI_QUEUE;
	R(syscall(SYS_pidfd_send_signal, of_last, SIGUSR1, &info, PROCESS_GROUP));
	info.si_code = SI_USER;
	R(syscall(SYS_pidfd_send_signal, of_last, SIGUSR2, &info, PROCESS_GROUP));
	info.si_code = SI_QUEUE;
	R(syscall(SYS_pidfd_send_signal, of_last, SIGUSR2, &info, PROCESS_GROUP));
	N(end(last));
	return t_done();
}
