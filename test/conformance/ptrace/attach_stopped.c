/* A tracer that attaches to or seizes a process that has stopped already need not wait for it: the next request finds it stopped for the
 * tracer, and so does a wait that does not wait. */
/* not: i386 */
#include "trace.h"

#define TRIES 200

static void many(const char *how, int request)
{
	int found = 0, waited = 0, status;

	for (int i = 0; i < TRIES; i++) {
		int pid = must(fork());

		if (!pid) {
			raise(SIGSTOP);
			_exit(0);
		}
		must(waitpid(pid, &status, WUNTRACED));
		must(P(request, pid, 0, 0));
		errno = 0;
		P(PTRACE_PEEKUSER, pid, 0, 0);
		found += errno == 0;
		waited += waitpid(pid, &status, __WALL | WNOHANG) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
		must(kill(pid, SIGKILL));
		must(waitpid(pid, &status, __WALL));
	}
	say("%s: %d found stopped, %d waited for\n", how, found, waited);
}

/* A stop that ends at the same moment leaves nobody waiting. */
static void continued(int request)
{
	for (int i = 0; i < TRIES; i++) {
		int status, pid = must(fork());

		if (!pid) {
			raise(SIGSTOP);
			for (;;)
				syscall(SYS_getppid);
		}
		must(waitpid(pid, &status, WUNTRACED));
		int other = must(fork());
		if (!other) {
			kill(pid, i % 2 ? SIGCONT : SIGKILL);
			_exit(0);
		}
		P(request, pid, 0, 0);
		must(waitpid(other, &status, 0));
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
			;
	}
	say("continued meanwhile\n");
}

int main(void)
{
	many("attach", PTRACE_ATTACH);
	many("seize", PTRACE_SEIZE);
	continued(PTRACE_ATTACH);
	continued(PTRACE_SEIZE);
	return 0;
}
