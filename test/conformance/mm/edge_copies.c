/* Copies that meet the end of what is mapped: as many bytes arrive as there is room for, whatever the length. */
#include "t.h"

int main(void)
{
	enum { PAGE = 4096, MOST = 200 };
	char *two = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *end = two + PAGE, data[MOST], back[MOST];
	must(two == MAP_FAILED ? -1 : 0);
	must(munmap(end, PAGE));
	int fd = must(syscall(SYS_memfd_create, "edge", 0));
	for (int i = 0; i < MOST; i++)
		data[i] = i * 7 + 1;
	must(pwrite(fd, data, MOST, 0) == MOST ? 0 : -1);

	int whole = 0, part = 0, none = 0, wrong = 0;
	for (int len = 1; len <= MOST; len++) {
		for (int room = 0; room <= len; room++) {
			memset(end - MOST - 8, 0x55, MOST + 8);
			ssize_t n = pread(fd, end - room, len, 0);
			if (room == 0)
				none += n == -1 && errno == EFAULT;
			else if (room == len)
				whole += n == len;
			else
				part += n == room;
			/* What arrived is right, and nothing else was touched. */
			wrong += memcmp(end - room, data, room) != 0 || end[-room - 1] != 0x55;
		}
	}
	N(whole);
	N(part);
	N(none);
	N(wrong);

	/* The other way: bytes from the edge into a file. */
	int short_in = 0, fault_in = 0;
	memcpy(end - MOST, data, MOST);
	for (int len = 1; len <= MOST; len++) {
		must(ftruncate(fd, 0));
		short_in += pwrite(fd, end - len, len, 0) == len && pread(fd, back, len, 0) == len && !memcmp(back, data + MOST - len, len);
		fault_in += pwrite(fd, end, len, 0) == -1 && errno == EFAULT;
	}
	N(short_in);
	N(fault_in);

	/* Structures that do not fit are refused. */
	struct stat *st = (void *)(end - sizeof *st);
	R(fstat(fd, st));
	R(syscall(SYS_fstat, fd, (char *)st + 8));
	struct timespec *ts = (void *)(end - sizeof *ts);
	R(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, ts));
	R(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (char *)ts + 4));
	return 0;
}
