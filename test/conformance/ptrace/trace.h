/* What tests of ptrace(2) share. */
#include "../t.h"
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#define P(r, p, a, d) ptrace((int)(r), (pid_t)(p), (void *)(long)(a), (void *)(long)(d))
#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

/* Prints how a wait status of a tracee reads. */
static void t_stop(const char *who, int st)
{
	static const char *events[] = {"", "FORK", "VFORK", "CLONE", "EXEC", "VFORK_DONE", "EXIT"};
	if (!WIFSTOPPED(st)) {
		t_status(who, st);
		return;
	}
	int sig = WSTOPSIG(st), ev = st >> 16;
	if (ev == PTRACE_EVENT_STOP)
		say("%s: event STOP, %s\n", who, t_sig(sig));
	else if (ev)
		say("%s: event %s, %s\n", who, ev < 7 ? events[ev] : "?", t_sig(sig));
	else if (sig == (SIGTRAP | 0x80))
		say("%s: at a call\n", who);
	else
		say("%s: stopped by %s\n", who, t_sig(sig));
}

/* Waits for a tracee, a process or a thread, and prints what it did. */
static int t_wait(const char *who, pid_t p)
{
	int st = 0;
	while (waitpid(p, &st, __WALL) == -1)
		if (errno != EINTR) {
			say("%s: waitpid %s\n", who, t_errno(errno));
			return 0;
		}
	t_stop(who, st);
	return st;
}
