/* RLIMIT_FSIZE where a write waits for another's long one: what counts is where it then begins. */
#include "t.h"
#define ALL (24 << 20)
static volatile int signals;
static char name[] = "grows", *bytes;
static void count(int number) { signals += number == SIGXFSZ; }
static int of_memory;
static int opened(void) { return of_memory ? must(memfd_create(name, 0)) : must(open(name, O_RDWR | O_CREAT | O_TRUNC, 0600)); }
static long long size(int fd)
{
	struct stat s;
	must(fstat(fd, &s));
	return s.st_size;
}
/* While a child appends or writes most of what may be there, so does this. */
static void beside(const char *what, int append, int positioned)
{
	int fd = opened();
	if (append)
		must(fcntl(fd, F_SETFL, O_APPEND));
	signals = 0;
	say("%s\n", what);
	pid_t p = must(fork());
	if (!p)
		_exit(write(fd, bytes, ALL) != ALL);
	while (size(fd) < 1)
		;
	R(positioned ? pwrite(fd, bytes, 100, 0) : write(fd, bytes, 100));
	t_reap("writer", p);
	say("  size %lld, signals %d\n", size(fd) - ALL, signals);
	R(write(fd, bytes, 1));
	say("  size %lld, signals %d\n", size(fd) - ALL, signals);
	must(close(fd));
}
int main(void)
{
	struct rlimit limit = {0, RLIM_INFINITY};
	t_handle(SIGXFSZ, count, 0);
	bytes = mmap(0, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(bytes, 'b', ALL);
	/* With room for ten bytes, and without any. */
	for (int turn = 0; turn < 4; turn++) {
		of_memory = turn & 1;
		limit.rlim_cur = ALL + (turn < 2 ? 10 : 0);
		must(setrlimit(RLIMIT_FSIZE, &limit));
		beside("append", 1, 0);
		beside("append, at a place", 1, 1);
		/* No call holds a memfd's position while it is written. */
		if (!of_memory)
			beside("the same position", 0, 0);
	}
	must(unlink(name));
	return t_done();
}
