/* The lines of /proc/PID/smaps: their order and columns, which programs cut by position, and what they show of memory of one's own. */
#include "t.h"
#define PAGES 64
int main(void)
{
	size_t size = PAGES * 4096;
	char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(p != MAP_FAILED);
	/* Written, and a page of its own kind on either side: nothing is joined to it. */
	mprotect(p, 4096, PROT_NONE);
	mprotect(p + size - 4096, 4096, PROT_NONE);
	memset(p + 4096, 1, size - 8192);
	char head[40], line[512];
	snprintf(head, sizeof head, "%08lx-", (unsigned long)(p + 4096));
	FILE *f = fopen("/proc/self/smaps", "r");
	int in = 0, kib = 0, wrong = 0, seen = 0;
	while (f && fgets(line, sizeof line, f)) {
		if (strchr("0123456789abcdef", line[0]))
			in = strncmp(line, head, strlen(head)) == 0;
		else if (strstr(line, " kB\n")) {
			kib++;
			wrong += strlen(line) != 28 || line[27] != '\n' || line[23] == ' ';
			if (in && (!strncmp(line, "Size:", 5) || !strncmp(line, "Rss:", 4) || !strncmp(line, "Anonymous:", 10) ||
				   !strncmp(line, "Private_Dirty:", 14) || !strncmp(line, "Swap:", 5))) {
				say("%s", line);
				seen++;
			}
		}
	}
	N(seen);
	T(kib > 20);
	N(wrong);
	return t_done();
}
