/* A ring is registered with no ring, whichever way: it would keep itself, or a row of them would end as one. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
#include <sys/eventfd.h>
#define ROW 1000
static struct ring r;
static int sparse(int fd)
{
	struct io_uring_rsrc_register files = {.nr = 2, .flags = IORING_RSRC_REGISTER_SPARSE};
	return r_register(fd, IORING_REGISTER_FILES2, &files, sizeof files);
}
static void allocate(const char *what, int *list, int n)
{
	ring_one(&r, what, IORING_OP_FILES_UPDATE, -1, list, n, IORING_FILE_INDEX_ALLOC);
}
int main(void)
{
	must(ring_open(&r, 8, 0, 0));
	int e = must(eventfd(0, 0)), list[2], refused = 0;
	must(sparse(r.fd));
	list[0] = r.fd;
	allocate("itself", list, 1);
	list[0] = e, list[1] = r.fd;
	allocate("a file and itself", list, 2);
	list[0] = e;
	allocate("the other place", list, 1);
	allocate("no place", list, 1);
	list[0] = r.fd;
	ring_one(&r, "its place", IORING_OP_FILES_UPDATE, -1, list, 1, 1);
	struct io_uring_rsrc_update update = {.data = (uintptr_t)list};
	OK(r_register(r.fd, IORING_REGISTER_FILES_UPDATE, &update, 1));
	ring_close(&r), close(e);
	/* Each would have the one before. */
	int last = -1;
	for (int i = 0; i < ROW; i++) {
		must(ring_open(&r, 1, 0, 0));
		must(sparse(r.fd));
		list[0] = last;
		ring_sqe(&r, IORING_OP_FILES_UPDATE, -1, list, 1, IORING_FILE_INDEX_ALLOC, 1);
		must(ring_submit(&r, 1));
		struct io_uring_cqe c = {0};
		refused += ring_take(&r, &c) && c.res == -EBADF;
		munmap(r.rings, r.rings_len), munmap(r.entries, r.entries_len);
		close(last);
		last = r.fd;
	}
	close(last);
	say("a row: %d of %d refused\n", refused, ROW);
	return t_done();
}
