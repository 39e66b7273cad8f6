// A 32-bit program: calls by int 0x80, thread-local storage by segments, signal frames, threads, fork, clocks.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static __thread int own = 7;
static volatile sig_atomic_t handled;
static int total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	handled = signal * 100 + (info->si_pid == getpid());
}

static void *thread(void *argument)
{
	for (int count = 0; count < 1000; count++) {
		pthread_mutex_lock(&lock);
		total++;
		pthread_mutex_unlock(&lock);
		own++;
		if (count % 100 == 0)
			sched_yield();
	}
	return (void *)(long)own;
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	printf("pointers of %d bytes\n", (int)sizeof(void *));
	int pid;
	asm volatile("int $0x80" : "=a"(pid) : "a"(20) : "memory");
	printf("int 0x80: %s\n", pid == getpid() ? "ok" : "wrong");

	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	printf("signal: %s\n", handled == SIGUSR1 * 100 + 1 ? "ok" : "wrong");

	pthread_t threads[4];
	int good = 1;
	for (int at = 0; at < 4; at++)
		pthread_create(&threads[at], NULL, thread, NULL);
	for (int at = 0; at < 4; at++) {
		void *result;
		pthread_join(threads[at], &result);
		good &= (long)result == 1007;
	}
	printf("threads: %d, their own: %s, mine: %d\n", total, good ? "ok" : "wrong", own);

	int status;
	pid_t child = fork();
	if (child == 0)
		_exit(own + 1);
	waitpid(child, &status, 0);
	printf("child: %d\n", WEXITSTATUS(status));

	// Not given to user code: ends that process alone.
	child = fork();
	if (child == 0) {
		asm volatile("mov $0xffffffff, %%esp\n syscall" : : "a"(20) : "memory");
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("32-bit syscall: %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);

	struct timespec first, second;
	clock_gettime(CLOCK_MONOTONIC, &first);
	clock_gettime(CLOCK_MONOTONIC, &second);
	printf("clock: %s\n", second.tv_sec > first.tv_sec || second.tv_nsec >= first.tv_nsec ? "ok" : "wrong");
	return 3;
}
