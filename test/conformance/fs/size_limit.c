/* RLIMIT_FSIZE where the kernel moves bytes from file to file: how far each call gets, and when SIGXFSZ comes. */
#include "t.h"
#include <sys/sendfile.h>

#define LIMIT 10000

static volatile int signals;
static char bytes[40000];

static void count(int number)
{
	signals++;
}

static int target(long size)
{
	int fd = must(open("target", O_RDWR | O_CREAT | O_TRUNC, 0600));
	if (size)
		must(pwrite(fd, bytes, size, 0));
	must(lseek(fd, size, SEEK_SET));
	return fd;
}

static void after(int fd)
{
	struct stat s;
	must(fstat(fd, &s));
	say("  size %d, signals %d\n", (int)s.st_size, signals);
	signals = 0;
	must(close(fd));
}

static void all(long from, long len)
{
	int source = must(open("source", O_RDONLY)), fd, ends[2];
	loff_t at;
	say("from %d, %d bytes\n", (int)from, (int)len);
	fd = target(from);
	R(sendfile(fd, source, 0, len));
	say("  read to %d\n", (int)lseek(source, 0, SEEK_CUR));
	after(fd);
	fd = target(from);
	must(pipe(ends));
	must(write(ends[1], bytes, len));
	R(splice(ends[0], 0, fd, 0, len, 0));
	must(close(ends[1]));
	long left = 0, n;
	while ((n = read(ends[0], bytes + 20000, 20000)) > 0)
		left += n;
	say("  left %d\n", (int)left);
	must(close(ends[0]));
	after(fd);
	fd = target(from);
	at = 0;
	R(copy_file_range(source, &at, fd, 0, len, 0));
	after(fd);
	fd = target(from);
	R(fallocate(fd, 0, from, len));
	after(fd);
	must(close(source));
}

int main(void)
{
	struct rlimit limit = {LIMIT, RLIM_INFINITY};
	t_handle(SIGXFSZ, count, 0);
	memset(bytes, 'b', sizeof bytes);
	t_write("source", "");
	int fd = must(open("source", O_WRONLY));
	must(write(fd, bytes, 20000));
	must(close(fd));
	must(setrlimit(RLIMIT_FSIZE, &limit));
	all(0, 5000);
	all(8000, 5000);
	all(LIMIT - 1, 5000);
	all(LIMIT, 5000);
	/* Nothing to be read: only copy_file_range(2) looks at the limit nevertheless. */
	fd = target(LIMIT);
	int source = must(open("source", O_RDONLY));
	must(lseek(source, 0, SEEK_END));
	R(sendfile(fd, source, 0, 100));
	say("  signals %d\n", signals);
	R(copy_file_range(source, 0, fd, 0, 100, 0));
	say("  signals %d\n", signals);
	return t_failed;
}
