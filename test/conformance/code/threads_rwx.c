/* One thread writes into a page of code while others run code in it. */
#include "t.h"
/* seconds: 60 */
typedef int fn(void);
static unsigned char *page;
static volatile int stop;
static void emit(unsigned char *p, int value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}
static void *runner(void *a)
{
	long bad = 0, n = 0;
	while (n < 2000 || !stop) {
		bad += ((fn *)(page + 64 * (long)a))() != 1000 + (long)a;
		n++;
	}
	return (void *)bad;
}
static void *writer(void *a)
{
	(void)a;
	for (int i = 0; i < 2000; i++) {
		unsigned char *p = page + 2048 + i % 32 * 16;
		emit(p, i);
		if (((fn *)p)() != i)
			return (void *)1;
	}
	return 0;
}
int main(void)
{
	page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(page != MAP_FAILED);
	pthread_t t[3], w;
	for (long i = 0; i < 3; i++)
		emit(page + 64 * i, 1000 + i);
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], 0, runner, (void *)i);
	pthread_create(&w, 0, writer, 0);
	void *r;
	long bad = 0;
	pthread_join(w, &r);
	N((long)r);
	stop = 1;
	for (int i = 0; i < 3; i++) {
		pthread_join(t[i], &r);
		bad += (long)r;
	}
	N(bad);
	return t_done();
}
