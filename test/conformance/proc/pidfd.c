/* pidfd_open, pidfd_send_signal, pidfd_getfd, poll on a process. */
#include "t.h"
#include <sys/epoll.h>
int main(void)
{
	R(syscall(SYS_pidfd_open, -1, 0));
	R(syscall(SYS_pidfd_open, 0x3ffffff, 0));
	R(syscall(SYS_pidfd_open, getpid(), 0x1234));
	pid_t p = must(fork());
	if (!p) {
		pause();
		_exit(0);
	}
	int f = must(syscall(SYS_pidfd_open, p, 0));
	T(fcntl(f, F_GETFD) == FD_CLOEXEC);
	int e = must(epoll_create1(0));
	struct epoll_event ev = {EPOLLIN, {.u32 = 5}};
	R(epoll_ctl(e, EPOLL_CTL_ADD, f, &ev));
	R(epoll_wait(e, &ev, 1, 0));
	R(syscall(SYS_pidfd_send_signal, f, 0, 0, 0));
	R(syscall(SYS_pidfd_send_signal, f, SIGKILL, 0, 1 << 20));
	R(syscall(SYS_pidfd_send_signal, 1, SIGKILL, 0, 0));
	R(syscall(SYS_pidfd_send_signal, f, SIGKILL, 0, 0));
	R(epoll_wait(e, &ev, 1, 5000));
	N(ev.events);
	char c, name[64];
	R(read(f, &c, 1));
	t_reap("child", p);
	R(syscall(SYS_pidfd_send_signal, f, SIGKILL, 0, 0));
	R(waitid(P_PIDFD, f, 0, WEXITED));

	/* The directory of a process names it, another one does not. */
	p = must(fork());
	if (!p) {
		pause();
		_exit(0);
	}
	snprintf(name, sizeof name, "/proc/%d", p);
	int d = must(open(name, O_RDONLY | O_DIRECTORY));
	snprintf(name, sizeof name, "/proc/%d/task/%d", p, p);
	int t = must(open(name, O_RDONLY | O_DIRECTORY));
	int o = must(open("/proc", O_RDONLY | O_DIRECTORY));
	R(syscall(SYS_pidfd_send_signal, t, 0, 0, 0));
	R(syscall(SYS_pidfd_send_signal, o, 0, 0, 0));
	R(syscall(SYS_pidfd_send_signal, d, 0, 0, 0));
	R(syscall(SYS_pidfd_send_signal, d, SIGTERM, 0, 0));
	t_reap("child", p);
	R(syscall(SYS_pidfd_send_signal, d, SIGTERM, 0, 0));
	R(syscall(SYS_pidfd_getfd, d, 0, 0));
	return t_done();
}
