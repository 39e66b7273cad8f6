/* /proc/PID/stat: a sleeper that is sent a signal is running from then on, not from when it gets a processor. */
#include "t.h"
static volatile int *handled;
static void handler(int s)
{
	(void)s;
	++*handled;
}
static char state(pid_t pid)
{
	char name[32], b[128];
	snprintf(name, sizeof name, "/proc/%d/stat", pid);
	int f = must(open(name, O_RDONLY));
	int n = must(read(f, b, sizeof b - 1));
	close(f);
	b[n] = 0;
	char *p = strrchr(b, ')');
	return p ? p[2] : '?';
}
int main(void)
{
	enum { TIMES = 200 };
	int asleep = 0;
	handled = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = must(fork());
	if (!pid) {
		sigset_t set, none;
		signal(SIGUSR1, handler);
		sigemptyset(&none);
		sigemptyset(&set), sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_BLOCK, &set, 0);
		*handled = 1;
		for (;;)
			sigsuspend(&none);
	}
	for (int i = 1; i <= TIMES; i++) {
		while (*handled != i || state(pid) != 'S')
			sched_yield();
		must(kill(pid, SIGUSR1));
		char s = state(pid);
		/* Asleep, and has not been awake in between. */
		asleep += s == 'S' && *handled == i;
	}
	/* A kernel may let it sleep for the moment between looking at what woke it and leaving the call. */
	T(asleep < TIMES / 4);
	must(kill(pid, SIGKILL));
	must(waitpid(pid, 0, 0));
	return t_done();
}
