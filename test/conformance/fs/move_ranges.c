/* fallocate(2) that takes ranges out of a file and puts some in. File systems without it report that; those that have it move what is behind. */
#include "t.h"
#include <linux/falloc.h>
enum { PAGES = 200 };
static long page = 4096;
static char buffer[4096];
/* The number that a page of the file is filled with, -1 when it is filled with several. */
static int page_at(int fd, long at)
{
	must(pread(fd, buffer, page, at * page) == page ? 0 : -1);
	for (int i = 1; i < page; i++)
		if (buffer[i] != buffer[0])
			return -1;
	return (unsigned char)buffer[0];
}
static long size_of(int fd)
{
	struct stat s;
	must(fstat(fd, &s));
	return s.st_size;
}
/* Whether the file system has it; one without reports that, and the rest holds. */
static int has(int fd)
{
	errno = 0;
	int gone = fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, page) && errno == EOPNOTSUPP;
	if (!gone)
		must(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, page)), must(pwrite(fd, memset(buffer, 1, page), page, 0));
	return !gone;
}
static void moves(const char *name, int pages)
{
	int fd = must(open(name, O_RDWR | O_CREAT | O_TRUNC, 0600));
	for (int i = 0; i < pages; i++)
		must(pwrite(fd, memset(buffer, i % 200 + 1, page), page, i * page));
	/* A hole of ten pages before the last. */
	must(pwrite(fd, memset(buffer, 250, page), 100, (pages + 10) * page));
	int yes = has(fd);
	char *m = mmap(0, pages * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	T(m != MAP_FAILED && m[3 * page] == 4);
	m[9 * page + 5] = 10;
	T(!yes || fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 2 * page, 4 * page) == 0);
	T(!yes || size_of(fd) == (pages + 6) * page + 100);
	T(!yes || (page_at(fd, 1) == 2 && page_at(fd, 2) == 7 && page_at(fd, 5) == 10));
	T(!yes || (m[1 * page] == 2 && m[2 * page] == 7 && m[5 * page + 5] == 10));
	T(!yes || (page_at(fd, pages - 5) == (pages - 1) % 200 + 1 && page_at(fd, pages - 4) == 0 && page_at(fd, pages + 5) == 0));
	T(!yes || (pread(fd, buffer, page, (pages + 6) * page) == 100 && (unsigned char)buffer[99] == 250));
	m[2 * page] = 99;
	T(!yes || fallocate(fd, FALLOC_FL_INSERT_RANGE, page, 3 * page) == 0);
	T(!yes || size_of(fd) == (pages + 9) * page + 100);
	T(!yes || (page_at(fd, 0) == 1 && page_at(fd, 1) == 0 && page_at(fd, 3) == 0 && page_at(fd, 4) == 2));
	T(!yes || (m[0] == 1 && m[page] == 0 && m[4 * page] == 2 && m[5 * page] == 99 && m[5 * page + 1] == 7));
	T(!yes || (page_at(fd, pages - 2) == (pages - 1) % 200 + 1 && page_at(fd, pages - 1) == 0 && page_at(fd, pages + 8) == 0));
	T(!yes || (pread(fd, buffer, page, (pages + 9) * page) == 100 && (unsigned char)buffer[99] == 250));
	/* What they refuse. */
	long size = size_of(fd);
	int bad[][3] = {{FALLOC_FL_COLLAPSE_RANGE, 100, page}, {FALLOC_FL_COLLAPSE_RANGE, 0, 100}, {FALLOC_FL_INSERT_RANGE, 512, page},
		{FALLOC_FL_COLLAPSE_RANGE, (pages + 9) * page, page}, {FALLOC_FL_INSERT_RANGE, (pages + 10) * page, page}};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		errno = 0;
		T(!yes || (fallocate(fd, bad[i][0], bad[i][1], bad[i][2]) == -1 && errno == EINVAL));
	}
	R(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_KEEP_SIZE, 0, page));
	R(fallocate(fd, FALLOC_FL_INSERT_RANGE | FALLOC_FL_KEEP_SIZE, 0, page));
	R(fallocate(fd, FALLOC_FL_INSERT_RANGE | FALLOC_FL_COLLAPSE_RANGE, 0, page));
	T(size_of(fd) == size);
	munmap(m, pages * page);
	close(fd), unlink(name);
}
int main(void)
{
	moves("small", 12);
	moves("large", PAGES);
	/* In memory there is none of it. */
	int fd = must(memfd_create("m", 0));
	must(ftruncate(fd, 4 * page));
	R(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, page));
	R(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, page));
	fd = must(open("/dev/shm/janua-move-ranges", O_RDWR | O_CREAT | O_TRUNC, 0600));
	unlink("/dev/shm/janua-move-ranges");
	must(ftruncate(fd, 4 * page));
	R(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, page));
	R(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, page));
	return t_done();
}
