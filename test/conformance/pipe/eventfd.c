/* eventfd: counter, semaphore, overflow, blocking, poll. */
#include "t.h"
#include <sys/eventfd.h>
static int put(int f, uint64_t v) { return write(f, &v, 8); }
static long get(int f)
{
	uint64_t v = 0;
	return read(f, &v, 8) == 8 ? (long)v : -1;
}
int main(void)
{
	R(eventfd(0, 0x1234));
	int f = must(eventfd(5, EFD_NONBLOCK | EFD_CLOEXEC));
	T(fcntl(f, F_GETFD) == FD_CLOEXEC);
	R(get(f));
	R(get(f));
	R(put(f, 3));
	R(put(f, 4));
	R(get(f));
	R(put(f, -1));
	R(put(f, -2));
	R(put(f, 1));
	struct pollfd p = {f, POLLIN | POLLOUT, 0};
	R(poll(&p, 1, 0));
	N(p.revents);
	T(get(f) == -2);
	R(poll(&p, 1, 0));
	N(p.revents);
	R(put(f, 0));
	R(poll(&p, 1, 0));
	N(p.revents);
	char b[16];
	R(read(f, b, 4));
	R(write(f, b, 4));
	R(write(f, (void *)8, 8));
	put(f, 1);
	R(read(f, b, 16));
	R(lseek(f, 0, SEEK_SET));
	R(pread(f, b, 8, 0));
	int s = must(eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK));
	R(get(s));
	R(get(s));
	R(put(s, 2));
	R(get(s));
	R(get(s));
	R(get(s));
	R(get(s));
	/* Blocking both ways. */
	f = must(eventfd(0, 0));
	int g = must(eventfd(-2u, 0));
	put(g, 0xfffffffffffffffe - 0xfffffffeul);
	pid_t c = must(fork());
	if (!c) {
		t_asleep(getppid(), getppid());
		put(f, 42);
		t_asleep(getppid(), getppid());
		_exit(get(g) != -2);
	}
	R(get(f));
	R(put(g, 1));
	t_reap("child", c);
	R(get(g));
	return t_done();
}
