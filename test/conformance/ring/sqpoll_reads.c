/* Many reads at once in a ring that the kernel looks into by itself: into memory that is there, partly there or not writable, with other operations, chains and drains in between. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
enum { PAGE = 4096, SIZE = 32 * PAGE };
static struct ring r;
static unsigned char *want, *into;
static int f;

/* Submits all at once. */
static void submit(void)
{
	unsigned n = r.tail - *r.sq_tail;
	__atomic_store_n(r.sq_tail, r.tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(r.sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP)
		must(r_enter(r.fd, n, 0, IORING_ENTER_SQ_WAKEUP));
}

/* How many bytes from a place on are the file's from an offset on. */
static int same(const unsigned char *at, size_t offset, int most)
{
	int n = 0;
	while (n < most && at[n] == want[offset + n])
		n++;
	return n;
}

static void all(void)
{
	struct io_uring_cqe c;
	int whole = 0, right = 0;
	for (int round = 0; round < 20; round++) {
		memset(into, 0, SIZE);
		for (int n = 0; n < 64; n++)
			ring_sqe(&r, IORING_OP_READ, f, into + n * 2000, 2000, n * 1999 + round, n);
		submit();
		for (int n = 0; n < 64;) {
			if (!ring_take(&r, &c)) {
				r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS);
				continue;
			}
			whole += c.res == 2000;
			right += same(into + c.user_data * 2000, c.user_data * 1999 + round, 2000) == 2000;
			n++;
		}
	}
	N(whole);
	N(right);
}

int main(void)
{
	char b[8] = "";
	int p[2], out = must(open("out", O_RDWR | O_CREAT, 0600));
	must(pipe(p));
	f = must(open("file", O_RDWR | O_CREAT, 0600));
	want = malloc(SIZE);
	for (int n = 0; n < SIZE; n++)
		want[n] = n * 7 + n / 251;
	must(write(f, want, SIZE));
	into = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(&r, 0, sizeof r);
	r.p.flags = IORING_SETUP_SQPOLL, r.p.sq_thread_idle = 50;
	r.fd = must(r_setup(64, &r.p));
	must(ring_map(&r));
	all();
	/* Holes: none of it, the second half, and memory that can be read only, between others. */
	memset(into, 0, SIZE);
	must(mprotect(into + PAGE, PAGE, PROT_NONE));
	must(mprotect(into + 4 * PAGE, PAGE, PROT_READ));
	ring_sqe(&r, IORING_OP_READ, f, into, PAGE, 0, 0);
	ring_sqe(&r, IORING_OP_READ, f, into + PAGE, PAGE, 0, 1);
	ring_sqe(&r, IORING_OP_READ, f, into + 2 * PAGE, PAGE, PAGE, 2);
	ring_sqe(&r, IORING_OP_READ, f, into + 3 * PAGE, 2 * PAGE, 5, 3);
	ring_sqe(&r, IORING_OP_READ, f, 0, PAGE, 0, 4);
	ring_sqe(&r, IORING_OP_READ, f, into + 5 * PAGE, PAGE, 3 * PAGE, 5);
	ring_sqe(&r, IORING_OP_READ, f, (void *)-PAGE, PAGE, 0, 6);
	ring_sqe(&r, IORING_OP_READ, f, into + 4 * PAGE, 1, 0, 7);
	ring_sqe(&r, IORING_OP_READ, f, into + 6 * PAGE, 7, 1, 8);
	submit();
	ring_show(&r, "holes", 9);
	must(mprotect(into, SIZE, PROT_READ | PROT_WRITE));
	N(same(into, 0, PAGE));
	N(same(into + 2 * PAGE, PAGE, PAGE));
	N(same(into + 3 * PAGE, 5, PAGE));
	N(into[PAGE] | into[4 * PAGE]);
	N(same(into + 5 * PAGE, 3 * PAGE, PAGE));
	N(same(into + 6 * PAGE, 1, 7));
	N(into[6 * PAGE + 7]);
	/* What cannot be read, the end of the file and beyond it, no bytes, a position, and operations of other kinds. */
	memset(into, 0, SIZE);
	must(lseek(f, 100, SEEK_SET));
	ring_sqe(&r, IORING_OP_READ, f, into, 10, 0, 0);
	ring_sqe(&r, IORING_OP_READ, -1, into, 10, 0, 1);
	ring_sqe(&r, IORING_OP_READ, f, into + 100, 10, SIZE - 4, 2);
	ring_sqe(&r, IORING_OP_READ, f, into + 200, 10, SIZE, 3);
	ring_sqe(&r, IORING_OP_READ, f, into + 300, 0, 0, 4);
	ring_sqe(&r, IORING_OP_READ, f, into + 400, 10, -1, 5);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 6);
	ring_sqe(&r, IORING_OP_READ, f, into + 500, 10, 20, 7);
	ring_sqe(&r, IORING_OP_READ, f, into + 600, 10, -2, 8);
	ring_sqe(&r, IORING_OP_READ, p[1], into + 700, 10, 0, 9);
	ring_sqe(&r, IORING_OP_READ, out, into + 700, 10, 0, 10);
	submit();
	ring_show(&r, "kinds", 11);
	N(same(into, 0, 10));
	N(same(into + 100, SIZE - 4, 4));
	N(same(into + 400, 100, 10));
	N(same(into + 500, 20, 10));
	N((int)lseek(f, 0, SEEK_CUR));
	/* A chain, whose second writes what its first has read; and what drains. */
	ring_sqe(&r, IORING_OP_READ, f, into + 800, 10, 30, 0);
	ring_sqe(&r, IORING_OP_READ, f, into + 900, 10, 40, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_WRITE, out, into + 900, 10, 0, 2);
	ring_sqe(&r, IORING_OP_READ, f, into + 800, 10, 50, 3)->flags = IOSQE_IO_DRAIN;
	ring_sqe(&r, IORING_OP_WRITE, out, into + 800, 10, 10, 4)->flags = IOSQE_IO_DRAIN;
	ring_sqe(&r, IORING_OP_READ, f, into + 1000, 10, SIZE - 5, 5)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_WRITE, out, into, 10, 20, 6);
	submit();
	ring_show(&r, "order", 7);
	must(pread(out, into + 1100, 30, 0));
	N(same(into + 1100, 40, 10));
	N(same(into + 1110, 50, 10));
	N((int)lseek(out, 0, SEEK_END));
	/* Registered memory, and memory beyond it. */
	struct iovec v = { into, 2 * PAGE };
	R(r_register(r.fd, IORING_REGISTER_BUFFERS, &v, 1));
	ring_sqe(&r, IORING_OP_READ_FIXED, f, into, PAGE, 60, 0);
	ring_sqe(&r, IORING_OP_READ_FIXED, f, into + PAGE, 2 * PAGE, 0, 1);
	ring_sqe(&r, IORING_OP_READ_FIXED, f, into + PAGE, PAGE, 70, 2);
	ring_sqe(&r, IORING_OP_READ_FIXED, f, into, PAGE, 0, 3)->buf_index = 1;
	submit();
	ring_show(&r, "registered", 4);
	N(same(into, 60, PAGE));
	N(same(into + PAGE, 70, PAGE));
	must(write(p[1], "abc", 3));
	ring_sqe(&r, IORING_OP_READ, f, into, 10, 0, 0);
	ring_sqe(&r, IORING_OP_READ, p[0], b, 3, 0, 1);
	submit();
	ring_show(&r, "with a pipe", 2);
	S(b);
	ring_close(&r);
	unlink("file");
	unlink("out");
	return t_failed;
}
