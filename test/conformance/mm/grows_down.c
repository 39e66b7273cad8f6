/* MAP_GROWSDOWN: by stores, by reads and by the kernel's own copies; what stops it; what else keeps away from it. */
#include "t.h"
#define PAGE 4096L
#define ROOM (64L << 20)
static char *room; /* nothing is mapped here but what a test maps */
static char *top(int pages, int prot)
{
	char *at = mmap(0, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(at == MAP_FAILED ? -1 : 0);
	must(munmap(at, ROOM));
	room = at;
	char *p = mmap(at + ROOM - pages * PAGE, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
	must(p == MAP_FAILED ? -1 : 0);
	return p;
}
static void done(void) { must(munmap(room, ROOM)); }
/* Where the mapping that holds an address begins, counted in pages from another address. */
static long begins(char *at, char *from)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end, found = 0;
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= (unsigned long)at && (unsigned long)at < end)
			found = start;
	fclose(f);
	return ((long)from - (long)found) / PAGE;
}
static int dies(void (*what)(char *), char *p)
{
	int pid = must(fork()), st;
	if (!pid) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
		what(p);
		_exit(0);
	}
	must(waitpid(pid, &st, 0));
	return WIFSIGNALED(st) ? WTERMSIG(st) : 0;
}
static void store_below(char *p) { *(volatile char *)(p - 1) = 1; }
static void load_below(char *p) { (void)*(volatile char *)(p - 1); }
static void far_below(char *p) { *(volatile char *)(p - (16L << 20)) = 1; }
static void near_below(char *p) { *(volatile char *)(p - 100 * PAGE) = 1; }
static void *racer(void *p)
{
	for (int i = 1; i < 200; i++)
		((volatile char *)p)[-i * PAGE] += 1;
	return 0;
}
static volatile sig_atomic_t handled;
static void on_usr1(int s) { handled = s; }
int main(void)
{
	struct rlimit stack = {8 << 20, 8 << 20};
	must(setrlimit(RLIMIT_STACK, &stack));
	char *p = top(4, PROT_READ | PROT_WRITE);
	for (int i = 1; i <= 100; i++)
		((volatile char *)p)[-i * PAGE] = i;
	T(p[-PAGE] == 1 && p[-100 * PAGE] == 100);
	N(begins(p, p));
	/* Far below at once, and the pages between are there. */
	p[-1000 * PAGE] = 5;
	T(p[-500 * PAGE] == 0);
	N(begins(p, p));
	done();

	/* Loads; copies of the kernel's, in and out. */
	p = top(1, PROT_READ | PROT_WRITE);
	T(((volatile char *)p)[-PAGE] == 0);
	int q[2];
	must(pipe(q));
	R(write(q[1], p - 3 * PAGE, 100));
	R(read(q[0], p - 5 * PAGE - 50, 100));
	R(write(q[1], "abc", 3));
	R(read(q[0], p - 20 * PAGE, 3));
	T(!memcmp(p - 20 * PAGE, "abc", 3));
	N(begins(p, p));
	/* A signal's frame on such a stack. */
	stack_t ss = {.ss_sp = p - 60 * PAGE, .ss_size = 60 * PAGE};
	must(sigaltstack(&ss, 0));
	struct sigaction sa = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
	must(sigaction(SIGUSR1, &sa, 0));
	char *q2 = top(1, PROT_READ | PROT_WRITE);
	ss.ss_sp = q2 - 60 * PAGE, ss.ss_size = 60 * PAGE;
	must(sigaltstack(&ss, 0));
	raise(SIGUSR1);
	T(handled == SIGUSR1);
	ss.ss_flags = SS_DISABLE;
	must(sigaltstack(&ss, 0));
	done();

	/* Rights are those of the mapping; a fork's child grows its own. */
	p = top(2, PROT_READ);
	N(dies(load_below, p));
	N(dies(store_below, p));
	N(begins(p, p));
	done();

	/* The limit of stacks; what is below keeps its distance, unless nobody may access it. */
	p = top(2, PROT_READ | PROT_WRITE);
	N(dies(far_below, p));
	N(dies(near_below, p));
	must(mmap(p - 200 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? -1 : 0);
	N(dies(near_below, p));
	N(dies(store_below, p));
	must(mprotect(p - 200 * PAGE, PAGE, PROT_NONE));
	N(dies(near_below, p));
	done();

	/* Nothing is placed close below by itself; a fixed one is. */
	p = top(2, PROT_READ | PROT_WRITE);
	char *w = mmap(p - 10 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(w != p - 10 * PAGE);
	munmap(w, PAGE);
	/* mprotect by PROT_GROWSDOWN reaches to where it has grown. */
	p[-9 * PAGE] = 1;
	R(mprotect(p, PAGE, PROT_READ | PROT_GROWSDOWN));
	N(dies(store_below, p));
	R(mprotect(p - 9 * PAGE, 10 * PAGE, PROT_READ | PROT_WRITE));
	done();

	/* Threads that race. */
	p = top(2, PROT_READ | PROT_WRITE);
	pthread_t t[4];
	/* Their own stacks are not to lie in the way. */
	must(mmap(room, p - 300 * PAGE - room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? -1 : 0);
	for (int i = 0; i < 4; i++)
		must(pthread_create(t + i, 0, racer, p));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	N(begins(p, p));
	done();
	/* By a fork that stores the child's number and pidfd. */
	p = top(2, PROT_READ | PROT_WRITE);
	int *number = (int *)(p - 3 * PAGE), *pidfd = (int *)(p - 7 * PAGE), st;
	int pid = must(syscall(SYS_clone, SIGCHLD | CLONE_PARENT_SETTID, 0, number, 0, 0));
	if (!pid)
		_exit(3);
	must(waitpid(pid, &st, 0));
	T(*number == pid);
	N(WEXITSTATUS(st));
	pid = must(syscall(SYS_clone, SIGCHLD | CLONE_PIDFD, 0, pidfd, 0, 0));
	if (!pid)
		_exit(4);
	must(waitpid(pid, &st, 0));
	T(*pidfd > 2 && close(*pidfd) == 0);
	N(WEXITSTATUS(st));
	N(begins(p, p));
	done();
	/* An address where nothing can be: the number goes nowhere, the descriptor must go somewhere. */
	pid = must(syscall(SYS_clone, SIGCHLD | CLONE_PARENT_SETTID, 0, 16, 0, 0));
	if (!pid)
		_exit(5);
	must(waitpid(pid, &st, 0));
	N(WEXITSTATUS(st));
	R(syscall(SYS_clone, SIGCHLD | CLONE_PIDFD, 0, 16, 0, 0));
	R(waitpid(-1, &st, 0));
	/* Shared memory and files do not grow. */
	R(mmap(0, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0) == MAP_FAILED ? -1 : 0);
	return t_failed;
}
