/* A descriptor of /proc/PID is of that process: neither it nor what is below it ever means another that gets the number. */
/* also: glibc-static */
#include "t.h"
static long set_last(int pid)
{
	int f = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
	char b[16];
	int n = snprintf(b, sizeof b, "%d", pid);
	if (f < 0)
		return -1;
	long done = write(f, b, n);
	close(f);
	return done;
}
static pid_t sleeper(void)
{
	pid_t pid = must(fork());
	if (!pid)
		for (;;)
			pause();
	return pid;
}
static void end(pid_t pid)
{
	must(kill(pid, SIGKILL));
	must(waitpid(pid, 0, 0));
}
int main(void)
{
	char name[32], b[64];
	int dir = -1, stat = -1;
	pid_t second = 0;
	/* Only who may choose numbers can tell; others see what is so without. */
	int may = set_last(getpid()) > 0;
	for (int i = 0; i < 1000; i++) {
		pid_t first = sleeper();
		snprintf(name, sizeof name, "/proc/%d", first);
		dir = must(open(name, O_RDONLY | O_DIRECTORY));
		stat = must(openat(dir, "stat", O_RDONLY));
		end(first);
		if (!may)
			break;
		must(set_last(first - 1) > 0 ? 0 : -1);
		second = sleeper();
		if (second == first)
			break;
		end(second);
		second = 0;
		close(dir), close(stat);
	}
	T(!may || second);
#ifdef SYS_pidfd_send_signal
	R(syscall(SYS_pidfd_send_signal, dir, SIGKILL, NULL, 0));
#endif
	R(read(stat, b, sizeof b));
	T(openat(dir, "cmdline", O_RDONLY) == -1);
	T(faccessat(dir, "fd", F_OK, 0) == -1);
	T(!second || waitpid(second, 0, WNOHANG) == 0);
	if (second)
		end(second);
	return t_done();
}
