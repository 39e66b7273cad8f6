/* Waiters that come, are woken and moved all at once, with words that change meanwhile: nobody sleeps who should not. Each operation looks at a word that
 * another thread is changing. */
#include "../t.h"
#include <linux/futex.h>
enum { ROUNDS = 3000, THREADS = 4 };

static unsigned go, arrived, seq, other, turns[THREADS];

static long futex(unsigned *word, int op, unsigned value, unsigned long more, unsigned *second, unsigned third)
{
	return syscall(SYS_futex, word, op, value, more, second, third);
}

/* Waits until the word is another. */
static void past(unsigned *word, unsigned value)
{
	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == value)
		futex(word, FUTEX_WAIT_PRIVATE, value, 0, 0, 0);
}

/* Each round: tells that it has come, and waits for the next, on a word from which it may be moved to another. */
static void *waits(void *a)
{
	long me = (long)a;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned now = __atomic_load_n(&seq, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
		futex(&arrived, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
		past(&seq, now);
		turns[me]++;
	}
	return 0;
}

/* Changes a word and wakes one of two others by one call (FUTEX_WAKE_OP), again and again. */
static void *operates(void *a)
{
	while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST))
		futex(&other, FUTEX_WAKE_OP_PRIVATE, 1, 1, &arrived, FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_GE, 0));
	return a;
}

int main(void)
{
	pthread_t t[THREADS], o;
	for (long i = 0; i < THREADS; i++)
		must(-pthread_create(t + i, 0, waits, (void *)i));
	must(-pthread_create(&o, 0, operates, 0));
	for (unsigned round = 1; round <= ROUNDS; round++) {
		for (unsigned there; (there = __atomic_load_n(&arrived, __ATOMIC_SEQ_CST)) < round * THREADS;)
			past(&arrived, there);
		unsigned now = __atomic_add_fetch(&seq, 1, __ATOMIC_SEQ_CST);
		/* One is woken, the others are moved and woken there; who has not slept yet sees the word. */
		futex(&seq, FUTEX_CMP_REQUEUE_PRIVATE, 1, THREADS, &other, now);
		futex(&other, FUTEX_WAKE_PRIVATE, THREADS, 0, 0, 0);
		/* Somebody may have come to the first word again in the meantime, or found no place to move from. */
		futex(&seq, FUTEX_WAKE_PRIVATE, THREADS, 0, 0, 0);
	}
	for (int i = 0; i < THREADS; i++)
		must(-pthread_join(t[i], 0));
	__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
	must(-pthread_join(o, 0));
	for (int i = 0; i < THREADS; i++)
		N(turns[i]);
	R(futex(&seq, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, &other, seq + 1));
	R(futex(&seq, FUTEX_WAIT_PRIVATE, seq + 1, 0, 0, 0));
	/* The operation is done to the second word even where nobody waits, and not at all where that cannot be. */
	unsigned word = 5;
	R(futex(&seq, FUTEX_WAKE_OP_PRIVATE, 1, 1, &word, FUTEX_OP(FUTEX_OP_ADD, 7, FUTEX_OP_CMP_EQ, 5)));
	N(word);
	R(futex(&seq, FUTEX_WAKE_OP_PRIVATE, 1, 1, (unsigned *)8, FUTEX_OP(FUTEX_OP_ADD, 7, FUTEX_OP_CMP_EQ, 5)));
	R(futex(&seq, FUTEX_WAKE_OP_PRIVATE, 1, 1, &word, 0x60000000));
	N(word);
	return t_done();
}
