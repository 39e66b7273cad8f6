/* Pipes and memory that is not there: what is atomic goes in whole or not at all, longer writes by whole pages, and a read that
 * meets a fault leaves in the pipe what it could not pass on. */
#include "../t.h"

static char *page; /* 4096 bytes before memory that is not there */

int main(void)
{
	int p[2];
	page = mmap(0, 6 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(munmap(page + 3 * 4096, 4096));
	char *end = page + 3 * 4096;
	memset(page, 'x', 3 * 4096);
	must(pipe2(p, O_NONBLOCK));
	R(write(p[1], end - 96, 200));
	R(read(p[0], page, 4096));
	/* Joined to what is in the last page already. */
	R(write(p[1], "a", 1));
	R(write(p[1], end - 96, 200));
	R(read(p[0], page, 4096));
	R(write(p[1], end - 4000, 4096));
	R(read(p[0], page, 4096));
	/* Longer than a page. */
	R(write(p[1], end - 5000, 8192));
	R(read(p[0], page, 3 * 4096));
	R(write(p[1], end - 12000, 16384));
	R(read(p[0], page, 3 * 4096));
	R(write(p[1], "a", 1));
	R(write(p[1], end - 5000, 4096 + 100));
	R(write(p[1], end - 5000, 8192 + 100));
	R(read(p[0], page, 3 * 4096));
	/* Reads. */
	R(write(p[1], page, 200));
	R(read(p[0], end - 96, 200));
	R(read(p[0], page, 4096));
	R(write(p[1], page, 8192));
	R(read(p[0], end - 5000, 8192));
	R(read(p[0], page, 3 * 4096));
	return t_failed;
}
