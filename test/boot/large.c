// Memory above 4 GiB: it is there, and keeps what is put there. The kernel gives programs the highest first.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define USE (64l << 20)

int main(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), wrong = 0;
	long *all = mmap(NULL, USE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("more than 4 GiB: %s\n", pages > (4l << 30) / 4096 ? "yes" : "no");
	for (long at = 0; at < USE / 8; at += 64)
		all[at] = at;
	for (long at = 0; at < USE / 8; at += 64)
		wrong += all[at] != at;
	printf("kept: %s\n", wrong == 0 ? "yes" : "no");
	return 0;
}
