/* Mutexes of each kind, conditions, barriers, read-write locks, semaphores, spin locks; timeouts. */
#include "t.h"
#include <semaphore.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t b;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static sem_t s;
static long count, turn, serial, readers, most;
static void *add(void *a)
{
	(void)a;
	for (int i = 0; i < 10000; i++) {
		pthread_mutex_lock(&m);
		count++;
		pthread_mutex_unlock(&m);
	}
	if (pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD)
		serial++;
	return 0;
}
static void *play(void *a)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&m);
		while (turn % 3 != (long)a)
			pthread_cond_wait(&c, &m);
		turn++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	return 0;
}
static void *rd(void *a)
{
	(void)a;
	for (int i = 0; i < 200; i++) {
		pthread_rwlock_rdlock(&rw);
		long n = __atomic_add_fetch(&readers, 1, __ATOMIC_SEQ_CST);
		if (n > most)
			most = n;
		sched_yield();
		if (i == 0)
			t_ms(20);
		__atomic_sub_fetch(&readers, 1, __ATOMIC_SEQ_CST);
		pthread_rwlock_unlock(&rw);
	}
	return 0;
}
static long inside;
static void *wr(void *a)
{
	(void)a;
	for (int i = 0; i < 200; i++) {
		pthread_rwlock_wrlock(&rw);
		if (readers)
			inside++;
		pthread_rwlock_unlock(&rw);
	}
	return 0;
}
static void *post(void *a)
{
	(void)a;
	for (int i = 0; i < 1000; i++)
		sem_post(&s);
	return 0;
}
static struct timespec in(long ms)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000, t.tv_nsec %= 1000000000;
	return t;
}
static void *hold(void *a)
{
	(void)a;
	struct timespec t = in(30);
	S(t_errno(pthread_mutex_timedlock(&m, &t)));
	return 0;
}
int main(void)
{
	pthread_t t[8];
	pthread_barrier_init(&b, 0, 4);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, add, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	N(count);
	N(serial);
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], 0, play, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	N(turn);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, rd, 0);
	for (int i = 3; i < 5; i++)
		pthread_create(&t[i], 0, wr, 0);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], 0);
	N(inside);
	T(most >= 2);
	sem_init(&s, 0, 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, post, 0);
	for (int i = 0; i < 4000; i++)
		sem_wait(&s);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	R(sem_trywait(&s));
	struct timespec x = in(20);
	R(sem_timedwait(&s, &x));
	pthread_mutex_lock(&m);
	x = in(20);
	S(t_errno(pthread_cond_timedwait(&c, &m, &x)));
	pthread_create(t, 0, hold, 0);
	pthread_join(*t, 0);
	pthread_mutex_unlock(&m);
	pthread_condattr_t ca;
	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_t mc;
	pthread_cond_init(&mc, &ca);
	clock_gettime(CLOCK_MONOTONIC, &x);
	pthread_mutex_lock(&m);
	S(t_errno(pthread_cond_timedwait(&mc, &m, &x)));
	pthread_mutex_unlock(&m);
	pthread_mutexattr_t ma;
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_settype(&ma, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_t r;
	pthread_mutex_init(&r, &ma);
	N(pthread_mutex_lock(&r) + pthread_mutex_lock(&r) + pthread_mutex_unlock(&r) + pthread_mutex_unlock(&r));
	pthread_mutexattr_settype(&ma, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&r, &ma);
	pthread_mutex_lock(&r);
	S(t_errno(pthread_mutex_lock(&r)));
	/* Between processes. */
	struct sh { pthread_mutex_t m; pthread_cond_t c; sem_t s; int v; } *h = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&ma), pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_condattr_init(&ca), pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&h->m, &ma), pthread_cond_init(&h->c, &ca), sem_init(&h->s, 1, 0);
	pid_t p = must(fork());
	if (!p) {
		pthread_mutex_lock(&h->m);
		while (!h->v)
			pthread_cond_wait(&h->c, &h->m);
		h->v = 2;
		pthread_mutex_unlock(&h->m);
		sem_post(&h->s);
		_exit(0);
	}
	t_asleep(p, p);
	pthread_mutex_lock(&h->m);
	h->v = 1;
	pthread_cond_signal(&h->c);
	pthread_mutex_unlock(&h->m);
	sem_wait(&h->s);
	N(h->v);
	t_reap("child", p);
	return t_done();
}
