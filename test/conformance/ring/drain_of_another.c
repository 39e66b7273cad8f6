/* A ring that two processes have: what one submits to be made behind all before it is made in its own memory, with its own descriptors and by its own rights,
 * no matter who ends what was before. */
/* host: io_uring */
/* not: musl */
/* linux: 6.0 */
#include "ring.h"
static struct ring r;
static int first[2], written[2];
static char *text;

static void say_all(const char *what)
{
	struct io_uring_cqe c;
	while (ring_take(&r, &c))
		ring_say(what, &c, 0);
}

/* The child's part: a write out of memory that the parent has something else in, and a file that not everybody may open. */
static void submit_behind(void)
{
	strcpy(text, "of the child");
	must(setuid(12345));
	struct io_uring_sqe *s = ring_sqe(&r, IORING_OP_WRITE, written[1], text, 16, -1, 2);
	s->flags = IOSQE_IO_DRAIN;
	N(ring_submit(&r, 0));
	s = ring_sqe(&r, IORING_OP_OPENAT, AT_FDCWD, "closed", 0, 0, 3);
	s->flags = IOSQE_IO_DRAIN;
	N(ring_submit(&r, 0));
	/* The parent ends what is before. */
	must(write(first[1], "x", 1));
	char got[17] = "";
	must(read(written[0], got, 16));
	S(got);
	while (*r.cq_tail - *r.cq_head < 3)
		usleep(1000);
	say_all("both");
}

int main(void)
{
	char one;
	must(pipe(first));
	must(pipe(written));
	int fd = must(open("closed", O_CREAT | O_WRONLY, 0600));
	must(fchmod(fd, 0600));
	must(ring_open(&r, 8, 0, 0));
	text = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	strcpy(text, "of the parent");
	ring_sqe(&r, IORING_OP_READ, first[0], &one, 1, -1, 1);
	N(ring_submit(&r, 0));
	CHILD("the child", submit_behind());
	r.tail = *r.sq_tail;
	return t_done();
}
