/* vfork: the parent waits until the child ends or runs another program, and shares its memory. */
#include "t.h"
static volatile int seen;
int main(int argc, char **argv)
{
	if (argc > 1) {
		say("executed with %s\n", argv[1]);
		return 4;
	}
	pid_t p = vfork();
	if (!p) {
		seen = 7;
		_exit(3);
	}
	T(p > 0);
	N(seen);
	t_reap("child", p);
	int pi[2];
	must(pipe2(pi, O_CLOEXEC));
	p = vfork();
	if (!p) {
		execl("/proc/self/exe", "vfork", "arg", (char *)0);
		_exit(99);
	}
	t_reap("exec child", p);
	close(pi[1]);
	char c;
	R(read(pi[0], &c, 1));
	p = vfork();
	if (!p) {
		execl("/nonexistent", "x", (char *)0);
		seen = errno;
		_exit(127);
	}
	T(seen == ENOENT);
	t_reap("failed exec", p);
	return t_done();
}
