/* A ring that is looked into for a program: once that runs another, who has the ring still gets nothing made by it. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
static struct ring r;

int main(int argc, char **argv)
{
	int begun[2], over[2];
	char go;
	if (argc > 2) {
		/* The other program. */
		must(write(atoi(argv[1]), "x", 1));
		must(read(atoi(argv[2]), &go, 1));
		return 0;
	}
	must(pipe(begun));
	must(pipe(over));
	pid_t maker = fork();
	if (maker == 0) {
		must(ring_open(&r, 8, IORING_SETUP_SQPOLL, 0));
		pid_t other = fork();
		if (other) {
			char a[12], b[12];
			sprintf(a, "%d", begun[1]), sprintf(b, "%d", over[0]);
			execl("/proc/self/exe", argv[0], a, b, (char *)0);
			_exit(1);
		}
		must(read(begun[0], &go, 1));
		/* Natively its looker ends a moment later. */
		for (int n = 0; n < 1000 && !(__atomic_load_n(r.sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP); n++)
			usleep(1000);
		T(*r.sq_flags & IORING_SQ_NEED_WAKEUP);
		ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 7);
		__atomic_store_n(r.sq_tail, r.tail, __ATOMIC_RELEASE);
		R(r_enter(r.fd, 1, 0, IORING_ENTER_SQ_WAKEUP));
		usleep(20000);
		N(ring_ready(&r));
		must(write(over[1], "x", 1));
		fflush(0);
		_exit(0);
	}
	t_reap("the maker", maker);
	return t_done();
}
