/* Parent and child each go on with the code they had at the fork, and change their own. */
#include "t.h"
/* seconds: 60 */
#define PAGE 4096
typedef int fn(void);
static void emit(unsigned char *p, int value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}
static unsigned char *both, *flip;
static volatile int stop;
static void *busy(void *a)
{
	(void)a;
	for (int i = 0; !stop; i++) {
		emit(both + PAGE, i);
		if (((fn *)(both + PAGE))() != i)
			return (void *)1;
	}
	return 0;
}
int main(void)
{
	both = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	flip = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	emit(both, 1);
	emit(flip, 2);
	R(mprotect(flip, PAGE, PROT_READ | PROT_EXEC));
	N(((fn *)both)() + ((fn *)flip)());
	CHILD("child", {
		N(((fn *)both)() + ((fn *)flip)());
		emit(both, 10);
		mprotect(flip, PAGE, PROT_READ | PROT_WRITE);
		emit(flip, 20);
		mprotect(flip, PAGE, PROT_READ | PROT_EXEC);
		N(((fn *)both)() + ((fn *)flip)());
		CHILD("grandchild", N(((fn *)both)() + ((fn *)flip)()));
	});
	N(((fn *)both)() + ((fn *)flip)());
	/* Forks while another thread writes and runs. */
	pthread_t t;
	pthread_create(&t, 0, busy, 0);
	int bad = 0;
	for (int i = 0; i < 60; i++) {
		pid_t p = must(fork());
		if (!p) {
			for (int k = 0; k < 20; k++) {
				emit(both + PAGE + 64, k);
				if (((fn *)(both + PAGE + 64))() != k || ((fn *)both)() != 1 || ((fn *)flip)() != 2)
					_exit(1);
			}
			_exit(0);
		}
		int st;
		waitpid(p, &st, 0);
		bad += st != 0;
	}
	stop = 1;
	void *r;
	pthread_join(t, &r);
	N(bad);
	N((long)r);
	return t_done();
}
