/* Two processes compared in both orders at once, while threads of both end. */
#include "../t.h"
#include <pthread.h>
#include <sys/wait.h>
enum { TIMES = 3000, FILES = 2 };
static void *ends(void *a) { return a; }

/* Makes threads that end, until it is killed. */
static void churn(void)
{
	for (;;) {
		pthread_t t;
		if (!pthread_create(&t, 0, ends, 0))
			pthread_join(t, 0);
	}
}

static pid_t child[2];

static void *compare(void *a)
{
	int first = a != 0;
	long same = 0;
	for (int i = 0; i < TIMES; i++)
		same += syscall(SYS_kcmp, child[first], child[!first], FILES, 0, 0) == 0;
	say("%ld\n", same);
	return 0;
}

int main(void)
{
	for (int i = 0; i < 2; i++)
		if (!(child[i] = must(fork())))
			churn();
	pthread_t t;
	pthread_create(&t, 0, compare, child);
	compare(0);
	pthread_join(t, 0);
	for (int i = 0; i < 2; i++) {
		kill(child[i], SIGKILL);
		int s;
		must(waitpid(child[i], &s, 0));
		N(WTERMSIG(s));
	}
	return t_done();
}
