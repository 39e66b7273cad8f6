// A thread that loops is interrupted by whatever becomes ready: a timer's signal, another thread, another process.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int done;
static void on_alarm(int signal) { (void)signal; done = 1; }
static void *sets(void *arg) { (void)arg; done = 1; return NULL; }

int main(void)
{
	struct itimerval soon = {.it_value.tv_usec = 20000};
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &soon, NULL);
	while (!done)
		;
	printf("timer\n");
	done = 0;
	pthread_t other;
	pthread_create(&other, NULL, sets, NULL);
	while (!done)
		;
	pthread_join(other, NULL);
	printf("thread\n");
	done = 0;
	pid_t parent = getpid();
	fflush(stdout);
	if (fork() == 0) {
		kill(parent, SIGALRM);
		_exit(0);
	}
	while (!done)
		;
	wait(NULL);
	printf("process\n");
	return 0;
}
