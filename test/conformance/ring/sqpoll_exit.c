/* A ring that the kernel looks into (IORING_SETUP_SQPOLL), whose maker ends while another thread submits: the process has it still, and it is served. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
/* seconds: 120 */
#include "ring.h"
#include <pthread.h>
#define CHILDREN 12
#define NOPS 200
static struct ring r;
static volatile int begun;
static void *submit(void *arg)
{
	struct io_uring_cqe c;
	int done = 0, made = 0;
	while (done < NOPS) {
		if (made < NOPS && made - done < 8) {
			ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, made++);
			__atomic_store_n(r.sq_tail, r.tail, __ATOMIC_SEQ_CST);
		}
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(r.sq_flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
			r_enter(r.fd, 0, 0, IORING_ENTER_SQ_WAKEUP);
		while (ring_take(&r, &c))
			done++;
		if (done > NOPS / 10)
			begun = 1;
	}
	_exit(0);
	return arg;
}
int main(void)
{
	int right = 0;
	for (int i = 0; i < CHILDREN; i++) {
		int status = 0;
		pid_t p = must(fork());
		if (!p) {
			pthread_t t;
			must(ring_open(&r, 16, IORING_SETUP_SQPOLL, 0));
			pthread_create(&t, 0, submit, 0);
			while (!begun)
				sched_yield();
			syscall(SYS_exit, 0);
		}
		right += waitpid(p, &status, 0) == p && status == 0;
	}
	say("%d of %d\n", right, CHILDREN);
	return t_done();
}
