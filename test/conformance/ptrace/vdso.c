/* The code of the vDSO can be read by who traces a process, in each way there is, and by the process itself. */
/* not: i386 */
#include "t.h"
#include <elf.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

int main(void)
{
	unsigned long at = getauxval(AT_SYSINFO_EHDR);
	char path[64], read_by[3][4] = {{0}};
	int pipes[2], st;
	T(at != 0);
	T(pipe(pipes) == 0);
	T(write(pipes[1], (void *)at, 4) == 4);
	T(read(pipes[0], read_by[0], 4) == 4 && !memcmp(read_by[0], ELFMAG, 4));
	pid_t p = fork();
	if (!p) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(7);
	}
	T(waitpid(p, &st, 0) == p && WIFSTOPPED(st));
	errno = 0;
	long word = ptrace(PTRACE_PEEKTEXT, p, at, 0);
	T(errno == 0 && !memcmp(&word, ELFMAG, 4));
	snprintf(path, sizeof path, "/proc/%d/mem", p);
	int fd = open(path, O_RDONLY);
	T(fd >= 0 && pread(fd, read_by[1], 4, at) == 4 && !memcmp(read_by[1], ELFMAG, 4));
	struct iovec own = {read_by[2], 4}, theirs = {(void *)at, 4};
	T(process_vm_readv(p, &own, 1, &theirs, 1, 0) == 4 && !memcmp(read_by[2], ELFMAG, 4));
	/* It cannot be written like this. */
	theirs.iov_base = (void *)at;
	T(process_vm_writev(p, &own, 1, &theirs, 1, 0) == -1 && errno == EFAULT);
	T(read(pipes[0], (void *)at, 0) == 0);
	ptrace(PTRACE_CONT, p, 0, 0);
	T(waitpid(p, &st, 0) == p && WIFEXITED(st) && WEXITSTATUS(st) == 7);
	return 0;
}
