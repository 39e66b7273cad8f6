/* A tracer that gives its tracee registers, vector state, memory, signals and ways to go on at random, from the next seeds every day, while the tracee
 * steps through calls and handlers. What it reads and writes must never be the kernel's memory, and the kernel must live. FUZZ_FIRST,
 * FUZZ_SEEDS and FUZZ_CALLS in the environment make it another and longer one. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/user.h>

/* The request has no name in older headers. */
#define PEEKSIGINFO 0x4209
#define SEIZE 0x4206
#define INTERRUPT 0x4207
#define LISTEN 0x4208

static uint64_t state;
/* Whether the kernel's memory is closed to user code. */
static int locked;
static char page[8192] __attribute__((aligned(4096)));
static unsigned char vectors[16384] __attribute__((aligned(64)));

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Addresses of the kernel's, and others where none can be. */
static uint64_t hostile(void)
{
	static const uint64_t places[] = {
		KERNEL, KERNEL - 8, KERNEL - 4, CONTROL, SELECTORS, SELECTORS + 64, STACKS + 65024, HEAP, KERNEL_END - 8, KERNEL_END, 0x10000,
		0x7ffffffff000, 0x800000000000, 0xffff800000000000, -1ul, -8ul, 0,
	};
	uintptr_t start = place("ATTACK_ENTRIES", 0), end = place("ATTACK_ENTRIES", 1);
	if (start && next() % 3 == 0)
		return start + next() % (end - start);
	return places[next() % (sizeof places / sizeof *places)];
}

/* A word for a register or a request. Without a jail none of the kernel's addresses: the tracee's own instructions would store where
 * its registers point, and nobody promises that they cannot. */
static uint64_t word(void)
{
	uint64_t at;
	switch (next() % 6) {
	case 0:
		at = hostile();
		return locked || at < KERNEL - 4096 || at >= KERNEL_END ? at : 0;
	case 1:
		return (uintptr_t)page + next() % sizeof page;
	case 2:
		return next() % 512;
	case 3:
		/* What the kernel itself ends a call with that is to be made again. */
		return -512 - (int64_t)(next() % 8);
	case 4:
		return 1ul << next() % 64;
	}
	return next();
}

static void handler(int signal)
{
	getpid();
}

/* What is traced: calls, signals, threads' ends, new programs. */
static void traced(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER | SA_ONSTACK};
	stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close_range(3, ~0u, 0);
	sigaltstack(&stack, 0);
	for (int signal = 1; signal < 65; signal++)
		if (next() % 2)
			sigaction(signal, &action, 0);
	if (next() % 2)
		ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (int i = 0;; i++) {
		uint64_t sum = 0;
		for (volatile int k = 0; k < 10; k++)
			sum += k;
		getppid();
		write(null, &sum, 8);
		usleep(next() % 200);
		if (i % 4 == 3) {
			pid_t child = fork();
			if (child == 0)
				_exit(1);
			waitpid(child, 0, 0);
		}
		if (i % 8 == 7)
			raise(34 + next() % 20);
		if (i > 200)
			execl("/bin/true", "true", (char *)0);
	}
}

