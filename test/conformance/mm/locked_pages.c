/* /proc/PID/smaps: what of a mapping is locked. */
#include "t.h"
enum { PAGES = 8 };
static long page;
static char *p;
/* KiB of a line of p's mapping, or of the mapping around a page of it. */
static long line(int at, const char *name)
{
	char b[256];
	long start, end, kib = -1;
	int in = 0;
	FILE *f = fopen("/proc/self/smaps", "r");
	while (f && fgets(b, sizeof b, f)) {
		if (sscanf(b, "%lx-%lx ", &start, &end) == 2 && strchr(b, '-') < strchr(b, ' '))
			in = (uintptr_t)p + at * page >= (uintptr_t)start && (uintptr_t)p + at * page < (uintptr_t)end;
		else if (in && !strncmp(b, name, strlen(name)) && b[strlen(name)] == ':')
			kib = atol(b + strlen(name) + 1);
	}
	if (f)
		fclose(f);
	return kib;
}
int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	p = mmap(0, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(p != MAP_FAILED);
	/* A mapping of its own in every account: no neighbour joins it. */
	must(madvise(p, PAGES * page, MADV_DONTFORK));
	N(line(0, "Rss"));
	N(line(0, "Locked"));
	R(mlock(p, PAGES * page));
	N(line(0, "Rss") * 1024 / page);
	N(line(0, "Locked") * 1024 / page);
	R(munlock(p, PAGES / 2 * page));
	N(line(0, "Rss") * 1024 / page);
	N(line(0, "Locked"));
	N(line(PAGES / 2, "Locked") * 1024 / page);
	R(munlock(p, PAGES * page));
	N(line(PAGES / 2, "Locked"));
	return t_done();
}
