/* io_setup and its variants: files, vectors, sync, poll, eventfds, the ring in memory, cancelling, what is refused. */
/* not: musl */
/* linux: 5.0 */
#include "../t.h"
#include <linux/aio_abi.h>
#include <sys/eventfd.h>
#define setup(n, c) syscall(SYS_io_setup, n, c)
#define destroy(c) syscall(SYS_io_destroy, c)
#define submit(c, n, v) syscall(SYS_io_submit, c, n, v)
#define getevents(c, min, n, e, t) syscall(SYS_io_getevents, c, min, n, e, t)
struct aio_ring { unsigned id, nr, head, tail, magic, compat, incompat, header_length; struct io_event e[]; };
static aio_context_t c;
static struct iocb i[4], *v[4] = {&i[0], &i[1], &i[2], &i[3]};

static struct iocb *make(int n, int op, int fd, const void *buf, size_t len, int64_t off)
{
	memset(&i[n], 0, sizeof i[n]);
	i[n].aio_data = n, i[n].aio_lio_opcode = op, i[n].aio_fildes = fd;
	i[n].aio_buf = (uintptr_t)buf, i[n].aio_nbytes = len, i[n].aio_offset = off;
	return &i[n];
}

static void show(const char *what, int n)
{
	struct io_event e[4];
	int got = 0;
	while (got < n) {
		long k = getevents(c, 1, n - got, e + got, 0);
		if (k < 0 && errno != EINTR) {
			say("%s: %s\n", what, t_errno(errno));
			return;
		}
		got += k > 0 ? k : 0;
	}
	for (int a = 0; a < n; a++)
		for (int b = a + 1; b < n; b++)
			if (e[b].data < e[a].data) {
				struct io_event t = e[a];
				e[a] = e[b], e[b] = t;
			}
	for (int a = 0; a < n; a++) {
		int own = e[a].obj == (uintptr_t)&i[e[a].data & 3];
		if ((long)e[a].res < 0)
			say("%s %d: %s, %s\n", what, (int)e[a].data, t_errno(-(long)e[a].res), own ? "its own" : "another's");
		else
			say("%s %d: %ld, %s\n", what, (int)e[a].data, (long)e[a].res, own ? "its own" : "another's");
	}
}

static void one(const char *what, int op, int fd, const void *buf, size_t len, int64_t off)
{
	make(0, op, fd, buf, len, off);
	long r = submit(c, 1, v);
	if (r != 1)
		say("%s: %ld %s\n", what, r, r < 0 ? t_errno(errno) : "");
	else
		show(what, 1);
}

