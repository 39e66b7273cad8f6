/* What tests of io_uring(7) share: a ring by raw calls, and completions printed by name. */
#include "../t.h"
#include <linux/io_uring.h>
#include <linux/time_types.h>
#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425
#define __NR_io_uring_enter 426
#define __NR_io_uring_register 427
#endif
#define r_setup(n, p) syscall(__NR_io_uring_setup, n, p)
#define r_enter(fd, n, min, flags) syscall(__NR_io_uring_enter, fd, n, min, flags, NULL, 0)
#define r_register(fd, op, arg, n) syscall(__NR_io_uring_register, fd, op, arg, n)

struct ring {
	int fd;
	struct io_uring_params p;
	unsigned *sq_head, *sq_tail, *sq_flags, *sq_dropped, *sq_array, *cq_head, *cq_tail, *cq_overflow, *cq_flags;
	struct io_uring_sqe *sqes;
	char *cqes;
	unsigned tail;
	void *rings, *entries;
	size_t rings_len, entries_len;
};

static int ring_map(struct ring *r)
{
	struct io_uring_params *p = &r->p;
	size_t cqe = p->flags & IORING_SETUP_CQE32 ? 32 : 16, sqe = p->flags & IORING_SETUP_SQE128 ? 128 : 64;
	size_t a = p->sq_off.array + p->sq_entries * 4, b = p->cq_off.cqes + p->cq_entries * cqe;
	r->rings_len = a > b ? a : b;
	r->entries_len = p->sq_entries * sqe;
	r->rings = mmap(0, r->rings_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	r->entries = mmap(0, r->entries_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	if (r->rings == MAP_FAILED || r->entries == MAP_FAILED)
		return -1;
	char *m = r->rings;
#define AT(f, o) r->f = (unsigned *)(m + p->o)
	AT(sq_head, sq_off.head), AT(sq_tail, sq_off.tail), AT(sq_flags, sq_off.flags), AT(sq_dropped, sq_off.dropped);
	AT(sq_array, sq_off.array), AT(cq_head, cq_off.head), AT(cq_tail, cq_off.tail), AT(cq_overflow, cq_off.overflow);
	AT(cq_flags, cq_off.flags);
#undef AT
	r->cqes = m + p->cq_off.cqes;
	r->sqes = r->entries;
	r->tail = 0;
	return 0;
}

static int ring_open(struct ring *r, unsigned entries, unsigned flags, unsigned completions)
{
	memset(r, 0, sizeof *r);
	r->p.flags = flags | (completions ? IORING_SETUP_CQSIZE : 0);
	r->p.cq_entries = completions;
	r->fd = r_setup(entries, &r->p);
	return r->fd < 0 ? -1 : ring_map(r);
}

static void ring_close(struct ring *r)
{
	munmap(r->rings, r->rings_len);
	munmap(r->entries, r->entries_len);
	close(r->fd);
}

/* The next submission; it is in the ring from ring_submit on. */
static struct io_uring_sqe *ring_sqe(struct ring *r, int op, int fd, const void *addr, unsigned len, uint64_t off, uint64_t data)
{
	unsigned at = r->tail & (r->p.sq_entries - 1);
	struct io_uring_sqe *s = (void *)((char *)r->sqes + at * (r->p.flags & IORING_SETUP_SQE128 ? 128 : 64));
	memset(s, 0, sizeof *s);
	s->opcode = op, s->fd = fd, s->addr = (uintptr_t)addr, s->len = len, s->off = off, s->user_data = data;
	r->sq_array[at] = at;
	r->tail++;
	return s;
}

/* Submits what has been added, and waits for so many completions. */
static long ring_submit(struct ring *r, unsigned wait)
{
	unsigned n = r->tail - *r->sq_tail;
	__atomic_store_n(r->sq_tail, r->tail, __ATOMIC_RELEASE);
	return r_enter(r->fd, n, wait, wait ? IORING_ENTER_GETEVENTS : 0);
}

static unsigned ring_ready(struct ring *r)
{
	return __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) - *r->cq_head;
}

/* Takes the next completion; 0 when there is none. */
static int ring_take(struct ring *r, struct io_uring_cqe *c)
{
	if (!ring_ready(r))
		return 0;
	size_t size = r->p.flags & IORING_SETUP_CQE32 ? 32 : 16;
	*c = *(struct io_uring_cqe *)(r->cqes + (*r->cq_head & (r->p.cq_entries - 1)) * size);
	__atomic_store_n(r->cq_head, *r->cq_head + 1, __ATOMIC_RELEASE);
	return 1;
}

static void ring_say(const char *what, const struct io_uring_cqe *c, int hide)
{
	const char *more = c->flags & IORING_CQE_F_MORE ? " and more" : "";
	if (c->res < 0)
		say("%s %llu: %s%s\n", what, (unsigned long long)c->user_data, t_errno(-c->res), more);
	else if (hide)
		say("%s %llu: ok%s\n", what, (unsigned long long)c->user_data, more);
	else
		say("%s %llu: %d%s\n", what, (unsigned long long)c->user_data, c->res, more);
}

/* Waits for n completions and prints them, in the order of their data. Returns the last one's result. */
static int ring_show(struct ring *r, const char *what, unsigned n)
{
	struct io_uring_cqe c[64];
	unsigned got = 0;
	int last = 0;
	while (got < n) {
		if (ring_take(r, &c[got])) {
			got++;
			continue;
		}
		if (r_enter(r->fd, 0, 1, IORING_ENTER_GETEVENTS) < 0 && errno != EINTR) {
			say("%s: waiting: %s\n", what, t_errno(errno));
			break;
		}
	}
	for (unsigned i = 0; i < got; i++)
		for (unsigned k = i + 1; k < got; k++)
			if (c[k].user_data < c[i].user_data) {
				struct io_uring_cqe t = c[i];
				c[i] = c[k], c[k] = t;
			}
	for (unsigned i = 0; i < got; i++)
		ring_say(what, &c[i], 0), last = c[i].res;
	return last;
}

/* Submits what has been added and prints that many completions. */
static int ring_do(struct ring *r, const char *what)
{
	unsigned n = r->tail - *r->sq_tail;
	long done = ring_submit(r, n);
	if (done != (long)n)
		say("%s: submitted %ld of %u %s\n", what, done, n, done < 0 ? t_errno(errno) : "");
	return ring_show(r, what, done < 0 ? 0 : done);
}

/* One operation and its result. */
static int ring_one(struct ring *r, const char *what, int op, int fd, const void *addr, unsigned len, uint64_t off)
{
	ring_sqe(r, op, fd, addr, len, off, 1);
	return ring_do(r, what);
}
