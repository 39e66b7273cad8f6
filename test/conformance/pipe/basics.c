/* Pipes and FIFOs: capacity, atomic writes, ends that close, non-blocking, FIONREAD, packet mode. */
#include "t.h"
static char b[1 << 20];
int main(void)
{
	int p[2], n;
	R(pipe2(p, 0x1));
	R(pipe((int *)8));
	must(pipe2(p, O_NONBLOCK | O_CLOEXEC));
	T((fcntl(p[0], F_GETFL) & O_ACCMODE) == O_RDONLY && (fcntl(p[1], F_GETFL) & O_ACCMODE) == O_WRONLY);
	R(read(p[0], b, 1));
	N(fcntl(p[0], F_GETPIPE_SZ));
	R(write(p[1], b, sizeof b));
	R(write(p[1], b, 1));
	R(ioctl(p[0], FIONREAD, &n));
	N(n);
	R(read(p[0], b, 4095));
	R(write(p[1], b, 1)); /* no whole page is free */
	R(read(p[0], b, 1));
	R(write(p[1], b, 4097)); /* more than is atomic: partly */
	R(write(p[1], b, 1));
	R(read(p[0], b, sizeof b));
	R(read(p[0], b, 1));
	R(fcntl(p[1], F_SETPIPE_SZ, 5000));
	N(fcntl(p[0], F_GETPIPE_SZ));
	R(write(p[1], b, sizeof b));
	R(fcntl(p[1], F_SETPIPE_SZ, 4096)); /* does not fit */
	R(fcntl(p[1], F_SETPIPE_SZ, 100000));
	R(fcntl(p[1], F_SETPIPE_SZ, 1 << 20));
	R(read(p[0], b, sizeof b));
	R(fcntl(p[1], F_SETPIPE_SZ, 0x7fffffff) != 0);
	R(fcntl(p[1], F_SETPIPE_SZ, 0));
	close(p[1]);
	R(read(p[0], b, 1));
	close(p[0]);
	/* Small writes of many writers never mix. */
	must(pipe(p));
	for (int i = 0; i < 4; i++)
		if (!must(fork())) {
			memset(b, 'a' + i, 512);
			for (int k = 0; k < 200; k++)
				write(p[1], b, 512);
			_exit(0);
		}
	close(p[1]);
	int mixed = 0, total = 0;
	for (;;) {
		int got = 0, k;
		while (got < 512 && (k = read(p[0], b + got, 512 - got)) > 0)
			got += k;
		if (!got)
			break;
		total += got;
		for (int i = 1; i < got; i++)
			mixed += b[i] != b[0];
	}
	say("%d bytes, %d mixed\n", total, mixed);
	while (wait(0) > 0)
		;
	/* Packets. */
	must(pipe2(p, O_DIRECT));
	R(write(p[1], "one", 3));
	R(write(p[1], "twotwo", 6));
	R(read(p[0], b, 100));
	R(read(p[0], b, 2)); /* the rest of a packet is lost */
	R(write(p[1], "x", 1));
	R(read(p[0], b, 100));
	/* FIFOs. */
	must(mkfifo("f", 0600));
	R(open("f", O_WRONLY | O_NONBLOCK));
	int r = must(open("f", O_RDONLY | O_NONBLOCK)), w = must(open("f", O_WRONLY));
	R(read(r, b, 1));
	R(write(w, "fifo", 4));
	R(read(r, b, 10));
	close(w);
	R(read(r, b, 1));
	w = must(open("f", O_WRONLY));
	R(read(r, b, 1));
	close(w), close(r);
	r = must(open("f", O_RDWR));
	R(write(r, "self", 4));
	R(read(r, b, 10));
	close(r);
	pid_t c = must(fork());
	if (!c) {
		w = must(open("f", O_WRONLY));
		write(w, "met", 3);
		_exit(0);
	}
	r = must(open("f", O_RDONLY));
	R(read(r, b, 10));
	R(read(r, b, 10));
	t_reap("writer", c);
	/* Throughput in odd amounts: what goes in comes out. */
	must(pipe(p));
	c = must(fork());
	if (!c) {
		close(p[0]);
		unsigned x = 1, k = 0;
		for (int i = 0; i < 300; i++) {
			int len = 1 + (x = x * 1103515245 + 12345) / 7 % 9000;
			for (int q = 0; q < len; q++)
				b[q] = k++ * 31;
			for (int o = 0; o < len; o += write(p[1], b + o, len - o))
				;
		}
		_exit(0);
	}
	close(p[1]);
	unsigned k = 0, bad = 0;
	for (ssize_t g; (g = read(p[0], b, 7777)) > 0;)
		for (int i = 0; i < g; i++)
			bad += b[i] != (char)(k++ * 31);
	say("%d wrong, %s\n", bad, k > 1000000 ? "over a million" : "few");
	t_reap("source", c);
	return t_done();
}
