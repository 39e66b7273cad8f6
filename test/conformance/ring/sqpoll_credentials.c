/* Whose rights count for what is taken from a ring that the kernel looks into: those that its maker had when it made the ring. */
/* host: io_uring */
/* not: musl */
#include "ring.h"

static void submit(struct ring *r)
{
	__atomic_store_n(r->sq_tail, r->tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(r->sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP)
		must(r_enter(r->fd, 1, 0, IORING_ENTER_SQ_WAKEUP));
}

static void opens(struct ring *r, const char *what, int personality)
{
	struct io_uring_cqe c;
	ring_sqe(r, IORING_OP_OPENAT, AT_FDCWD, "secret", 0, 0, 1)->personality = personality;
	submit(r);
	while (!ring_ready(r))
		usleep(1000);
	ring_take(r, &c);
	say("%s: %s\n", what, c.res < 0 ? t_errno(-c.res) : "opened");
	if (c.res >= 0)
		must(close(c.res));
}

static void become(int user)
{
	must(syscall(SYS_setresuid, -1, user, -1));
}

int main(void)
{
	struct ring roots, theirs, plain;
	close(must(open("secret", O_RDWR | O_CREAT, 0600)));
	if (getuid()) {
		/* Nobody else can be become: the two lines below are root's to see. */
		return t_done();
	}
	must(ring_open(&roots, 4, IORING_SETUP_SQPOLL, 0));
	must(ring_open(&plain, 4, 0, 0));
	int kept = must(r_register(roots.fd, IORING_REGISTER_PERSONALITY, 0, 0));
	opens(&roots, "root", 0);
	become(65534);
	opens(&roots, "root's ring", 0);
	opens(&roots, "root's ring, as root by name", kept);
	int other = must(r_register(roots.fd, IORING_REGISTER_PERSONALITY, 0, 0));
	opens(&roots, "root's ring, as another by name", other);
	must(ring_open(&theirs, 4, IORING_SETUP_SQPOLL, 0));
	opens(&theirs, "another's ring", 0);
	/* Where the program submits, what it has then counts. */
	struct io_uring_cqe c;
	ring_sqe(&plain, IORING_OP_OPENAT, AT_FDCWD, "secret", 0, 0, 1);
	__atomic_store_n(plain.sq_tail, plain.tail, __ATOMIC_RELEASE);
	R(r_enter(plain.fd, 1, 1, IORING_ENTER_GETEVENTS));
	ring_take(&plain, &c);
	say("%s\n", t_errno(-c.res));
	become(0);
	opens(&theirs, "another's ring, of root now", 0);
	return t_done();
}
