// Threads: preempted while they loop, their vector registers kept apart, mutexes and conditions, sleep.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static atomic_int stop, turns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ready;
static long sum;

static void *loops(void *arg)
{
	double x = (long)arg, want = x * 3 + 1;
	long wrong = 0;
	while (!stop) {
		double y;
		asm volatile("movapd %1, %%xmm15\n mov $1000, %%ecx\n 1: dec %%ecx\n jnz 1b\n movapd %%xmm15, %0"
			     : "=x"(y) : "x"(x) : "rcx", "xmm15");
		wrong += y * 3 + 1 != want;
		turns++;
	}
	return (void *)wrong;
}

static void *adds(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while (!ready)
		pthread_cond_wait(&condition, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 10000; i++) {
		pthread_mutex_lock(&lock);
		sum++;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[4];
	void *wrong;
	long all = 0;
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, loops, (void *)(i + 1));
	struct timespec before, after, nap = {0, 200 * 1000 * 1000};
	clock_gettime(CLOCK_MONOTONIC, &before);
	nanosleep(&nap, NULL);
	clock_gettime(CLOCK_MONOTONIC, &after);
	stop = 1;
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &wrong);
		all += (long)wrong;
	}
	long slept = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
	printf("registers kept: %s\n", all == 0 && turns > 0 ? "yes" : "no");
	printf("slept while others loop: %s\n", slept >= 200 ? "yes" : "no");
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, adds, NULL);
	pthread_mutex_lock(&lock);
	ready = 1;
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("sum: %ld\n", sum);
	return 42;
}
