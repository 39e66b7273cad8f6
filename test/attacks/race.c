/* Threads that change a call's arguments in memory while it reads them: what was checked must be what is used. Kernel memory
 * must never come out of the pipe, and nothing may go in. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static struct iovec vector;
static volatile int stop;
static char own[64];

static void *flip(void *arg)
{
	while (!stop) {
		vector.iov_base = own;
		vector.iov_len = 64;
		vector.iov_base = (void *)CONTROL;
		vector.iov_len = 1ul << 62;
	}
	return 0;
}

static int attack(void)
{
	pthread_t threads[2];
	int pipes[2];
	char got[4096];
	memset(own, 0x5a, sizeof own);
	pipe2(pipes, O_NONBLOCK);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, flip, 0);
	for (int i = 0; i < part(20000); i++) {
		if (writev(pipes[1], &vector, 1) > 0) {
			int n = read(pipes[0], got, sizeof got);
			for (int k = 0; k < n; k++)
				if (got[k] != 0x5a)
					return 0;
		}
	}
	stop = 1;
	return getppid() > 0 ? REFUSED : 0;
}
