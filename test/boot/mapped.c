/* Maps a file of a disk that is larger than the memory. "make" writes it; "map" prints what of it is in memory before and after a few
 * touches, and then reads all of it, and of a hole as long, through mappings. "store" stores into some pages in every way there is, with
 * msync(2) between, and "stored" looks for it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 24576 };

static int present(char *at)
{
	static unsigned char in[PAGES];
	int count = 0;
	if (mincore(at, (size_t)PAGES * PAGE, in))
		return -1;
	for (int i = 0; i < PAGES; i++)
		count += in[i] & 1;
	return count;
}

static int make(void)
{
	static unsigned block[32 * PAGE / sizeof(unsigned)];
	int fd = open("/large", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (unsigned page = 0; page < PAGES; page += 32) {
		for (unsigned i = 0; i < 32; i++)
			block[i * PAGE / sizeof(unsigned) + 5] = page + i;
		if (write(fd, block, sizeof block) != sizeof block)
			return perror("write"), 1;
	}
	fd = open("/hole", O_RDWR | O_CREAT | O_TRUNC, 0600);
	return ftruncate(fd, (off_t)PAGES * PAGE) != 0;
}

static char *map(const char *name)
{
	int fd = open(name, O_RDONLY);
	char *at = mmap(0, (size_t)PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		perror(name), _exit(1);
	close(fd);
	return at;
}

static unsigned word(const char *at, unsigned page)
{
	return ((volatile const unsigned *)(at + (size_t)page * PAGE))[5];
}

enum { STORED = 6, SOME = 64 };

static void set(char *at, unsigned page, unsigned value)
{
	((volatile unsigned *)(at + (size_t)page * PAGE))[5] = value;
}

/* Stores `value + page` into page after page, each in its way; two mappings share the pages. */
static void each_way(char *one, char *two, int source, unsigned value)
{
	set(one, 0, value);
	set(two, 1, value + 1);
	if (!fork()) {
		set(one, 2, value + 2);
		_exit(0);
	}
	wait(0);
	char *moved = mremap(one + 3 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, two + SOME * PAGE);
	set(moved, 0, value + 3);
	mremap(moved, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, one + 3 * PAGE);
	mprotect(one + 4 * PAGE, PAGE, PROT_READ);
	mprotect(one + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	set(one, 4, value + 4);
	unsigned by_kernel = value + 5;
	pwrite(source, &by_kernel, sizeof by_kernel, 0);
	if (pread(source, two + 5 * PAGE + 5 * sizeof(unsigned), sizeof by_kernel, 0) != sizeof by_kernel)
		perror("pread");
}

static int store(void)
{
	int fd = open("/large", O_RDWR), source = open("/source", O_RDWR | O_CREAT, 0600);
	char *one = mmap(0, SOME * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *two = mmap(0, (SOME + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (one == MAP_FAILED || two == MAP_FAILED)
		return perror("mmap"), 1;
	for (unsigned value = 1000; value < 4000; value += 1000) {
		for (unsigned page = 0; page < SOME; page++)
			if (word(one, page) != word(two, page))
				return 1;
		each_way(one, two, source, value);
		/* The end of the last mapping writes back what comes after the last one. */
		if (value < 3000 && msync(one, SOME * PAGE, MS_SYNC))
			return perror("msync"), 1;
	}
	return 0;
}

static int stored(void)
{
	char *at = map("/large");
	for (unsigned page = 0; page < SOME; page++)
		if (word(at, page) != (page < STORED ? 3000 + page : page))
			printf("page %u holds %u\n", page, word(at, page));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "make"))
		return make();
	if (argc > 1 && !strcmp(argv[1], "store"))
		return store();
	if (argc > 1 && !strcmp(argv[1], "stored"))
		return stored();
	char *at = map("/large");
	printf("before: %d\n", present(at));
	printf("touched: %d\n", word(at, 3) == 3 && word(at, 9000) == 9000 && word(at, PAGES - 1) == PAGES - 1);
	int count = present(at);
	printf("a few: %d\n", count >= 3 && count <= 3 * 32);
	unsigned wrong = 0;
	for (int turn = 0; turn < 2; turn++)
		for (unsigned page = 0; page < PAGES; page++)
			wrong += word(at, page) != page;
	printf("wrong: %u\n", wrong);
	char *hole = map("/hole");
	for (unsigned page = 0; page < PAGES; page++)
		wrong += word(hole, page) != 0;
	printf("wrong: %u\nleft some: %d\n", wrong, present(at) + present(hole) < PAGES);
	return 0;
}
