/* Signals every millisecond and from another process without a pause, while calls, faults and forks go on. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static volatile int got;

static void count(int signal)
{
	got++;
}

static int attack(void)
{
	struct itimerval every = { { 0, 1000 * patience(1) }, { 0, 1000 * patience(1) } };
	char byte;
	int pipes[2], bad = 0;
	signal(SIGALRM, count);
	signal(SIGUSR1, count);
	pipe(pipes);
	pid_t own = getpid(), sender = fork();
	if (sender == 0) {
		for (int i = 0; i < part(20000); i++)
			kill(own, SIGUSR1);
		_exit(0);
	}
	setitimer(ITIMER_REAL, &every, 0);
	for (int i = 0; i < part(3000); i++) {
		if (write(pipes[1], "x", 1) != 1 || read(pipes[0], &byte, 1) != 1 || byte != 'x')
			bad |= errno != EINTR;
		if (read(-1, (void *)KERNEL, 64) != -1)
			bad = 1;
		if (read(pipes[0] + 100, (void *)CONTROL, 1) != -1)
			bad = 1;
		if (i % 100 == 0) {
			pid_t child = fork();
			if (child == 0)
				_exit(3);
			int status = 0;
			while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
				;
			if (child > 0 && WEXITSTATUS(status) != 3)
				bad = 1;
		}
	}
	struct itimerval never = { 0 };
	setitimer(ITIMER_REAL, &never, 0);
	kill(sender, SIGKILL);
	return bad || !got ? 0 : REFUSED;
}
