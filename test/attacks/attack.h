/* What every attack shares: a second guest that watches, a process that attacks, and how it ended.
 *
 * attack() runs in a child. It returns 0 when it got what it wanted and an errno or 1000 when it was refused; a signal ends it
 * otherwise. Afterwards the parent shows that the kernel still responds, and the second guest that it still runs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* The kernel's memory: where it starts, words shared with the supervisor, selectors, stacks, heap, and where it ends. */
#define KERNEL 0x552000000000ul
#define CONTROL (KERNEL + (24ul << 20))
#define SELECTORS (KERNEL + (32ul << 20))
#define STACKS (KERNEL + (64ul << 20))
#define HEAP (KERNEL + (4ul << 30))
#define KERNEL_END 0x554000000000ul
/* A word of kernel memory that nothing uses: the end of the control region but for its last page. */
#define UNUSED (CONTROL + (8ul << 20) - 8192)

#define REFUSED 1000

static int attack(void);

/* How many of an attack's tries are made: all, or a part of them (one in ATTACK_PART) where a processor is emulated. */
static long part(long tries)
{
	const char *word = getenv("ATTACK_PART");
	long of = word ? atol(word) : 1;
	return of > 1 ? (tries + of - 1) / of : tries;
}

/* The seed of random tests, which the runner chooses; 0 without one. */
static uint64_t day(void)
{
	const char *word = getenv("JANUA_SEED");
	return word ? strtoull(word, 0, 10) : 0;
}

/* How many seconds something may take: more where a processor is emulated. */
static unsigned patience(unsigned seconds)
{
	return getenv("ATTACK_PART") ? seconds * 8 : seconds;
}

/* The second guest. */
static pid_t second;

/* The n-th place of an instruction in the kernel's text, 0 when there are no more. */
static uintptr_t place(const char *what, int n)
{
	const char *list = getenv(what);
	while (list && n-- > 0)
		list = (list = strchr(list, ',')) ? list + 1 : 0;
	return list ? strtoul(list, 0, 16) : 0;
}

/* Runs one try in a process of its own: how it ended, as attack() returns it, or -signal. */
static int try_apart(int (*one)(void *), void *arg)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(patience(5));
		int e = one(arg);
		_exit(e == 0 ? 0 : e == REFUSED ? 255 : e);
	}
	if (waitpid(pid, &status, 0) != pid)
		return REFUSED;
	if (WIFSIGNALED(status))
		return -WTERMSIG(status);
	return WEXITSTATUS(status) == 255 ? REFUSED : WEXITSTATUS(status);
}

static void tell(const char *what)
{
	write(1, what, strlen(what));
}

static int wrapped(void *arg)
{
	return attack();
}

int main(void)
{
	int ask[2], answer[2], status;
	char line[128], byte = 1;
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	if (pipe(ask) || pipe(answer))
		return 99;
	second = fork();
	if (second == 0) {
		/* A guest of its own, with work of its own. */
		close(ask[1]);
		while (read(ask[0], &byte, 1) == 1) {
			char *memory = malloc(1 << 20);
			memset(memory, byte, 1 << 20);
			byte = memory[12345] + 1;
			free(memory);
			write(answer[1], &byte, 1);
		}
		_exit(0);
	}
	pid_t attacker = fork();
	if (attacker == 0) {
		close(ask[1]);
		alarm(patience(30));
		int e = attack();
		_exit(e == 0 ? 0 : e == REFUSED ? 255 : e);
	}
	if (waitpid(attacker, &status, 0) != attacker)
		return 98;
	if (WIFSIGNALED(status))
		snprintf(line, sizeof line, "end: SIG%s\n", sigabbrev_np(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == 0)
		snprintf(line, sizeof line, "end: succeeded\n");
	else if (WEXITSTATUS(status) == 255)
		snprintf(line, sizeof line, "end: refused\n");
	else
		snprintf(line, sizeof line, "end: %s\n", strerrorname_np(WEXITSTATUS(status)));
	tell(line);
	/* The kernel: memory, files, processes. */
	void *memory = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("after", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (memory == MAP_FAILED || fd < 0 || write(fd, "x", 1) != 1 || unlink("after"))
		return 97;
	pid_t child = fork();
	if (child == 0)
		_exit(7);
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
		return 96;
	tell("kernel: alive\n");
	byte = 41;
	if (write(ask[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1 || byte != 42)
		return 95;
	tell("second guest: alive\n");
	close(ask[1]);
	return waitpid(second, &status, 0) == second && status == 0 ? 0 : 94;
}
