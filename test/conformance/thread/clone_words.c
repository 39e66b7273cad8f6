/* Where clone writes what it returns: memory that is not there, a copy that must not have it, a stack that has yet to grow. */
/* not: i386 */
#include "t.h"
#include <sys/wait.h>

static long make(unsigned long flags, void *parent_tid)
{
	return syscall(SYS_clone, flags | SIGCHLD, 0, parent_tid, 0, 0);
}

static int ended(long pid)
{
	int status = -1;
	must(waitpid(pid, &status, 0) == pid);
	return WEXITSTATUS(status);
}

int main(void)
{
	int word = 7;
	long pid = make(CLONE_PARENT_SETTID, &word);
	if (pid == 0)
		_exit(word == 7 ? 1 : 2);
	T(pid > 0 && word == pid);
	N(ended(pid));

	/* Below every mapping, in the middle of nowhere, where only code is. */
	char *gone = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(gone != MAP_FAILED && munmap(gone, 4096) == 0);
	void *places[] = {(void *)0x30000, gone, (void *)main, (void *)-8l, 0};
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		pid = make(CLONE_PARENT_SETTID, places[i]);
		if (pid == 0)
			_exit(3);
		T(pid > 0);
		N(ended(pid));
		OK(make(CLONE_PIDFD, places[i]));
	}
	/* None of those has left a child. */
	R(waitpid(-1, 0, 0));

	char *stack = mmap(0, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(stack != MAP_FAILED && munmap(stack, 1 << 20) == 0);
	char *top = mmap(stack + (1 << 20) - 4096, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
	must(top != MAP_FAILED);
	int *below = (int *)(top - 4096);
	pid = make(CLONE_PIDFD, below);
	if (pid == 0)
		_exit(4);
	T(pid > 0 && fcntl(*below, F_GETFD) == FD_CLOEXEC);
	N(ended(pid));
	return 0;
}
