/* Maps a file of a disk that is larger than the memory. "make" writes it; "map" says what of it is in memory before and after a few
 * touches, and then reads all of it, and of a hole as long, through mappings. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "make"))
		return make();
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
