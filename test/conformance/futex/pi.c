/* Priority-inheriting futexes as the C library uses them: owner word, contention, trylock, deadlock, dead owner. */
#include "t.h"
#include <linux/futex.h>
static long fx(uint32_t *a, int op, uint32_t v, void *t) { return syscall(SYS_futex, a, op, v, t, 0, 0); }
static uint32_t w;
static int order;
static void *th(void *a)
{
	(void)a;
	R(fx(&w, FUTEX_TRYLOCK_PI, 0, 0));
	struct timespec past;
	clock_gettime(CLOCK_REALTIME, &past);
	R(fx(&w, FUTEX_LOCK_PI, 0, &past));
	R(fx(&w, FUTEX_UNLOCK_PI, 0, 0));
	R(fx(&w, FUTEX_LOCK_PI, 0, 0));
	T((w & FUTEX_TID_MASK) == (uint32_t)t_gettid());
	order = 2;
	R(fx(&w, FUTEX_UNLOCK_PI, 0, 0));
	return 0;
}
static pthread_mutex_t m;
static volatile int tried;
static void *lock(void *a)
{
	(void)a;
	N(pthread_mutex_trylock(&m));
	tried = 1;
	pthread_mutex_lock(&m);
	order = 3;
	pthread_mutex_unlock(&m);
	return 0;
}
static int count;
static void *add(void *a)
{
	(void)a;
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&m);
		count++;
		pthread_mutex_unlock(&m);
	}
	return 0;
}
static void *ends(void *a)
{
	must(fx(&w, FUTEX_LOCK_PI, 0, 0));
	while (!(__atomic_load_n(&w, __ATOMIC_SEQ_CST) & FUTEX_WAITERS))
		t_ms(1);
	t_asleep(getpid(), getpid());
	__atomic_store_n(&w, 0x40000000, __ATOMIC_SEQ_CST); /* as a C library's pthread_exit does */
	return a;
}
static volatile pid_t waiting;
static void *second(void *a)
{
	waiting = t_gettid();
	R(fx(&w, FUTEX_LOCK_PI, 0, 0));
	R(fx(&w, FUTEX_UNLOCK_PI, 0, 0));
	return a;
}
static void *third(void *a)
{
	R(fx(&w, FUTEX_LOCK_PI, 0, 0));
	return a;
}
int main(void)
{
	R(fx(&w, FUTEX_LOCK_PI, 0, 0));
	T((w & FUTEX_TID_MASK) == (uint32_t)t_gettid());
	R(fx(&w, FUTEX_LOCK_PI, 0, 0));
	pthread_t t;
	pthread_create(&t, 0, th, 0);
	for (int i = 0; i < 1000 && !(w & FUTEX_WAITERS && i > 20); i++)
		t_ms(5);
	T(w & FUTEX_WAITERS);
	order = 1;
	must(fx(&w, FUTEX_UNLOCK_PI, 0, 0));
	pthread_join(t, 0);
	N(order);
	N(w);
	w = 0x3ffffff; /* an owner that does not exist */
	R(fx(&w, FUTEX_LOCK_PI, 0, 0));
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	int r = pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	N(r);
	pthread_mutex_init(&m, &a);
	N(pthread_mutex_lock(&m));
	pthread_create(&t, 0, lock, 0);
	while (!tried)
		t_ms(1);
	t_ms(50); /* so that it most likely waits */
	order = 4;
	N(pthread_mutex_unlock(&m));
	pthread_join(t, 0);
	N(order);
	pthread_t n[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&n[i], 0, add, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(n[i], 0);
	N(count);
	/* An owner that ends and has written something else over the word: the kernel knows who it was. */
	w = 0;
	pthread_create(&t, 0, ends, 0);
	while (!(__atomic_load_n(&w, __ATOMIC_SEQ_CST) & FUTEX_TID_MASK))
		t_ms(1);
	R(fx(&w, FUTEX_LOCK_PI, 0, 0));
	pthread_join(t, 0);
	T((w & FUTEX_TID_MASK) == (uint32_t)t_gettid());
	say("word: %#x\n", w & ~FUTEX_TID_MASK);
	R(fx(&w, FUTEX_UNLOCK_PI, 0, 0));
	N(w);
	/* While others wait the word must name the owner they wait for. */
	R(fx(&w, FUTEX_LOCK_PI, 0, 0));
	pthread_create(&t, 0, second, 0);
	while (!(__atomic_load_n(&w, __ATOMIC_SEQ_CST) & FUTEX_WAITERS))
		t_ms(1);
	t_asleep(getpid(), waiting);
	pthread_t t2;
	uint32_t was = w;
	__atomic_store_n(&w, 0, __ATOMIC_SEQ_CST);
	pthread_create(&t2, 0, third, 0);
	pthread_join(t2, 0);
	__atomic_store_n(&w, was, __ATOMIC_SEQ_CST);
	must(fx(&w, FUTEX_UNLOCK_PI, 0, 0));
	pthread_join(t, 0);
	return t_done();
}
