/* A program that a child of vfork runs begins with nothing of the ones that ended before it: memory, registers, processor time, faults, nice
 * value, processors, name, signals, registrations with membarrier. */
#include "t.h"
#include <linux/membarrier.h>
#include <sys/prctl.h>
extern char **environ;
#define SECRET ((char *)0x23450000)
static void leave_registers(void)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned mxcsr = 0x1f80 | 3 << 13 | 1 << 15;
	unsigned short control = (0x37f & ~(3 << 8)) | 3 << 10;
	__asm__ volatile("ldmxcsr %0; fldcw %1" : : "m"(mxcsr), "m"(control));
#endif
}
static void say_registers(void)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned mxcsr;
	unsigned short control;
	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(mxcsr), "=m"(control));
	say("mxcsr %x, control word %x\n", mxcsr, control);
#endif
#ifdef __x86_64__
	unsigned long base = 1;
	R(syscall(SYS_arch_prctl, 0x1004, &base));
	say("gs base %lx\n", base);
#endif
}
static void on_signal(int sig)
{
	(void)sig;
}
static void leave(const char *what)
{
	memset(must(mmap(SECRET, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)) ? SECRET : 0, 0x5a, 64 * 4096);
#ifdef __x86_64__
	must(syscall(SYS_arch_prctl, 0x1001, SECRET));
#endif
	leave_registers();
	t_handle(SIGUSR1, on_signal, SA_ONSTACK);
	stack_t stack = {.ss_sp = SECRET, .ss_size = 64 * 1024};
	must(sigaltstack(&stack, 0));
	sigset_t set;
	sigfillset(&set);
	must(sigprocmask(SIG_SETMASK, &set, 0));
	raise(SIGUSR2);
	must(prctl(PR_SET_NAME, "somebody"));
	if (what[0] == 'n')
		must(setpriority(PRIO_PROCESS, 0, 7));
	if (what[0] == 'a') {
		cpu_set_t all;
		must(sched_getaffinity(0, sizeof all, &all));
		for (int one = 0, found = 0; one < CPU_SETSIZE; one++)
			if (CPU_ISSET(one, &all) && found++)
				CPU_CLR(one, &all);
		must(sched_setaffinity(0, sizeof all, &all));
	}
	if (what[0] == 'm')
		must(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
	struct timespec used;
	do {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < 60);
	_exit(0);
}
static int look(int barrier)
{
	unsigned char there;
	R(mincore(SECRET, 4096, &there));
	say_registers();
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	T(used.tv_sec == 0 && used.tv_nsec < 50000000);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	T(used.tv_sec == 0 && used.tv_nsec < 50000000);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	T(usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec < 50000);
	T(usage.ru_maxrss < 32 * 1024);
	N(getpriority(PRIO_PROCESS, 0));
	cpu_set_t set;
	must(sched_getaffinity(0, sizeof set, &set));
	T(CPU_COUNT(&set) == sysconf(_SC_NPROCESSORS_ONLN));
	/* Asked for only after who has registered: it is one of the things by which a process differs from others to a host. */
	if (barrier)
		R(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
	char name[16];
	R(prctl(PR_GET_NAME, name));
	S(name);
	stack_t stack;
	R(sigaltstack(0, &stack));
	T(stack.ss_flags == SS_DISABLE);
	struct sigaction action;
	R(sigaction(SIGUSR1, 0, &action));
	T(action.sa_handler == SIG_DFL);
	sigset_t pending;
	R(sigpending(&pending));
	N(sigismember(&pending, SIGUSR2));
	N(sigprocmask(SIG_SETMASK, 0, &pending));
	N(sigismember(&pending, SIGUSR2));
	return t_done();
}
static void run(char *self, char *what)
{
	char *again[] = {self, what, 0};
	int status;
	pid_t pid = vfork();
	if (!pid) {
		execve("/proc/self/exe", again, environ);
		_exit(77);
	}
	T(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
int main(int argc, char **argv)
{
	if (argc > 1 && strncmp(argv[1], "look", 4) == 0)
		return look(argv[1][4] != 0);
	if (argc > 1)
		leave(argv[1]);
	char *whats[] = {"plain", "nice", "affinity", "membarrier"};
	for (int n = 0; n < 12; n++) {
		say("after %s\n", whats[n % 4]);
		run(argv[0], whats[n % 4]);
		run(argv[0], n % 4 == 3 ? "look+" : "look");
	}
	return t_done();
}
