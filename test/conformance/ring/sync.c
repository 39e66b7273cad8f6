/* Writing back by a ring: all of it ends, chains and drains keep their order, and what is under way when its thread or its program ends holds up neither. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
static struct ring r;
static int f;

static void many(int n)
{
	for (int i = 0; i < n; i++) {
		struct io_uring_sqe *s = ring_sqe(&r, i % 3 == 2 ? IORING_OP_SYNC_FILE_RANGE : IORING_OP_FSYNC, f, 0, 0, 0, i);
		if (i % 3 == 1)
			s->fsync_flags = IORING_FSYNC_DATASYNC;
		if (i % 3 == 2)
			s->sync_range_flags = SYNC_FILE_RANGE_WRITE;
	}
}

/* Completions in the order in which they come. */
static void in_order(const char *what, int n)
{
	struct io_uring_cqe c;
	while (n--) {
		while (!ring_take(&r, &c))
			must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		ring_say(what, &c, 0);
	}
}

/* How many come, whether they were done or cancelled. */
static void count(const char *what, int n)
{
	struct io_uring_cqe c;
	int i = 0;
	while (i < n) {
		while (!ring_take(&r, &c))
			must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		if (c.res && c.res != -ECANCELED)
			ring_say(what, &c, 0);
		i++;
	}
	say("%s: %d\n", what, i);
}

static void *submits(void *arg)
{
	many(6);
	must(ring_submit(&r, 0));
	return arg;
}

int main(void)
{
	char b[64] = "";
	int p[2];
	f = must(open("synced", O_RDWR | O_CREAT | O_TRUNC, 0600));
	must(pipe(p));
	must(write(f, "some data", 9));
	R(fsync(f));
	R(fdatasync(f));
	R(syncfs(p[0]));
	R(sync_file_range(f, 0, 0, SYNC_FILE_RANGE_WRITE));
	R(fsync(p[0]));
	must(ring_open(&r, 16, 0, 0));
	for (int i = 0; i < 4; i++) {
		many(12);
		R(ring_submit(&r, 0));
		ring_show(&r, "many", 12);
	}
	ring_one(&r, "a pipe", IORING_OP_FSYNC, p[0], 0, 0, 0);
	ring_one(&r, "nothing", IORING_OP_FSYNC, 999, 0, 0, 0);
	ring_one(&r, "flags", IORING_OP_SYNC_FILE_RANGE, f, 0, 0, -1);
	/* A chain. */
	ring_sqe(&r, IORING_OP_WRITE, f, "SOME", 4, 0, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_FSYNC, f, 0, 0, 0, 2)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_READ, f, b, 9, 0, 3);
	R(ring_submit(&r, 0));
	in_order("chain", 3);
	S(b);
	ring_sqe(&r, IORING_OP_FSYNC, p[0], 0, 0, 0, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_FSYNC, f, 0, 0, 0, 2);
	R(ring_submit(&r, 0));
	in_order("chain with an error", 2);
	ring_sqe(&r, IORING_OP_SYNC_FILE_RANGE, p[0], 0, 0, 0, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_FSYNC, f, 0, 0, 0, 2);
	R(ring_submit(&r, 0));
	in_order("chain with another", 2);
	ring_sqe(&r, IORING_OP_FSYNC, 999, 0, 0, 0, 1)->flags = IOSQE_IO_LINK;
	ring_sqe(&r, IORING_OP_FSYNC, f, 0, 0, 0, 2);
	R(ring_submit(&r, 0));
	in_order("broken chain", 2);
	/* What waits for all before it. */
	many(6);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 9)->flags = IOSQE_IO_DRAIN;
	R(ring_submit(&r, 0));
	struct io_uring_cqe c;
	for (int i = 0; i < 7; i++) {
		while (!ring_take(&r, &c))
			must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		T(c.res == 0 && (c.user_data == 9) == (i == 6));
	}
	/* Cancelled, or done before that. */
	many(6);
	R(ring_submit(&r, 0));
	for (int i = 0; i < 6; i++)
		ring_sqe(&r, IORING_OP_ASYNC_CANCEL, -1, (void *)(uintptr_t)i, 0, 0, 100)->flags = IOSQE_CQE_SKIP_SUCCESS;
	must(ring_submit(&r, 0));
	for (int i = 0; i < 6;) {
		while (!ring_take(&r, &c))
			must(r_enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		i += c.user_data != 100;
	}
	/* A cancellation that came too late, of which there may be any number. */
	while (ring_take(&r, &c))
		if (c.user_data != 100)
			ring_say("another", &c, 0);
	/* A thread ends. */
	pthread_t t;
	pthread_create(&t, 0, submits, 0);
	pthread_join(t, 0);
	count("of a thread that has ended", 6);
	R(fsync(f));
	/* A program ends. */
	CHILD("child",
		must(ring_open(&r, 16, 0, 0));
		many(12);
		must(ring_submit(&r, 0));
		_exit(0));
	return 0;
}
