/* A process that has stopped itself is seized and interrupted, and continued at once, as strace(1) begins: its next call is seen all the
 * same, however the three meet. */
/* not: i386 */
#include "t.h"
#include <sys/ptrace.h>
#include <sys/wait.h>

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif
#define TRIES 300

/* What the tracee's first stop is that is no stop of a seizure: 1 before a call. */
static int first(void)
{
	int status, pid = must(fork());

	if (!pid) {
		raise(SIGSTOP);
		syscall(SYS_getppid);
		_exit(0);
	}
	must(waitpid(pid, &status, WUNTRACED));
	must(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD));
	must(ptrace(PTRACE_INTERRUPT, pid, 0, 0));
	must(kill(pid, SIGCONT));
	for (;;) {
		must(waitpid(pid, &status, __WALL));
		if (!WIFSTOPPED(status))
			return -1;
		if (status >> 16 == PTRACE_EVENT_STOP)
			must(ptrace(WSTOPSIG(status) == SIGTRAP ? PTRACE_SYSCALL : PTRACE_LISTEN, pid, 0, 0));
		else if (WSTOPSIG(status) == SIGCONT)
			must(ptrace(PTRACE_SYSCALL, pid, 0, SIGCONT));
		else
			break;
	}
	/* The tracee may still be about to return from raise(3): that is the end of a call, and no stop of another. */
	int call = WSTOPSIG(status) == (SIGTRAP | 0x80);
	kill(pid, SIGKILL);
	must(waitpid(pid, &status, __WALL));
	return call;
}

int main(void)
{
	int seen = 0;

	for (int i = 0; i < TRIES; i++)
		seen += first() == 1;
	say("%d of %d\n", seen, TRIES);
	return 0;
}
