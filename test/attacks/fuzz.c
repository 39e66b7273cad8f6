/* Calls by every number with hostile pointers and arguments of the right kind at random, from the next seeds every day. FUZZ_FIRST,
 * FUZZ_SEEDS and FUZZ_CALLS in the environment make it another and longer one. A try may end by any signal or error of its own; the kernel and others live. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static char page[8192] __attribute__((aligned(4096)));

static uint64_t word(void)
{
	static const uint64_t hostile[] = {
		0, 1, 8, 4095, 4096, -1ul, -8ul, -4096ul, 0x7fffffff, 0x80000000, 0xffffffff, 1ul << 32, 1ul << 62, 1ul << 63,
		KERNEL, KERNEL - 8, CONTROL, SELECTORS, STACKS + 65024, HEAP, KERNEL_END, KERNEL_END - 8, 0x7fffffffeff8, 0x7ffffffff000,
		0x800000000000, 0xffff800000000000, (uint64_t)-100,
	};
	switch (next() % 6) {
	case 0:
		return hostile[next() % (sizeof hostile / sizeof *hostile)];
	case 1:
		return (uintptr_t)page + next() % sizeof page;
	case 2:
		return next() % 16;
	case 3:
		return 1ul << next() % 64;
	case 4:
		return next() % 4096;
	}
	return next();
}

/* Calls that would only end or stop the try. */
static int left_out(long number)
{
	return number == SYS_exit || number == SYS_exit_group || number == SYS_pause || number == SYS_rt_sigreturn ||
	       number == SYS_rt_sigsuspend || number == SYS_vfork;
}

/* Processes a try must leave alone, as on Linux the same user's processes are its to signal, trace and limit. */
static pid_t others[3];

static void one(void *arg)
{
	state = 0x9e3779b97f4a7c15ul * ((uintptr_t)arg + 1);
	long calls = getenv("FUZZ_CALLS") ? atol(getenv("FUZZ_CALLS")) : part(1500);
	pid_t first = getpid();
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	/* The pipes between the watchers are not the try's. */
	close_range(3, ~0u, 0);
	for (long i = 0; i < calls; i++) {
		long number = next() % 8 ? next() % 470 : next();
		if (left_out(number))
			continue;
		/* Nor everybody's end. */
		if (number == SYS_kill)
			continue;
		for (unsigned k = 0; k < 8; k++)
			((uint64_t *)page)[next() % 1024] = word();
		uint64_t a[6];
		for (int k = 0; k < 6; k++) {
			a[k] = word();
			for (int n = 0; n < 3; n++)
				if ((int)a[k] == others[n])
					a[k] = first;
		}
		syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (getpid() != first)
			_exit(0x55);
	}
	_exit(0x55);
}

/* A try that waits for ever, or that switched its own alarm off, is ended from outside. */
static void bounded(long seed)
{
	pid_t pid = fork();
	if (pid == 0)
		one((void *)seed);
	for (int i = 0; i < 100 * (int)patience(1); i++) {
		if (waitpid(pid, 0, WNOHANG) == pid)
			return;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, 0, 0);
}

static int attack(void)
{
	alarm(0);
	long seeds = getenv("FUZZ_SEEDS") ? atol(getenv("FUZZ_SEEDS")) : 24;
	long first = getenv("FUZZ_FIRST") ? atol(getenv("FUZZ_FIRST")) : (long)day() * 24;
	setpgid(0, 0);
	/* The runner's, the second guest's, this one's. */
	others[0] = getppid();
	others[1] = second;
	others[2] = getpid();
	for (long seed = first; seed < first + seeds; seed++)
		bounded(seed);
	return REFUSED;
}
