/* What a ring that the kernel looks into makes for a program that does something else: chains, files that get numbers or slots, its mappings, what waits,
   and is cancelled; and the end of the thread that made the ring. */
/* host: io_uring */
/* not: musl */
/* linux: 6.8 */
#include "ring.h"
static struct ring r;

static void submit(struct ring *r)
{
	__atomic_store_n(r->sq_tail, r->tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(r->sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP)
		must(r_enter(r->fd, 1, 0, IORING_ENTER_SQ_WAKEUP));
}

/* Submits, and calls nothing until so many completions are there. */
static void spin(struct ring *r, const char *what, unsigned n)
{
	submit(r);
	while (ring_ready(r) < n)
		;
	ring_show(r, what, n);
}

static struct ring made;
static int other;

static void *maker(void *fd)
{
	made.p.flags = IORING_SETUP_SQPOLL, made.p.sq_thread_idle = 2000;
	made.fd = must(r_setup(8, &made.p));
	must(ring_map(&made));
	ring_sqe(&made, IORING_OP_WRITE, other, "first", 5, 0, 1);
	spin(&made, "maker", 1);
	return 0;
}

int main(void)
{
	char a[64] = "", b[64] = "";
	int f = must(open("file", O_RDWR | O_CREAT, 0600)), none = -1, p[2];
	must(pipe(p));
	memset(&r, 0, sizeof r);
	r.p.flags = IORING_SETUP_SQPOLL, r.p.sq_thread_idle = 2000;
	r.fd = must(r_setup(16, &r.p));
	must(ring_map(&r));
	/* One after the other, and what is behind a failure. */
	ring_sqe(&r, IORING_OP_WRITE, f, "linked", 6, 0, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_READ, f, a, 6, 0, 2)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_READ, 999, b, 6, 0, 3)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 4);
	spin(&r, "chain", 4);
	S(a);
	/* Many at once, with one that waits for all before it. */
	for (int i = 0; i < 15; i++)
		ring_sqe(&r, IORING_OP_READ, f, i % 2 ? a : b, 6, 0, i)->flags = i == 7 ? IOSQE_IO_DRAIN : 0;
	spin(&r, "many", 15);
	/* A file that gets a number of the program's, one in a slot, and a number for that. */
	ring_sqe(&r, IORING_OP_OPENAT, AT_FDCWD, "file", 0, 0, 1);
	submit(&r);
	while (!ring_ready(&r))
		;
	struct io_uring_cqe c;
	ring_take(&r, &c);
	T(c.res > 0 && pread(c.res, b, 6, 0) == 6);
	R(close(c.res));
	R(r_register(r.fd, IORING_REGISTER_FILES, &none, 1));
	ring_sqe(&r, IORING_OP_OPENAT, AT_FDCWD, "file", 0, 0, 2)->file_index = 1;
	spin(&r, "into a slot", 1);
	memset(b, 0, sizeof b);
	ring_sqe(&r, IORING_OP_READ, 0, b, 6, 0, 3)->flags = IOSQE_FIXED_FILE;
	spin(&r, "from a slot", 1);
	S(b);
	ring_sqe(&r, 54 /* IORING_OP_FIXED_FD_INSTALL */, 0, 0, 0, 0, 4)->flags = IOSQE_FIXED_FILE;
	submit(&r);
	while (!ring_ready(&r))
		;
	ring_take(&r, &c);
	T(c.res > 0 && pread(c.res, b, 6, 0) == 6 && fcntl(c.res, F_GETFD) == FD_CLOEXEC);
	R(close(c.res));
	/* Mappings are the program's. */
	char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(m, 'x', 8192);
	ring_sqe(&r, IORING_OP_MADVISE, -1, 0, 4096, 0, 5)->addr = (uintptr_t)m;
	r.sqes[(r.tail - 1) & 15].fadvise_advice = MADV_DONTNEED;
	spin(&r, "madvise", 1);
	T(m[0] == 0 && m[4096] == 'x');
	/* Into memory that nobody has touched, and none. */
	char *fresh = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ring_sqe(&r, IORING_OP_READ, f, fresh + 4094, 6, 0, 6);
	spin(&r, "untouched", 1);
	T(!memcmp(fresh + 4094, "linked", 6));
	ring_sqe(&r, IORING_OP_READ, f, (void *)16, 6, 0, 7);
	spin(&r, "nowhere", 1);
	/* What waits and is cancelled, what is over in time, and what is not. */
	ring_sqe(&r, IORING_OP_READ, p[0], a, 1, -1, 8);
	submit(&r);
	ring_sqe(&r, IORING_OP_ASYNC_CANCEL, -1, (void *)8, 0, 0, 9);
	spin(&r, "cancelled", 2);
	struct __kernel_timespec t = {0, 5000000};
	ring_sqe(&r, IORING_OP_READ, p[0], a, 1, -1, 10)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_LINK_TIMEOUT, -1, &t, 1, 0, 11);
	spin(&r, "late", 2);
	must(write(p[1], "x", 1));
	ring_sqe(&r, IORING_OP_READ, p[0], a, 1, -1, 12)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_LINK_TIMEOUT, -1, &t, 1, 0, 13);
	spin(&r, "in time", 2);
	ring_sqe(&r, IORING_OP_TIMEOUT, -1, &t, 1, 0, 14);
	spin(&r, "timeout", 1);
	/* Woken by another process, and by the program itself. */
	ring_sqe(&r, IORING_OP_READ, p[0], a, 1, -1, 15);
	submit(&r);
	CHILD("child", must(write(p[1], "y", 1)));
	spin(&r, "from a child", 1);
	T(a[0] == 'y');
	ring_close(&r);
	/* Its maker has ended, and the ring goes on. */
	other = f;
	pthread_t thread;
	pthread_create(&thread, 0, maker, 0);
	pthread_join(thread, 0);
	ring_sqe(&made, IORING_OP_READ, f, b, 5, 0, 2);
	spin(&made, "without its maker", 1);
	b[5] = 0;
	S(b);
	ring_close(&made);
	/* What is under way when the ring is closed ends with it. */
	ring_open(&r, 8, IORING_SETUP_SQPOLL, 0);
	ring_sqe(&r, IORING_OP_READ, p[0], a, 1, -1, 1);
	submit(&r);
	t_ms(20);
	ring_close(&r);
	t_ms(20);
	must(write(p[1], "z", 1));
	T(read(p[0], a, 1) == 1 && a[0] == 'z');
	unlink("file");
	return t_failed;
}
