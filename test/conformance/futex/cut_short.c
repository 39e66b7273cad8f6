/* Calls that let go of some waiters and then end with an error: whom they have let go goes on. */
#include "../t.h"
#include <linux/futex.h>
#include <pthread.h>
static long fx(uint32_t *a, int op, uint32_t v, long n, uint32_t *b, uint32_t w) { return syscall(SYS_futex, a, op, v, n, b, w); }
static uint32_t f, l, g;
static volatile pid_t at[2];
static long moved, owns, released, waited;

/* Waits to be given the lock. */
static void *moves(void *a)
{
	at[0] = t_gettid();
	moved = fx(&f, FUTEX_WAIT_REQUEUE_PI, 0, 0, &l, 0);
	owns = (l & FUTEX_TID_MASK) == (uint32_t)at[0];
	released = fx(&l, FUTEX_UNLOCK_PI, 0, 0, 0, 0);
	return a;
}

static void *waits(void *a)
{
	at[1] = t_gettid();
	waited = fx(a, FUTEX_WAIT, 0, 0, 0, 0);
	return 0;
}

int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], 0, moves, 0);
	while (!at[0])
		t_ms(1);
	t_asleep(getpid(), at[0]);
	pthread_create(&t[1], 0, waits, &f);
	while (!at[1])
		t_ms(1);
	t_asleep(getpid(), at[1]);
	/* The second is none that may be moved. */
	R(fx(&f, FUTEX_CMP_REQUEUE_PI, 1, 9, &l, 0));
	pthread_join(t[0], 0);
	N(moved);
	N(owns);
	N(released);
	R(fx(&f, FUTEX_WAKE, 9, 0, 0, 0));
	pthread_join(t[1], 0);
	N(waited);
	/* One waits at the first word, one at the second that is to be moved. */
	at[0] = at[1] = 0;
	pthread_create(&t[1], 0, waits, &g);
	while (!at[1])
		t_ms(1);
	t_asleep(getpid(), at[1]);
	pthread_create(&t[0], 0, moves, 0);
	while (!at[0])
		t_ms(1);
	t_asleep(getpid(), at[0]);
	R(fx(&g, FUTEX_WAKE_OP, 1, 1, &f, FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)));
	pthread_join(t[1], 0);
	N(waited);
	R(fx(&f, FUTEX_CMP_REQUEUE_PI, 1, 9, &l, 0));
	pthread_join(t[0], 0);
	N(moved);
	N(owns);
	N(released);
	return t_done();
}
