/* Processes whose threads have just ended, one after another: they end, fork, run another program, are killed, lose their first thread. */
#include "t.h"
#include <spawn.h>

extern char **environ;
static char *const self[] = {"/proc/self/exe", "end", 0};

static void *nothing(void *x)
{
	return x;
}

static void threads(int count)
{
	for (int i = 0; i < count; i++) {
		pthread_t t;
		must(pthread_create(&t, 0, nothing, 0) == 0 ? 0 : -1);
		pthread_join(t, 0);
	}
}

/* Where the process may go at any moment, no thread may be had any more. */
static void until_the_end(void)
{
	pthread_t t;
	for (;;)
		if (pthread_create(&t, 0, nothing, 0) == 0)
			pthread_join(t, 0);
}

static void *spawns(void *x)
{
	pid_t p;
	must(posix_spawn(&p, self[0], 0, 0, self, environ) == 0 ? 0 : -1);
	must(waitpid(p, 0, 0));
	return x;
}

static void *forks(void *execs)
{
	int p = must(fork());
	if (p == 0) {
		threads(3);
		if (execs)
			execv(self[0], self);
		_exit(3);
	}
	must(waitpid(p, 0, 0));
	return 0;
}

static void *runs_another(void *after)
{
	usleep((long)after);
	execv(self[0], self);
	_exit(99);
}

static void *kills(void *after)
{
	usleep((long)after);
	kill(getpid(), SIGKILL);
	return 0;
}

static void *outlives(void *x)
{
	usleep(500);
	threads(2);
	usleep(25000);
	threads(2);
	_exit(5);
	return x;
}

static void process(int number)
{
	pthread_t t, u;
	threads(1 + number % 5);
	if (number % 7 == 0)
		usleep(25000);
	switch (number % 6) {
	case 0:
		_exit(1);
	case 1:
		pthread_create(&t, 0, forks, (void *)(long)(number / 6 % 2));
		pthread_create(&u, 0, spawns, 0);
		pthread_join(t, 0);
		pthread_join(u, 0);
		_exit(2);
	case 2:
		pthread_create(&t, 0, runs_another, (void *)(long)(number % 50));
		until_the_end();
	case 3:
		pthread_create(&t, 0, kills, (void *)(long)(number * 7 % 900));
		until_the_end();
	case 4:
#ifdef __GLIBC__
		pthread_create(&t, 0, outlives, 0);
		pthread_exit(0);
#else
		/* musl has the first thread of a forked process leave the list of threads locked. */
		outlives(0);
#endif
	default:
		forks(0);
		spawns(0);
		threads(1);
		execv(self[0], self);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return 7;
	int ends[8] = {0}, killed = 0;
	for (int number = 0; number < 60; number++) {
		int p = must(fork()), status;
		if (p == 0)
			process(number);
		must(waitpid(p, &status, 0));
		if (WIFEXITED(status) && WEXITSTATUS(status) < 8)
			ends[WEXITSTATUS(status)]++;
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	for (int code = 0; code < 8; code++)
		N(ends[code]);
	N(killed);
	return t_done();
}
