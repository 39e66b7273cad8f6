/* A read that cannot begin has used up the buffer of a group that it took, and its completion says which. */
/* host: io_uring */
/* not: musl */
#include "ring.h"
static struct ring r;
static char buf[2][64];
int main(void)
{
	must(ring_open(&r, 8, 0, 0));
	int f = must(open("file", O_RDWR | O_CREAT, 0600));
	must(write(f, "0123456789", 10));
	ring_one(&r, "provide", IORING_OP_PROVIDE_BUFFERS, 2, buf, 64, 0);
	for (int i = 0; i < 3; i++) {
		struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_READ, f, 0, 8, i ? 2 : 1ull << 63, i);
		s->flags = IOSQE_BUFFER_SELECT;
		must(ring_submit(&r, 1));
		struct io_uring_cqe c = {0};
		ring_take(&r, &c);
		ring_say("read", &c, 0);
		say("flags %x\n", c.flags);
	}
	return t_done();
}
