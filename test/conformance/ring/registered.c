/* io_uring_register: files, buffers, eventfds, identities, what there is, ring descriptors, rings that are not in use yet, restrictions. */
/* host: io_uring */
/* not: musl */
/* linux: 6.1 */
#include "ring.h"
#include <sys/eventfd.h>
static struct ring r;

static int fixed(const char *what, int op, int slot, const void *b, unsigned len, uint64_t off)
{
	ring_sqe(&r, op, slot, b, len, off, 1)->flags = IOSQE_FIXED_FILE;
	return ring_do(&r, what);
}

static long count(int e)
{
	eventfd_t v = 0;
	return eventfd_read(e, &v) ? -1 : (long)v;
}

int main(void)
{
	char b[4096] = "", *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int f = must(open("file", O_RDWR | O_CREAT, 0600)), p[2], e = must(eventfd(0, EFD_NONBLOCK));
	must(pipe(p));
	must(ring_open(&r, 16, 0, 0));
	/* Files. */
	int list[4] = {f, -1, p[0], p[1]};
	fixed("none", IORING_OP_READ, 0, b, 1, 0);
	R(r_register(r.fd, IORING_UNREGISTER_FILES, 0, 0));
	R(r_register(r.fd, IORING_REGISTER_FILES, list, 0));
	int wrong[2] = {f, 999};
	R(r_register(r.fd, IORING_REGISTER_FILES, wrong, 2));
	R(r_register(r.fd, IORING_REGISTER_FILES, (void *)8, 2));
	R(r_register(r.fd, IORING_REGISTER_FILES, list, 4));
	R(r_register(r.fd, IORING_REGISTER_FILES, list, 4));
	must(close(f));
	fixed("write", IORING_OP_WRITE, 0, "hello", 5, 0);
	fixed("read", IORING_OP_READ, 0, b, 64, 0);
	S(b);
	fixed("fsync", IORING_OP_FSYNC, 0, 0, 0, 0);
	fixed("empty", IORING_OP_READ, 1, b, 64, 0);
	fixed("outside", IORING_OP_READ, 4, b, 64, 0);
	fixed("negative", IORING_OP_READ, -1, b, 64, 0);
	fixed("openat", IORING_OP_OPENAT, 0, "x", 0, 0);
	f = must(open("file", O_RDWR));
	int one = f;
	struct io_uring_files_update u = {.offset = 1, .fds = (uintptr_t)&one};
	R(r_register(r.fd, IORING_REGISTER_FILES_UPDATE, &u, 1));
	fixed("updated", IORING_OP_READ, 1, b, 64, 0);
	u.offset = 4;
	R(r_register(r.fd, IORING_REGISTER_FILES_UPDATE, &u, 1));
	one = -1;
	ring_sqe(&r, IORING_OP_FILES_UPDATE, -1, &one, 1, 1, 1);
	ring_do(&r, "files_update");
	fixed("gone", IORING_OP_READ, 1, b, 64, 0);
	/* Opened into a slot, closed there. */
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_OPENAT, AT_FDCWD, "file", 0, 0, 1);
	s->file_index = 2;
	ring_do(&r, "into slot 1");
	fixed("there", IORING_OP_READ, 1, b, 64, 0);
	s = ring_sqe(&r, IORING_OP_OPENAT, AT_FDCWD, "file", 0, 0, 1);
	s->file_index = IORING_FILE_INDEX_ALLOC;
	ring_do(&r, "all taken");
	ring_sqe(&r, IORING_OP_CLOSE, 0, 0, 0, 0, 1)->file_index = 2;
	ring_do(&r, "closed");
	ring_sqe(&r, IORING_OP_CLOSE, 0, 0, 0, 0, 1)->file_index = 2;
	ring_do(&r, "closed again");
	s = ring_sqe(&r, IORING_OP_OPENAT, AT_FDCWD, "file", 0, 0, 1);
	s->file_index = IORING_FILE_INDEX_ALLOC;
	ring_do(&r, "any slot");
	/* What waits keeps its file. */
	ring_sqe(&r, IORING_OP_READ, 2, b, 1, -1, 1)->flags = IOSQE_FIXED_FILE;
	R(ring_submit(&r, 0));
	R(r_register(r.fd, IORING_UNREGISTER_FILES, 0, 0));
	must(write(p[1], "x", 1));
	ring_show(&r, "of what is registered no more", 1);
	struct io_uring_rsrc_register sparse = {.nr = 8, .flags = IORING_RSRC_REGISTER_SPARSE};
	R(r_register(r.fd, IORING_REGISTER_FILES2, &sparse, sizeof sparse));
	uint64_t tag = 77;
	one = f;
	struct io_uring_rsrc_update2 u2 = {.offset = 5, .data = (uintptr_t)&one, .tags = (uintptr_t)&tag, .nr = 1};
	R(r_register(r.fd, IORING_REGISTER_FILES_UPDATE2, &u2, sizeof u2));
	fixed("tagged", IORING_OP_READ, 5, b, 64, 0);
	R(r_register(r.fd, IORING_UNREGISTER_FILES, 0, 0));
	ring_show(&r, "its end", 1);
	/* Buffers. */
	struct iovec v[2] = {{m, 4096}, {m + 4096, 100}};
	ring_sqe(&r, IORING_OP_READ_FIXED, f, m, 64, 0, 1)->buf_index = 0;
	ring_do(&r, "no buffers");
	R(r_register(r.fd, IORING_UNREGISTER_BUFFERS, 0, 0));
	R(r_register(r.fd, IORING_REGISTER_BUFFERS, v, 0));
	R(r_register(r.fd, IORING_REGISTER_BUFFERS, v, 2));
	R(r_register(r.fd, IORING_REGISTER_BUFFERS, v, 2));
	ring_sqe(&r, IORING_OP_READ_FIXED, f, m + 10, 64, 0, 1)->buf_index = 0;
	ring_do(&r, "read fixed");
	T(!memcmp(m + 10, "hello", 5));
	ring_sqe(&r, IORING_OP_WRITE_FIXED, f, m + 10, 5, 20, 1)->buf_index = 0;
	ring_do(&r, "write fixed");
	ring_sqe(&r, IORING_OP_READ_FIXED, f, m + 4000, 100, 0, 1)->buf_index = 0;
	ring_do(&r, "across its end");
	ring_sqe(&r, IORING_OP_READ_FIXED, f, m + 4096, 100, 0, 1)->buf_index = 1;
	ring_do(&r, "the second");
	ring_sqe(&r, IORING_OP_READ_FIXED, f, m, 1, 0, 1)->buf_index = 2;
	ring_do(&r, "no such buffer");
	R(r_register(r.fd, IORING_UNREGISTER_BUFFERS, 0, 0));
	struct iovec far = {(void *)8, 4096};
	R(r_register(r.fd, IORING_REGISTER_BUFFERS, &far, 1));
	/* Eventfds. */
	R(r_register(r.fd, IORING_REGISTER_EVENTFD, &f, 1));
	R(r_register(r.fd, IORING_REGISTER_EVENTFD, &e, 1));
	R(r_register(r.fd, IORING_REGISTER_EVENTFD, &e, 1));
	ring_one(&r, "nop", IORING_OP_NOP, -1, 0, 0, 0);
	N(count(e));
	__atomic_store_n(r.cq_flags, IORING_CQ_EVENTFD_DISABLED, __ATOMIC_RELEASE);
	ring_one(&r, "nop", IORING_OP_NOP, -1, 0, 0, 0);
	N(count(e));
	__atomic_store_n(r.cq_flags, 0, __ATOMIC_RELEASE);
	R(r_register(r.fd, IORING_UNREGISTER_EVENTFD, 0, 0));
	R(r_register(r.fd, IORING_UNREGISTER_EVENTFD, 0, 0));
	R(r_register(r.fd, IORING_REGISTER_EVENTFD_ASYNC, &e, 1));
	ring_one(&r, "nop", IORING_OP_NOP, -1, 0, 0, 0);
	N(count(e));
	ring_sqe(&r, IORING_OP_READ, p[0], b, 1, -1, 1);
	R(ring_submit(&r, 0));
	must(write(p[1], "x", 1));
	ring_show(&r, "later", 1);
	/* What there is. */
	struct { struct io_uring_probe p; struct io_uring_probe_op o[256]; } probe;
	memset(&probe, 0, sizeof probe);
	R(r_register(r.fd, IORING_REGISTER_PROBE, &probe, 256));
	T(probe.p.last_op >= IORING_OP_SOCKET && probe.p.ops_len == probe.p.last_op + 1);
	int missing = 0;
	for (int i = 0; i <= IORING_OP_SOCKET; i++)
		if (!(probe.o[i].flags & IO_URING_OP_SUPPORTED))
			missing = i;
	N(missing);
	R(r_register(r.fd, IORING_REGISTER_PROBE, &probe, 256));
	/* Identities. */
	long id = must(r_register(r.fd, IORING_REGISTER_PERSONALITY, 0, 0));
	ring_sqe(&r, IORING_OP_READ, f, b, 5, 0, 1)->personality = id;
	ring_do(&r, "as somebody");
	R(r_register(r.fd, IORING_UNREGISTER_PERSONALITY, 0, id));
	R(r_register(r.fd, IORING_UNREGISTER_PERSONALITY, 0, id));
	/* The ring itself. */
	struct io_uring_rsrc_update up = {.offset = -1u, .data = r.fd};
	R(r_register(r.fd, IORING_REGISTER_RING_FDS, &up, 1));
	N(up.offset);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 3);
	__atomic_store_n(r.sq_tail, r.tail, __ATOMIC_RELEASE);
	R(r_enter(0, 1, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_REGISTERED_RING));
	ring_show(&r, "by its number", 1);
	R(r_enter(1, 0, 0, IORING_ENTER_REGISTERED_RING));
	R(r_enter(99, 0, 0, IORING_ENTER_REGISTERED_RING));
	up.data = 0;
	R(r_register(r.fd, IORING_UNREGISTER_RING_FDS, &up, 1));
	R(r_enter(0, 0, 0, IORING_ENTER_REGISTERED_RING));
	R(r_register(r.fd, 999, 0, 0));
	R(r_register(r.fd, IORING_REGISTER_ENABLE_RINGS, 0, 0));
	R(r_register(r.fd, IORING_REGISTER_RESTRICTIONS, 0, 0));
	/* Messages between rings. */
	struct ring o;
	must(ring_open(&o, 8, 0, 0));
	ring_sqe(&r, IORING_OP_MSG_RING, o.fd, 0, 42, 1234, 1);
	ring_do(&r, "sent");
	ring_show(&o, "came", 1);
	ring_sqe(&r, IORING_OP_MSG_RING, f, 0, 42, 1234, 1);
	ring_do(&r, "to no ring");
	ring_close(&o);
	ring_close(&r);
	/* Not in use yet, and then for some things only. */
	must(ring_open(&r, 8, IORING_SETUP_R_DISABLED, 0));
	R(r_enter(r.fd, 0, 0, 0));
	struct io_uring_restriction res[3] = {
		{.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_NOP},
		{.opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_REGISTER_PROBE},
		{.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED, .sqe_flags = IOSQE_IO_LINK},
	};
	R(r_register(r.fd, IORING_REGISTER_RESTRICTIONS, res, 3));
	R(r_register(r.fd, IORING_REGISTER_RESTRICTIONS, res, 3));
	R(r_register(r.fd, IORING_REGISTER_ENABLE_RINGS, 0, 0));
	ring_one(&r, "nop", IORING_OP_NOP, -1, 0, 0, 0);
	ring_one(&r, "write", IORING_OP_WRITE, f, "x", 1, 0);
	ring_sqe(&r, IORING_OP_NOP, -1, 0, 0, 0, 1)->flags = IOSQE_ASYNC;
	ring_do(&r, "flags");
	R(r_register(r.fd, IORING_REGISTER_FILES, list, 1));
	ring_close(&r);
	/* For nothing at all. */
	must(ring_open(&r, 8, IORING_SETUP_R_DISABLED, 0));
	R(r_register(r.fd, IORING_REGISTER_RESTRICTIONS, res, 0));
	R(r_register(r.fd, IORING_REGISTER_ENABLE_RINGS, 0, 0));
	ring_one(&r, "nop", IORING_OP_NOP, -1, 0, 0, 0);
	R(r_register(r.fd, IORING_REGISTER_PROBE, &probe, 0));
	ring_close(&r);
	unlink("file");
	return t_failed;
}
