/* /proc/self/mem, process_vm_readv and process_vm_writev, ptrace: memory reached without a load or a store. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"
#include <sys/ptrace.h>

static int attack(void)
{
	char bytes[64] = { 0 };
	int won = 0, mem = open("/proc/self/mem", O_RDWR);
	uintptr_t places[] = { KERNEL, CONTROL, HEAP, UNUSED };
	pid_t child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	int status;
	waitpid(child, &status, WUNTRACED);
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		struct iovec own = { bytes, sizeof bytes }, other = { (void *)places[i], sizeof bytes };
		if (mem >= 0) {
			won |= pread(mem, bytes, sizeof bytes, places[i]) > 0;
			won |= pwrite(mem, bytes, sizeof bytes, places[i]) > 0;
		}
		for (int self = 0; self < 2; self++) {
			pid_t pid = self ? getpid() : child;
			won |= process_vm_readv(pid, &own, 1, &other, 1, 0) > 0;
			won |= process_vm_writev(pid, &own, 1, &other, 1, 0) > 0;
			won |= process_vm_readv(pid, &other, 1, &own, 1, 0) > 0;
		}
		errno = 0;
		won |= ptrace(PTRACE_PEEKDATA, child, places[i], 0) != -1;
		won |= ptrace(PTRACE_POKEDATA, child, places[i], 1) == 0;
	}
	kill(child, SIGKILL);
	waitpid(child, 0, 0);
	return won ? 0 : REFUSED;
}
