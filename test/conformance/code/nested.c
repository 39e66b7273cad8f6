/* Functions in functions: gcc puts a trampoline on the stack, which is executable then. */
#include "t.h"
/* not: musl */
static long each(long n, long (*f)(long))
{
	long sum = 0;
	for (long i = 0; i < n; i++)
		sum += f(i);
	return sum;
}
static int by(const void *a, const void *b, int (*order)(int, int)) { return order(*(int *)a, *(int *)b); }
static void *in_thread(void *a)
{
	long k = (long)a;
	long add(long i) { return i + k; }
	return (void *)each(1000, add);
}
static volatile int hits;
static void on(int s) { (void)s; hits++; }
int main(void)
{
	long base = 5;
	long add(long i) { base++; return i + base; }
	N(each(1000, add));
	N(base);
	long twice(long i) { long inner(long j) { return j + i + base; } return each(3, inner); }
	N(each(100, twice));
	int up = 1;
	int order(int a, int b) { return up ? a - b : b - a; }
	int x = 3, y = 4;
	N(by(&x, &y, order));
	up = 0;
	N(by(&x, &y, order));
	/* A signal whose frame is on the stack that holds the trampoline. */
	t_handle(SIGUSR1, on, 0);
	long with_signal(long i) { raise(SIGUSR1); return i + base; }
	N(each(50, with_signal));
	N(hits);
	CHILD("child", N(each(1000, add)));
	pthread_t t;
	void *r;
	pthread_create(&t, 0, in_thread, (void *)7);
	pthread_join(t, &r);
	N((long)r);
	return t_done();
}
