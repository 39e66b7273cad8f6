/* Robust mutexes: the owner that dies, thread or process, hands over with a mark. */
#include "t.h"
static pthread_mutex_t *m;
static void *die(void *a)
{
	(void)a;
	pthread_mutex_lock(m);
	return 0;
}
static void *wait_(void *a)
{
	(void)a;
	say("waiter: %s\n", t_errno(pthread_mutex_lock(m)));
	pthread_mutex_consistent(m);
	pthread_mutex_unlock(m);
	return 0;
}
static void make(int shared)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	if (shared)
		pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(m, &a);
}
int main(void)
{
	m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	make(0);
	pthread_t t, u;
	pthread_create(&t, 0, die, 0);
	pthread_join(t, 0);
	S(t_errno(pthread_mutex_lock(m)));
	N(pthread_mutex_consistent(m));
	N(pthread_mutex_unlock(m));
	N(pthread_mutex_lock(m));
	N(pthread_mutex_unlock(m));
	make(1);
	CHILD("dies with the lock", pthread_mutex_lock(m));
	S(t_errno(pthread_mutex_trylock(m)));
	N(pthread_mutex_unlock(m)); /* not made consistent */
	S(t_errno(pthread_mutex_lock(m)));
	make(1);
	int p[2];
	must(pipe(p));
	pid_t c = must(fork());
	if (!c) {
		pthread_mutex_lock(m);
		write(p[1], "x", 1);
		pause();
		_exit(0);
	}
	char b;
	must(read(p[0], &b, 1));
	pthread_create(&u, 0, wait_, 0);
	t_ms(50);
	kill(c, SIGKILL);
	pthread_join(u, 0);
	t_reap("killed with the lock", c);
	N(pthread_mutex_lock(m));
	pthread_mutex_unlock(m);
	make(1);
	CHILD("exec with the lock", pthread_mutex_lock(m); execl("/bin/true", "true", (char *)0));
	S(t_errno(pthread_mutex_lock(m)));
	return t_done();
}
