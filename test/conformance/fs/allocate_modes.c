/* Modes of fallocate(2): which there are, which file systems have them, and which error comes first. */
#include "t.h"
#include <linux/falloc.h>
static void all(int fd, const char *what)
{
	static const int modes[] = {0, 1, 2, 3, 4, 8, 9, 0x10, 0x11, 0x20, 0x21, 0x40, 0x41, 0x100, 0x12, 0x18, 0x28, 0x30};
	static const struct {
		int64_t at, len;
	} ranges[] = {{0, 4096}, {0, 0}, {-1, 4096}, {4096, -1}, {INT64_MAX, INT64_MAX}, {INT64_MAX - 4095, 4096}, {100, 4096}};
	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
		for (unsigned j = 0; j < sizeof ranges / sizeof *ranges; j++) {
			int r = fallocate64(fd, modes[i], ranges[j].at, ranges[j].len);
			say("%s, mode %#x, range %u: %s\n", what, modes[i], j, r ? t_errno(errno) : "ok");
		}
}
static int made(const char *name, int flags)
{
	int fd = must(open(name, O_CREAT | flags, 0600));
	unlink(name);
	return fd;
}
/* What is made zero has its room, as what is allocated has; where there is no such mode that is reported. */
static void room(void)
{
	struct stat s;
	int fd = made("holes", O_RDWR);
	must(ftruncate(fd, 1 << 20));
	int r = fallocate(fd, FALLOC_FL_ZERO_RANGE, 65536, 262144);
	T(r == 0 || errno == EOPNOTSUPP);
	must(fstat(fd, &s));
	T(r || s.st_blocks * 512 >= 262144);
	T(s.st_size == 1 << 20);
	close(fd);
	fd = made("small", O_RDWR);
	must(write(fd, "data", 4));
	r = fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 2, 20000);
	T(r == 0 || errno == EOPNOTSUPP);
	must(fstat(fd, &s));
	T(s.st_size == 4 && (r || s.st_blocks * 512 >= 20000));
	char b[4];
	must(pread(fd, b, 4, 0));
	T(r || !memcmp(b, "da\0\0", 4));
	close(fd);
}
int main(void)
{
	int p[2], fd = made("/dev/shm/janua-allocate-modes", O_RDWR);
	must(ftruncate(fd, 65536));
	all(fd, "in memory");
	fd = must(memfd_create("x", 0));
	must(ftruncate(fd, 65536));
	all(fd, "memfd");
	must(pipe(p));
	all(p[1], "pipe"), all(p[0], "end of a pipe to read");
	all(must(open(".", O_RDONLY | O_DIRECTORY)), "directory");
	all(must(open("/dev/null", O_RDWR)), "device");
	all(must(open(".", O_PATH)), "place");
	all(made("/dev/shm/janua-allocate-modes", O_RDONLY), "to read");
	all(999, "none");
	room();
	return t_done();
}
