/* membarrier: registration, its way through fork, refusals, and that the barrier is one. */
#include "t.h"
#include <stdatomic.h>

enum {
	QUERY = 0, GLOBAL = 1, PRIVATE = 8, REGISTER_PRIVATE = 16, SYNC = 32, REGISTER_SYNC = 64,
};
#define ROUNDS 2000

static long barrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/* Dekker's test: each side stores its own word and loads the other's; only the second side pays for order. */
static atomic_int mine, theirs, saw, turn, met;

/* Looks for a while, then lets others run: there may be one core. */
static void await(atomic_int *word, int value)
{
	for (int looks = 0; atomic_load_explicit(word, memory_order_acquire) != value; looks++)
		if (looks > 1000)
			sched_yield();
}

static void *quick(void *unused)
{
	for (int i = 1; i <= ROUNDS; i++) {
		await(&turn, i);
		atomic_store_explicit(&mine, i, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		atomic_store_explicit(&saw, atomic_load_explicit(&theirs, memory_order_relaxed) == i, memory_order_relaxed);
		atomic_store_explicit(&met, i, memory_order_release);
	}
	return unused;
}

int main(void)
{
	long known = barrier(QUERY);
	T((known & (PRIVATE | REGISTER_PRIVATE)) == (PRIVATE | REGISTER_PRIVATE));
	R(barrier(PRIVATE));
	R(barrier(SYNC));
	R(barrier(PRIVATE | GLOBAL));
	R(barrier(1 << 20));
	R(syscall(SYS_membarrier, PRIVATE, 2, 0));
	R(barrier(REGISTER_PRIVATE));
	R(barrier(REGISTER_PRIVATE));
	R(barrier(PRIVATE));
	if (known & SYNC) {
		T(barrier(SYNC) == -1 && errno == EPERM);
		T(barrier(REGISTER_SYNC) == 0);
		T(barrier(SYNC) == 0);
	}
	pid_t child = must(fork());
	if (!child) {
		R(barrier(PRIVATE));
		_exit(0);
	}
	t_reap("forked", child);

	pthread_t thread;
	T(pthread_create(&thread, 0, quick, 0) == 0);
	int missed = 0;
	for (int i = 1; i <= ROUNDS; i++) {
		atomic_store_explicit(&turn, i, memory_order_release);
		atomic_store_explicit(&theirs, i, memory_order_relaxed);
		barrier(PRIVATE);
		int seen = atomic_load_explicit(&mine, memory_order_relaxed) == i;
		await(&met, i);
		missed += !seen && !atomic_load_explicit(&saw, memory_order_relaxed);
	}
	pthread_join(thread, 0);
	say("missed %d\n", missed);
	return t_done();
}
