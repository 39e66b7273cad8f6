/* A lock with priority inheritance whose owner, not the first of its threads, runs another program: the next waiter gets it. */
#include "t.h"
#include <linux/futex.h>
static uint32_t *w;
static long fx(int op, void *t) { return syscall(SYS_futex, w, op, 0, t, 0, 0); }
static void *owner(void *p)
{
	must(fx(FUTEX_LOCK_PI, 0));
	__atomic_store_n(&w[1], 1, __ATOMIC_SEQ_CST);
	while (!(__atomic_load_n(w, __ATOMIC_SEQ_CST) & FUTEX_WAITERS))
		t_ms(1);
	t_ms(20); /* so that it most likely waits */
	execl("/bin/sleep", "sleep", "20", NULL);
	_exit(99);
}
int main(void)
{
	w = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t p = must(fork());
	if (!p) {
		pthread_t t;
		must(pthread_create(&t, 0, owner, 0));
		pthread_join(t, 0);
		_exit(98);
	}
	while (!__atomic_load_n(&w[1], __ATOMIC_SEQ_CST))
		t_ms(1);
	struct timespec end;
	must(clock_gettime(CLOCK_REALTIME, &end));
	end.tv_sec += 10;
	R(fx(FUTEX_LOCK_PI, &end));
	T((*w & FUTEX_TID_MASK) == (uint32_t)t_gettid());
	kill(p, SIGKILL);
	must(waitpid(p, 0, 0));
	return t_failed;
}
