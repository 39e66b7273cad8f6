// When sleepers wake. The argument is the length of a slice, ms, when timers are looked at at its end only; 0 when they are looked at when they are due.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLEEPS = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int set;

static long long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void nap(long microseconds) { nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL); }

/* Whether a slice ended between two times. */
static int ended(long long from, long long to, long long slice) { return from / slice != to / slice; }

static void *sets(void *arg)
{
	(void)arg;
	nap(3000);
	pthread_mutex_lock(&lock);
	set = 1;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* An event that another thread sets after 3 ms: that thread wakes at the end of a slice, and the waiter with it. */
static int event_waits_for_slice(long long slice)
{
	long long start = now();
	pthread_t other;
	set = 0;
	pthread_create(&other, NULL, sets, NULL);
	pthread_mutex_lock(&lock);
	while (!set)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	long long end = now();
	pthread_join(other, NULL);
	return ended(start, end, slice);
}

/* Who is woken by another waits for no timer: a byte goes there and back many times, most often within one slice. */
static int pipes_do_not_wait(long long slice)
{
	int there[2], back[2], within = 0;
	char byte = 0;
	if (pipe(there) || pipe(back))
		return 0;
	if (fork() == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1)
			if (write(back[1], &byte, 1) != 1)
				break;
		_exit(0);
	}
	for (int i = 0; i < SLEEPS; i++) {
		long long start = now();
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			return 0;
		within += !ended(start, now(), slice);
	}
	close(there[1]);
	wait(NULL);
	return within > 0;
}

int main(int argc, char **argv)
{
	long long length = argc > 1 ? atoi(argv[1]) : 0, slice = (length ? length : 80) * 1000000;
	int waited = 0;
	for (int i = 0; i < SLEEPS; i++) {
		long long start = now();
		nap(1000);
		waited += ended(start, now(), slice);
	}
	if (length)
		printf("sleeps end with a slice: %s\n", waited == SLEEPS ? "yes" : "no");
	else
		printf("sleeps end when they are due: %s\n", waited < SLEEPS ? "yes" : "no");
	if (length)
		printf("events after a delay: %s\n", event_waits_for_slice(slice) ? "with a slice" : "at once");
	printf("wake-ups wait for nothing: %s\n", pipes_do_not_wait(slice) ? "yes" : "no");
	return 0;
}
