/* futex: wait, wake, bitset, requeue, wake_op, timeouts, and the refusals. */
/* also: i386-static */
#include "t.h"
#include <linux/futex.h>
static long fx(uint32_t *a, int op, uint32_t v, void *t, uint32_t *b, uint32_t w) { return syscall(SYS_futex, a, op, v, t, b, w); }
static uint32_t w1, w2;
static int up[8];
static pid_t tid[8];
struct arg { int i, op; uint32_t bits; };
static void *waiter(void *p)
{
	struct arg *a = p;
	tid[a->i] = t_gettid();
	while (fx(&w1, a->op, 0, 0, 0, a->bits) == -1 && errno == EINTR)
		;
	__atomic_store_n(&up[a->i], 1, __ATOMIC_SEQ_CST);
	return 0;
}
static pthread_t t[8];
static struct arg a[8];
static void start(int n, int op, uint32_t bits)
{
	memset(up, 0, sizeof up), memset(tid, 0, sizeof tid);
	for (int i = 0; i < n; i++) {
		a[i] = (struct arg){i, op, bits ? bits << i : ~0u};
		pthread_create(&t[i], 0, waiter, &a[i]);
	}
	for (int i = 0; i < n; i++) {
		while (!__atomic_load_n(&tid[i], __ATOMIC_SEQ_CST))
			t_ms(1);
		t_asleep(getpid(), tid[i]);
	}
}
static int count(int want)
{
	int s = 0;
	for (int k = 0; k < 200; k++) {
		s = 0;
		for (int i = 0; i < 8; i++)
			s += __atomic_load_n(&up[i], __ATOMIC_SEQ_CST);
		if (s >= want)
			break;
		t_ms(5);
	}
	t_ms(20);
	return s;
}
static void join(int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(t[i], 0);
}
int main(void)
{
	struct timespec z = {0, 20000000}, bad = {0, 1000000000};
	R(fx(&w1, FUTEX_WAIT, 1, 0, 0, 0));
	R(fx(&w1, FUTEX_WAIT, 0, &z, 0, 0));
	R(fx(&w1, FUTEX_WAIT_PRIVATE, 0, &z, 0, 0));
	R(fx(&w1, FUTEX_WAIT, 0, &bad, 0, 0));
	R(fx((uint32_t *)((char *)&w1 + 1), FUTEX_WAIT, 0, &z, 0, 0));
	R(fx((uint32_t *)8, FUTEX_WAIT, 0, &z, 0, 0));
	R(fx((uint32_t *)4096, FUTEX_WAKE, 1, 0, 0, 0));
	R(fx(&w1, 99, 0, 0, 0, 0));
	R(fx(&w1, FUTEX_WAIT_BITSET, 0, 0, 0, 0));
	R(fx(&w1, FUTEX_WAKE_BITSET, 1, 0, 0, 0));
	R(fx(&w1, FUTEX_WAKE, 5, 0, 0, 0));
	struct timespec past;
	clock_gettime(CLOCK_MONOTONIC, &past);
	R(fx(&w1, FUTEX_WAIT_BITSET, 0, &past, 0, ~0u));
	clock_gettime(CLOCK_REALTIME, &past);
	R(fx(&w1, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &past, 0, ~0u));
	start(4, FUTEX_WAIT, 0);
	N(count(0));
	R(fx(&w1, FUTEX_WAKE, 1, 0, 0, 0));
	N(count(1));
	R(fx(&w1, FUTEX_WAKE, 2, 0, 0, 0));
	N(count(3));
	R(fx(&w1, FUTEX_WAKE, 1000, 0, 0, 0));
	join(4);
	start(4, FUTEX_WAIT_BITSET, 1);
	R(fx(&w1, FUTEX_WAKE_BITSET, 10, 0, 0, 16));
	R(fx(&w1, FUTEX_WAKE_BITSET, 10, 0, 0, 5));
	N(count(2));
	say("%d%d%d%d\n", up[0], up[1], up[2], up[3]);
	R(fx(&w1, FUTEX_WAKE, 10, 0, 0, 0));
	join(4);
	start(4, FUTEX_WAIT, 0);
	R(fx(&w1, FUTEX_CMP_REQUEUE, 1, (void *)2, &w2, 7));
	R(fx(&w1, FUTEX_CMP_REQUEUE, 1, (void *)2, &w2, 0));
	N(count(1));
	R(fx(&w1, FUTEX_WAKE, 10, 0, 0, 0));
	R(fx(&w2, FUTEX_WAKE, 10, 0, 0, 0));
	join(4);
	start(3, FUTEX_WAIT, 0);
	R(fx(&w1, FUTEX_REQUEUE, 0, (void *)10, &w2, 0));
	R(fx(&w2, FUTEX_WAKE, 10, 0, 0, 0));
	join(3);
	start(2, FUTEX_WAIT, 0);
	/* Adds 5 to w2; wakes there when it was above 3. */
	R(fx(&w1, FUTEX_WAKE_OP, 1, (void *)1, &w2, FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_GT, 3)));
	N(w2);
	R(fx(&w2, FUTEX_WAKE_OP, 1, (void *)1, &w1, FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_EQ, 0)));
	N(count(2));
	join(2);
	/* Between processes: shared memory is found by what it is, not by its address. */
	uint32_t *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t c = must(fork());
	if (!c) {
		uint32_t *m = mremap(s, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		_exit(fx(m, FUTEX_WAIT, 0, 0, 0, 0) == 0 ? 5 : 6);
	}
	t_asleep(c, c);
	R(fx(s, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0));
	R(fx(s, FUTEX_WAKE, 1, 0, 0, 0));
	t_reap("shared", c);
	return t_done();
}
