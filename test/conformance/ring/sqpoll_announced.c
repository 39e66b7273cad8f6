/* A ring that is looked into: what is in it is made in the memory of who made it, no matter who announces it. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
static struct ring r;

int main(void)
{
	int p[2];
	char *text = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	strcpy(text, "of the maker");
	must(pipe(p));
	r.p.sq_thread_idle = 1;
	r.p.flags = IORING_SETUP_SQPOLL;
	r.fd = must(r_setup(8, &r.p));
	must(ring_map(&r));
	pid_t other = fork();
	if (other == 0) {
		char got[17] = "";
		strcpy(text, "of another");
		while (!(__atomic_load_n(r.sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP))
			usleep(1000);
		ring_sqe(&r, IORING_OP_WRITE, p[1], text, 16, -1, 7);
		__atomic_store_n(r.sq_tail, r.tail, __ATOMIC_RELEASE);
		R(r_enter(r.fd, 1, 0, IORING_ENTER_SQ_WAKEUP));
		must(read(p[0], got, 16));
		S(got);
		fflush(0);
		_exit(0);
	}
	t_reap("another", other);
	ring_show(&r, "made", 1);
	return t_done();
}
