/* A signal ends a long read of a device without an end: what was read by then counts. */
#include "t.h"

enum { SIZE = 1 << 30 };

static void tick(int signal)
{
}

static void end(const char *name)
{
	int fd = must(open(name, O_RDONLY));
	char *at = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(at == MAP_FAILED ? -1 : 0);
	/* Whole while nothing comes. */
	T(read(fd, at, 5 << 20) == 5 << 20);
	struct itimerval soon = {.it_value.tv_usec = 20000};
	must(setitimer(ITIMER_REAL, &soon, 0));
	ssize_t got = read(fd, at, SIZE);
	T(got > 0 && got < SIZE);
	munmap(at, SIZE);
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
