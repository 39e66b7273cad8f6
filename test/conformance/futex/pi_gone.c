/* FUTEX_CMP_REQUEUE_PI to a lock whose word names a thread that is no more: nobody is moved there, where nobody would ever be woken. */
#include "t.h"
#include <linux/futex.h>
static uint32_t f, l;
static long result, why;
static volatile pid_t waiting;
static void *waits(void *a)
{
	struct timespec end;
	must(clock_gettime(CLOCK_MONOTONIC, &end));
	end.tv_sec += 20;
	waiting = t_gettid();
	result = syscall(SYS_futex, &f, FUTEX_WAIT_REQUEUE_PI | FUTEX_PRIVATE_FLAG, 0, &end, &l, 0);
	why = errno;
	return a;
}
static long requeue(void) { return syscall(SYS_futex, &f, FUTEX_CMP_REQUEUE_PI | FUTEX_PRIVATE_FLAG, 1, (void *)1, &l, 0); }
int main(void)
{
	pid_t p = must(fork());
	if (!p)
		_exit(0);
	must(waitpid(p, 0, 0));
	l = p;
	pthread_t t;
	must(pthread_create(&t, 0, waits, 0));
	while (!waiting)
		t_ms(1);
	t_asleep(getpid(), waiting);
	R(requeue());
	/* It waits where it did, and gets the lock when that is free. */
	l = 0;
	R(requeue());
	pthread_join(t, 0);
	N(result);
	T((l & FUTEX_TID_MASK) == (uint32_t)waiting);
	return t_failed;
}
