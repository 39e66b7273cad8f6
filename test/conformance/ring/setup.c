/* io_uring_setup: sizes, flags that exclude each other, features, what is mapped at which offset, and how long a ring lives. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"

static long with(unsigned entries, unsigned flags, unsigned cq)
{
	struct io_uring_params p = {.flags = flags, .cq_entries = cq};
	long fd = r_setup(entries, &p);
	if (fd < 0)
		return -1;
	say("  %u and %u entries\n", p.sq_entries, p.cq_entries);
	close(fd);
	return 0;
}

int main(void)
{
	struct ring r;
	struct io_uring_params p;
	R(with(1, 0, 0));
	R(with(5, 0, 0));
	R(with(32768, 0, 0));
	R(with(0, 0, 0));
	R(with(32769, 0, 0));
	R(with(40000, IORING_SETUP_CLAMP, 0));
	R(with(4, IORING_SETUP_CQSIZE, 100));
	R(with(4, IORING_SETUP_CQSIZE, 0));
	R(with(16, IORING_SETUP_CQSIZE, 8));
	R(with(16, IORING_SETUP_CQSIZE, 100000));
	R(with(16, IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP, 100000));
	R(with(4, 1u << 31, 0));
	R(with(4, IORING_SETUP_SQ_AFF, 0));
	R(with(4, IORING_SETUP_TASKRUN_FLAG, 0));
	R(with(4, IORING_SETUP_DEFER_TASKRUN, 0));
	R(with(4, IORING_SETUP_SQPOLL | IORING_SETUP_COOP_TASKRUN, 0));
	R(with(4, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0));
	R(with(4, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0));
	R(with(4, IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SQE128 | IORING_SETUP_CQE32, 0));
	memset(&p, 0, sizeof p);
	p.resv[1] = 1;
	R(r_setup(4, &p));
	R(r_setup(4, (void *)8));

	must(ring_open(&r, 8, 0, 0));
	unsigned want = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS | IORING_FEAT_CUR_PERSONALITY |
		IORING_FEAT_FAST_POLL | IORING_FEAT_POLL_32BITS | IORING_FEAT_EXT_ARG | IORING_FEAT_RSRC_TAGS | IORING_FEAT_CQE_SKIP;
	T((r.p.features & want) == want);
	T(fcntl(r.fd, F_GETFD) == FD_CLOEXEC);
	T((fcntl(r.fd, F_GETFL) & O_ACCMODE) == O_RDWR);
	unsigned *m = r.rings;
	T(m[r.p.sq_off.ring_mask / 4] == 7 && m[r.p.sq_off.ring_entries / 4] == 8);
	T(m[r.p.cq_off.ring_mask / 4] == 15 && m[r.p.cq_off.ring_entries / 4] == 16);
	T(*r.sq_head == 0 && *r.sq_tail == 0 && *r.cq_head == 0 && *r.cq_tail == 0 && *r.sq_flags == 0);
	char link[64] = "", name[64];
	snprintf(name, sizeof name, "/proc/self/fd/%d", r.fd);
	must(readlink(name, link, sizeof link - 1));
	S(link);
	/* The second offset shows the same memory. */
	unsigned *c = mmap(0, r.rings_len, PROT_READ, MAP_SHARED, r.fd, IORING_OFF_CQ_RING);
	T(c != MAP_FAILED && c[r.p.cq_off.ring_mask / 4] == 15);
	char b;
	R(read(r.fd, &b, 1));
	R(write(r.fd, &b, 1));
	R(lseek(r.fd, 0, SEEK_SET));
	struct pollfd pf = {r.fd, POLLIN | POLLOUT, 0};
	R(poll(&pf, 1, 0));
	T(pf.revents == POLLOUT);
	ring_one(&r, "nop", IORING_OP_NOP, -1, 0, 0, 0);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 2);
	R(ring_submit(&r, 0));
	R(poll(&pf, 1, 0));
	T(pf.revents == (POLLIN | POLLOUT));
	ring_show(&r, "nop", 1);
	/* Mapped, it outlives its descriptor; a copy of the descriptor goes on. */
	int copy = must(dup(r.fd));
	must(close(r.fd));
	r.fd = copy;
	ring_one(&r, "by the copy", IORING_OP_NOP, -1, 0, 0, 0);
	/* Unmapped, the ring takes submissions as they were; nobody sees what comes of them. */
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 3);
	__atomic_store_n(r.sq_tail, r.tail, __ATOMIC_RELEASE);
	must(munmap(r.rings, r.rings_len));
	must(munmap(r.entries, r.entries_len));
	munmap(c, r.rings_len);
	R(r_enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	must(ring_map(&r));
	T(*r.sq_head == *r.sq_tail);
	ring_show(&r, "mapped again", 1);
	ring_close(&r);
	R(r_enter(copy, 0, 0, 0));
	R(r_enter(1, 0, 0, 0));
	R(r_register(1, IORING_REGISTER_ENABLE_RINGS, 0, 0));
	/* Polled i/o is for few files, and for few operations; /proc is of none. */
	if (ring_open(&r, 4, IORING_SETUP_IOPOLL, 0) == 0) {
		int f = must(open("/proc/self/stat", O_RDONLY));
		ring_one(&r, "polled", IORING_OP_READ, f, &b, 1, 0);
		ring_one(&r, "polled", IORING_OP_READ, 999, &b, 1, 0);
		ring_one(&r, "not polled", IORING_OP_FSYNC, f, 0, 0, 0);
		ring_one(&r, "nop", IORING_OP_NOP, -1, 0, 0, 0);
		ring_close(&r);
	}
	return t_failed;
}