int main(void)
{
	char b[64] = "", d[8] = "";
	int f = must(open("file", O_RDWR | O_CREAT, 0600)), p[2], e = must(eventfd(0, EFD_NONBLOCK));
	must(pipe(p));
	R(setup(0, &c));
	c = 1;
	R(setup(4, &c));
	c = 0;
	R(setup(4, (void *)8));
	R(setup(1 << 20, &c));
	R(setup(4, &c));
	T(c != 0);
	struct aio_ring *ring = (void *)c;
	T(ring->magic == 0xa10a10a1 && ring->header_length == sizeof *ring && ring->incompat == 0 && ring->nr > 4);
	one("write", IOCB_CMD_PWRITE, f, "hello world", 11, 0);
	one("read", IOCB_CMD_PREAD, f, b, 64, 0);
	S(b);
	struct iovec w[2] = {{b, 5}, {d, 6}};
	one("readv", IOCB_CMD_PREADV, f, w, 2, 0);
	T(!memcmp(d, " world", 6));
	w[0].iov_base = "ab", w[0].iov_len = 2, w[1].iov_base = "cd", w[1].iov_len = 2;
	one("writev", IOCB_CMD_PWRITEV, f, w, 2, 20);
	N(lseek(f, 0, SEEK_END));
	one("fsync", IOCB_CMD_FSYNC, f, 0, 0, 0);
	one("fdsync", IOCB_CMD_FDSYNC, f, 0, 0, 0);
	one("noop", IOCB_CMD_NOOP, f, 0, 0, 0);
	one("unknown", 99, f, 0, 0, 0);
	one("not open", IOCB_CMD_PREAD, 999, b, 1, 0);
	one("nowhere", IOCB_CMD_PREAD, f, (void *)8, 1, 0);
	one("before the start", IOCB_CMD_PREAD, f, b, 1, -1);
	int o = must(open("file", O_RDONLY));
	one("write to what is read", IOCB_CMD_PWRITE, o, b, 1, 0);
	make(0, IOCB_CMD_PREAD, f, b, 1, 0)->aio_reserved2 = 1;
	R(submit(c, 1, v));
	make(0, IOCB_CMD_PREAD, f, b, 1, 0)->aio_rw_flags = 0x4000;
	R(submit(c, 1, v));
	/* Several: those before the wrong one are made. */
	make(0, IOCB_CMD_PREAD, f, b, 2, 0), make(1, IOCB_CMD_PREAD, f, b, 3, 0), make(2, 99, f, b, 3, 0);
	R(submit(c, 3, v));
	show("two", 2);
	R(submit(c, 0, v));
	R(submit(c, -1L, v));
	R(submit(c, 1, (void *)8));
	struct iocb *nowhere = (void *)8;
	R(submit(c, 1, &nowhere));
	/* Poll, and an eventfd that is notified. */
	make(1, IOCB_CMD_POLL, p[0], (void *)POLLIN, 0, 0);
	i[1].aio_flags = IOCB_FLAG_RESFD, i[1].aio_resfd = e;
	struct iocb *q = &i[1];
	R(submit(c, 1, &q));
	struct io_event ev;
	struct timespec none = {0, 0}, soon = {0, 20000000};
	R(getevents(c, 1, 1, &ev, &none));
	R(getevents(c, 1, 1, &ev, &soon));
	must(write(p[1], "x", 1));
	struct pollfd pf = {e, POLLIN, 0};
	R(poll(&pf, 1, -1));
	eventfd_t n;
	must(eventfd_read(e, &n));
	N(n);
	R(getevents(c, 1, 1, &ev, 0));
	T(ev.data == 1 && ev.res & POLLIN && !(ev.res & POLLOUT));
	must(read(p[0], b, 1));
	make(1, IOCB_CMD_POLL, p[0], (void *)POLLPRI, 0, 0);
	R(submit(c, 1, &q));
	R(syscall(SYS_io_cancel, c, q, &ev));
	show("cancelled", 1);
	R(syscall(SYS_io_cancel, c, q, &ev));
	make(1, IOCB_CMD_PREAD, f, b, 1, 0)->aio_flags = IOCB_FLAG_RESFD;
	i[1].aio_resfd = f;
	R(submit(c, 1, &q));
	/* The ring, read and taken from without a call. */
	make(0, IOCB_CMD_PREAD, f, b, 5, 0);
	R(submit(c, 1, v));
	T(ring->tail == (ring->head + 1) % ring->nr);
	T(ring->e[ring->head].res == 5 && ring->e[ring->head].obj == (uintptr_t)&i[0]);
	ring->head = (ring->head + 1) % ring->nr;
	R(getevents(c, 0, 1, &ev, 0));
	/* What is not taken takes places: the ring is never overrun. */
	unsigned made = 0;
	while (submit(c, 1, v) == 1)
		made++;
	S(t_errno(errno));
	T(made >= 4 && made < ring->nr);
	for (unsigned k = 0; k < made; k++)
		must(getevents(c, 1, 1, &ev, 0));
	R(getevents(c, 0, 1, &ev, &none));
	R(getevents(c, 2, 1, &ev, &none));
	R(getevents(c, -1L, 1, &ev, &none));
	R(getevents(1, 1, 1, &ev, &none));
	make(0, IOCB_CMD_PREAD, f, b, 5, 0);
	R(submit(c, 1, v));
	R(getevents(c, 1, 1, (void *)8, 0));
	show("still there", 1);
	CHILD("child",
		R(getevents(c, 0, 1, &ev, &none));
		R(destroy(c)));
	make(1, IOCB_CMD_POLL, p[0], (void *)POLLPRI, 0, 0);
	R(submit(c, 1, &q));
	R(destroy(c));
	R(destroy(c));
	R(getevents(c, 0, 1, &ev, &none));
	unlink("file");
	return t_failed;
}
