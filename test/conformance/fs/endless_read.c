/* A signal ends a long read of a device without an end: what was read by then counts. */
#include "t.h"
#include <sys/uio.h>

/* Most that one call moves is 2 GiB less a page. All pieces are one, for a machine with little memory and much to do. */
enum { PIECE = 16 << 20, PIECES = 127 };

static void tick(int signal)
{
}

static void end(const char *name)
{
	int fd = must(open(name, O_RDONLY));
	char *at = mmap(0, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(at == MAP_FAILED ? -1 : 0);
	/* Whole while nothing comes. */
	T(read(fd, at, 5 << 20) == 5 << 20);
	/* Again and again: the first may come before the read. */
	struct itimerval soon = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
	must(setitimer(ITIMER_REAL, &soon, 0));
	struct iovec pieces[PIECES];
	for (int i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){at, PIECE};
	ssize_t got = readv(fd, pieces, PIECES);
	must(setitimer(ITIMER_REAL, &never, 0));
	T(got > 0 && got < (ssize_t)PIECE * PIECES);
	munmap(at, PIECE);
	close(fd);
}

int main(void)
{
	struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
	must(sigaction(SIGALRM, &action, 0));
	end("/dev/zero");
	end("/dev/urandom");
	return t_done();
}