/* One request of the tracer's: 0 when it got what it must not. */
static int request(pid_t pid)
{
	struct user_regs_struct regs;
	struct iovec vector = {vectors, sizeof vectors};
	siginfo_t info;
	uint64_t at;
	switch (next() % 20) {
	case 0:
	case 1:
	case 2:
		if (ptrace(PTRACE_GETREGS, pid, 0, &regs) == 0) {
			for (int n = next() % 3; n >= 0; n--)
				((unsigned long long *)&regs)[next() % 27] = word();
			if (next() % 3 == 0)
				regs.orig_rax = word();
			if (next() % 3 == 0)
				regs.cs = next() % 2 ? 0x33 : 0x23;
			ptrace(PTRACE_SETREGS, pid, 0, &regs);
		}
		break;
	case 3:
		ptrace(PTRACE_POKEUSER, pid, next() % 1024, word());
		break;
	case 4:
	case 5:
		at = next() % 2 ? NT_X86_XSTATE : NT_PRFPREG;
		if (ptrace(PTRACE_GETREGSET, pid, at, &vector) == 0) {
			for (int n = next() % 16; n >= 0; n--)
				vectors[next() % 3 ? next() % vector.iov_len : 464 + next() % 112] = next();
			if (next() % 4 == 0)
				vector.iov_len = next() % 2 ? next() % sizeof vectors : vector.iov_len & ~7ul;
			ptrace(PTRACE_SETREGSET, pid, at, &vector);
		}
		break;
	case 6:
		vector.iov_len = next() % 512;
		if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &vector) == 0) {
			((uint64_t *)vectors)[next() % 27] = word();
			ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &vector);
		}
		break;
	case 7:
		at = hostile();
		errno = 0;
		if (at >= KERNEL && at < KERNEL_END && (ptrace(PTRACE_PEEKDATA, pid, at, 0) != -1 || errno == 0))
			return 0;
		break;
	case 8:
		at = next() % 2 ? hostile() : (uintptr_t)page + next() % sizeof page;
		if (ptrace(PTRACE_POKEDATA, pid, at, word()) == 0 && at >= KERNEL && at < KERNEL_END)
			return 0;
		break;
	case 9:
		/* Code of its own that it steps into. */
		at = (uintptr_t)handler + next() % 64;
		ptrace(PTRACE_POKETEXT, pid, at & ~7ul, next() % 2 ? 0xccccccccccccccccul : 0x90909090ef010f90ul);
		break;
	case 10:
		for (unsigned i = 0; i < sizeof info / 8; i++)
			((uint64_t *)&info)[i] = word();
		if (next() % 2)
			info.si_signo = next() % 70;
		ptrace(PTRACE_SETSIGINFO, pid, 0, &info);
		break;
	case 11:
		at = word();
		ptrace(PTRACE_SETSIGMASK, pid, 8, &at);
		break;
	case 12:
		ptrace(PTRACE_SETOPTIONS, pid, 0, next() & 0x3000ff & ~PTRACE_O_EXITKILL);
		break;
	case 13:
		ptrace(LISTEN, pid, 0, 0);
		ptrace(INTERRUPT, pid, 0, 0);
		break;
	case 14: {
		uint64_t args[2] = {word(), next() % 2 ? (uint64_t)(next() % 100) << 32 : word()};
		ptrace(PEEKSIGINFO, pid, args, page);
		break;
	}
	case 15:
		syscall(SYS_ptrace, 0x4200 + next() % 16, pid, word(), word());
		break;
	case 16:
		kill(pid, 1 + next() % 64);
		break;
	case 17:
		if (next() % 8 == 0)
			ptrace(PTRACE_DETACH, pid, 0, next() % 65);
		break;
	default:
		syscall(SYS_ptrace, 1 + next() % 31, pid, word(), word());
	}
	return REFUSED;
}

static void go_on(pid_t pid)
{
	static const int ways[] = {PTRACE_CONT, PTRACE_SYSCALL, PTRACE_SINGLESTEP, PTRACE_SINGLESTEP};
	syscall(SYS_ptrace, ways[next() % 4], pid, 0l, next() % 3 ? 0 : next() % 66);
}

static int one(void *arg)
{
	state = 0x9e3779b97f4a7c15ul * ((uintptr_t)arg + 1);
	long calls = getenv("FUZZ_CALLS") ? atol(getenv("FUZZ_CALLS")) : part(3000);
	pid_t pid = 0;
	int null = open("/dev/null", O_RDWR), idle = 0;
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close_range(3, ~0u, 0);
	for (long i = 0; i < calls; i++) {
		int status;
		if (pid <= 0) {
			pid = fork();
			if (pid == 0)
				traced();
			if (next() % 2)
				ptrace(SEIZE, pid, 0, 0l);
		}
		pid_t got = waitpid(-1, &status, WNOHANG | __WALL);
		if (got == pid && (WIFEXITED(status) || WIFSIGNALED(status))) {
			pid = 0;
			continue;
		}
		if (got <= 0) {
			/* It runs, or is stopped for nobody. */
			if (++idle % 64 == 0) {
				kill(pid, SIGKILL);
				waitpid(pid, 0, __WALL);
				pid = 0;
				continue;
			}
			usleep(50);
		}
		for (int n = next() % 4; n > 0; n--)
			if (request(pid) == 0)
				return 0;
		go_on(got > 0 ? got : pid);
	}
	kill(pid, SIGKILL);
	return REFUSED;
}

static int is_locked(void)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		(void)*(volatile uint64_t *)CONTROL;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status);
}

static int attack(void)
{
	alarm(0);
	locked = is_locked();
	long seeds = getenv("FUZZ_SEEDS") ? atol(getenv("FUZZ_SEEDS")) : 12;
	long first = getenv("FUZZ_FIRST") ? atol(getenv("FUZZ_FIRST")) : (long)day() * 12;
	for (long seed = first; seed < first + seeds; seed++) {
		int status = 0;
		pid_t pid = fork();
		if (pid == 0) {
			setpgid(0, 0);
			_exit(one((void *)seed) == 0 ? 0 : 255);
		}
		for (int i = 0; i < 100 * (int)patience(2); i++) {
			if (waitpid(pid, &status, WNOHANG) == pid)
				goto ended;
			usleep(10000);
		}
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
ended:
		kill(-pid, SIGKILL);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			char text[64];
			snprintf(text, sizeof text, "seed %ld\n", seed);
			tell(text);
			return 0;
		}
	}
	return REFUSED;
}
