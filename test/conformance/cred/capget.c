/* Anybody's capabilities may be asked for: those of the first process, and of one that has ended. */
#include "t.h"
#include <linux/capability.h>
int main(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 1};
	struct __user_cap_data_struct d[2];
	R(syscall(SYS_capget, &h, d));
	R(syscall(SYS_capget, &h, 0));
	h.pid = must(fork());
	if (!h.pid)
		_exit(0);
	must(waitid(P_PID, h.pid, &(siginfo_t){0}, WEXITED | WNOWAIT));
	R(syscall(SYS_capget, &h, d));
	must(waitpid(h.pid, 0, 0));
	R(syscall(SYS_capget, &h, d));
	h.pid = -1;
	R(syscall(SYS_capget, &h, d));
	return t_done();
}
