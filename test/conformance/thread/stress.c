/* Threads, forks, signals, memory and pipes all at once; what must come out is known. */
/* seconds: 60 */
/* also: glibc-static */
#include "t.h"
static int sum;
static volatile int hits, stop;
static void h(int s) { (void)s, __atomic_add_fetch(&hits, 1, __ATOMIC_SEQ_CST); }
static void *forks(void *a)
{
	(void)a;
	for (int i = 0; i < 40; i++) {
		pid_t p = fork();
		if (!p)
			_exit(i & 63);
		int st;
		while (waitpid(p, &st, 0) == -1 && errno == EINTR)
			;
		if (WIFEXITED(st))
			__atomic_add_fetch(&sum, WEXITSTATUS(st), __ATOMIC_SEQ_CST);
	}
	return 0;
}
static void *maps(void *a)
{
	(void)a;
	while (!stop) {
		char *p = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(p, 1, 65536);
		munmap(p, 65536);
	}
	return 0;
}
static void *pipes(void *a)
{
	int p[2], bad = 0;
	(void)a;
	if (pipe(p))
		return (void *)1;
	for (int i = 0; i < 5000; i++) {
		int v = i, w = 0;
		while (write(p[1], &v, 4) == -1 && errno == EINTR)
			;
		while (read(p[0], &w, 4) == -1 && errno == EINTR)
			;
		bad += v != w;
	}
	return (void *)(long)bad;
}
static void *none(void *a) { return a; }
static void *creat_(void *a)
{
	(void)a;
	for (int i = 0; i < 200; i++) {
		pthread_t t;
		if (pthread_create(&t, 0, none, 0) == 0)
			pthread_join(t, 0);
	}
	return 0;
}
int main(void)
{
	t_handle(SIGALRM, h, SA_RESTART);
	struct itimerval v = {{0, 2000}, {0, 2000}}, z = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &v, 0);
	pthread_t t[8];
	pthread_create(&t[0], 0, forks, 0);
	pthread_create(&t[1], 0, forks, 0);
	pthread_create(&t[2], 0, maps, 0);
	pthread_create(&t[3], 0, pipes, 0);
	pthread_create(&t[4], 0, pipes, 0);
	pthread_create(&t[5], 0, creat_, 0);
	void *r, *r2;
	pthread_join(t[0], 0), pthread_join(t[1], 0), pthread_join(t[3], &r), pthread_join(t[4], &r2), pthread_join(t[5], 0);
	/* However little of the time this process has had: the timer goes on. */
	while (hits <= 5)
		t_ms(1);
	stop = 1;
	pthread_join(t[2], 0);
	setitimer(ITIMER_REAL, &z, 0);
	N(sum);
	N((long)r + (long)r2);
	T(hits > 5);
	return t_done();
}
