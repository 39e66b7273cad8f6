/* Stops, continuations and ends sent to many children by several threads at once: none is left over, whatever came in which order. */
#include "t.h"
#define CHILDREN 60
static int pids[CHILDREN];
static void *send(void *signal)
{
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < CHILDREN; i++)
			kill(pids[i], (int)(intptr_t)signal);
	return 0;
}
static void *idle(void *p)
{
	for (;;)
		pause();
	return p;
}
static void child(int i)
{
	pthread_t t;
	if (i % 3 == 0)
		pthread_create(&t, 0, idle, 0);
	for (;;)
		i % 2 ? usleep(1000) : pause();
}
int main(void)
{
	static const int sent[] = {SIGSTOP, SIGCONT, SIGTSTP, SIGCONT, SIGTERM};
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < CHILDREN; i++) {
			pids[i] = must(fork());
			if (!pids[i])
				child(i);
		}
		pthread_t t[5];
		for (int i = 0; i < 5; i++)
			must(pthread_create(t + i, 0, send, (void *)(intptr_t)sent[i]));
		for (int i = 0; i < 5; i++)
			pthread_join(t[i], 0);
		/* The last word: who was stopped last goes on, to its end. */
		for (int i = 0; i < CHILDREN; i++)
			kill(pids[i], SIGCONT);
		int ended = 0, st;
		for (int i = 0; i < CHILDREN; i++)
			ended += must(waitpid(pids[i], &st, 0)) == pids[i] && WIFSIGNALED(st) && WTERMSIG(st) == SIGTERM;
		N(ended);
	}
	return t_failed;
}
