/* Threads: create, join, detach, thread-local storage, once, keys, stack size, many at once. */
/* also: glibc-static i386-static */
#include "t.h"
static __thread int tls = 7;
static __thread char big[5000];
static pthread_key_t key;
static int freed, onces;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void drop(void *p) { __atomic_add_fetch(&freed, (long)p, __ATOMIC_SEQ_CST); }
static void first(void) { onces++; }
static void *th(void *a)
{
	long bad = 0;
	bad += tls != 7;
	for (int i = 0; i < 5000; i++)
		bad += big[i] != 0;
	tls = (long)a;
	memset(big, 1, sizeof big);
	pthread_setspecific(key, (void *)1);
	pthread_once(&once, first);
	sched_yield();
	bad += tls != (long)a;
	bad += t_gettid() == getpid();
	errno = (long)a;
	sched_yield();
	bad += errno != (long)a;
	return (void *)bad;
}
static void *deep(void *a)
{
	volatile char b[200000];
	memset((char *)b, 1, sizeof b);
	return (void *)((char *)a + b[199999]);
}
static void *leave(void *a) { pthread_exit(a); }
static void *nap(void *a)
{
	(void)a;
	t_ms(30);
	__atomic_add_fetch(&freed, 100000, __ATOMIC_SEQ_CST);
	return 0;
}
int main(void)
{
	pthread_t t[100];
	void *r;
	long bad = 0;
	pthread_key_create(&key, drop);
	for (int round = 0; round < 5; round++) {
		for (long i = 0; i < 100; i++)
			if (pthread_create(&t[i], 0, th, (void *)(i + 1)))
				bad++;
		for (int i = 0; i < 100; i++) {
			pthread_join(t[i], &r);
			bad += (long)r;
		}
	}
	N(bad);
	N(freed);
	N(onces);
	N(tls);
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 1 << 20);
	N(pthread_create(t, &a, deep, (void *)41));
	pthread_join(*t, &r);
	N((long)r);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	N(pthread_create(t, &a, nap, 0));
	for (int i = 0; i < 400 && freed < 100000; i++)
		t_ms(5);
	N(freed);
	pthread_create(t, 0, leave, (void *)5);
	pthread_join(*t, &r);
	N((long)r);
	T(pthread_equal(pthread_self(), pthread_self()));
	/* One after the other, quickly. */
	for (int i = 0; i < 2000; i++) {
		pthread_create(t, 0, leave, 0);
		pthread_join(*t, 0);
	}
	/* fork in a thread: only that one lives on. */
	pthread_create(t, 0, nap, 0);
	CHILD("fork beside a thread", {
		char b[2048];
		int f = open("/proc/self/status", O_RDONLY);
		ssize_t n = read(f, b, sizeof b - 1);
		b[n > 0 ? n : 0] = 0;
		T(strstr(b, "Threads:\t1\n") != 0);
		pthread_t q;
		pthread_create(&q, 0, leave, 0);
		pthread_join(q, 0);
	});
	pthread_join(*t, 0);
	char n[16];
	pthread_setname_np(pthread_self(), "renamed");
	pthread_getname_np(pthread_self(), n, sizeof n);
	S(n);
	return t_done();
}
