/* sendfile, copy_file_range, splice, tee, vmsplice: amounts, offsets, refusals. */
/* not: i386 */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/timerfd.h>
static char b[200000];
int main(void)
{
	for (int i = 0; i < 200000; i++)
		b[i] = 'a' + i % 26;
	int f = must(open("f", O_RDWR | O_CREAT, 0600)), g = must(open("g", O_RDWR | O_CREAT, 0600)), p[2], q[2], r = must(open("f", O_RDONLY));
	must(write(f, b, 200000));
	off_t o = 10;
	R(sendfile(g, f, &o, 100));
	N(o);
	lseek(f, 26, SEEK_SET);
	R(sendfile(g, f, 0, 3));
	N(lseek(f, 0, SEEK_CUR));
	N(lseek(g, 0, SEEK_CUR));
	char c[8] = "";
	must(pread(g, c, 4, 99));
	S(c);
	o = 199990;
	R(sendfile(g, f, &o, 100));
	R(sendfile(g, f, &o, 100));
	o = -1;
	R(sendfile(g, f, &o, 1));
	R(sendfile(r, f, 0, 1));
	R(sendfile(99, f, 0, 1));
	must(pipe(p)), must(pipe(q));
	lseek(f, 0, SEEK_SET);
	R(sendfile(p[1], f, 0, 1000));
	R(sendfile(g, p[0], 0, 1));
	off_t i = 5, j = 0;
	R(copy_file_range(f, &i, g, &j, 50, 0));
	say("%ld %ld\n", (long)i, (long)j);
	R(copy_file_range(f, &i, g, &j, 50, 1));
	i = 300000;
	R(copy_file_range(f, &i, g, &j, 50, 0));
	i = 0, j = 10;
	R(copy_file_range(f, &i, f, &j, 50, 0)); /* the ranges overlap */
	j = 100000;
	R(copy_file_range(f, &i, f, &j, 50, 0));
	R(copy_file_range(f, 0, r, 0, 5, 0));
	R(copy_file_range(f, 0, p[1], 0, 5, 0));
	/* splice moves through pipes. */
	i = 0;
	R(splice(f, &i, p[1], 0, 500, 0));
	N(i);
	R(splice(p[0], 0, g, 0, 2000, 0));
	R(splice(p[0], 0, g, 0, 10, SPLICE_F_NONBLOCK));
	R(splice(f, 0, g, 0, 10, 0));
	R(splice(f, &i, p[1], &j, 10, 0));
	R(splice(f, &i, p[1], 0, 10, 0x100));
	must(write(p[1], "tee me", 6));
	R(tee(p[0], q[1], 100, 0));
	R(read(q[0], c, 6));
	R(read(p[0], c, 6));
	S(c);
	R(tee(f, q[1], 100, 0));
	R(tee(p[0], p[1], 100, 0));
	R(tee(p[0], q[1], 100, SPLICE_F_NONBLOCK));
	struct iovec v[2] = {{"vec", 3}, {"tor", 3}};
	R(vmsplice(p[1], v, 2, 0));
	R(splice(p[0], 0, q[1], 0, 100, 0));
	R(read(q[0], c, 8));
	S(c);
	R(vmsplice(f, v, 1, 0));
	/* More than there is room for: short, each page of the memory in a slot of its own. */
	char *m = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	v[0] = (struct iovec){m, 1 << 20};
	R(vmsplice(q[1], v, 1, 0));
	R(vmsplice(q[1], v, 1, SPLICE_F_NONBLOCK));
	R(read(q[0], b, 200000));
	v[0] = (struct iovec){m + 4000, 8192}, v[1] = (struct iovec){m + 4096, 1 << 19};
	R(vmsplice(q[1], v, 2, 0));
	R(read(q[0], b, 200000));
	R(vmsplice(q[1], v, 0, 0));
	/* Files that splice does not know: reported at once, not once there is data. */
	int e = eventfd(1, 0), x = epoll_create1(0), d = must(open(".", O_RDONLY)), n = must(open("/dev/null", O_RDWR));
	int full = must(open("/dev/full", O_RDWR)), tfd = timerfd_create(CLOCK_MONOTONIC, 0);
	R(splice(e, 0, q[1], 0, 10, 0));
	R(splice(x, 0, q[1], 0, 10, 0));
	R(splice(tfd, 0, q[1], 0, 10, 0));
	R(splice(d, 0, q[1], 0, 10, 0));
	R(splice(n, 0, q[1], 0, 10, 0));
	R(splice(q[0], 0, e, 0, 10, 0));
	R(splice(q[0], 0, x, 0, 10, 0));
	R(splice(q[0], 0, tfd, 0, 10, 0));
	R(splice(q[0], 0, full, 0, 10, 0));
	must(write(q[1], "gone", 4));
	R(splice(q[0], 0, n, 0, 10, 0));
	close(p[1]);
	R(splice(p[0], 0, q[1], 0, 100, 0));
	return t_done();
}
