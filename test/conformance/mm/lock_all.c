/* mlockall(2): what is mapped becomes present, but not with MCL_ONFAULT. And an advice that one of several mappings refuses. */
#include "t.h"
enum { PAGES = 16 };
static long page;
static int present(char *p)
{
	unsigned char v[PAGES];
	int n = 0;
	must(mincore(p, PAGES * page, v));
	for (int i = 0; i < PAGES; i++)
		n += v[i] & 1;
	return n;
}
static char *map(int prot)
{
	char *p = mmap(0, PAGES * page, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* A mapping of its own: huge pages of a neighbour do not reach into it. */
	must(p == MAP_FAILED ? -1 : 0);
	must(madvise(p, PAGES * page, MADV_NOHUGEPAGE));
	return p;
}
int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	/* Who may lock as much as he likes need not, and may not everywhere. */
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	setrlimit(RLIMIT_MEMLOCK, &all);
	char *p = map(PROT_READ | PROT_WRITE), *none = map(PROT_NONE), *q, *r;
	N(present(p));
	R(mlockall(MCL_CURRENT | MCL_ONFAULT));
	N(present(p));
	p[0] = 1;
	N(present(p));
	R(munlockall());
	R(mlockall(MCL_CURRENT));
	N(present(p));
	N(present(none));
	q = map(PROT_READ | PROT_WRITE);
	N(present(q));
	R(munlockall());
	R(mlockall(MCL_FUTURE));
	r = map(PROT_READ | PROT_WRITE);
	N(present(q));
	N(present(r));
	R(munlockall());
	R(mlockall(MCL_FUTURE | MCL_ONFAULT));
	r = map(PROT_READ | PROT_WRITE);
	N(present(r));
	R(munlockall());
	/* Two files side by side; the second mapping cannot be written: what is before it has its hole. */
	int fd = must(open("f", O_RDWR | O_CREAT, 0600)), ro;
	char bytes[4096];
	memset(bytes, 'x', sizeof bytes);
	for (int i = 0; i < 2; i++)
		must(write(fd, bytes, sizeof bytes));
	ro = must(open("f", O_RDONLY));
	char *two = mmap(0, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(mmap(two, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == two);
	T(mmap(two + page, page, PROT_READ, MAP_SHARED | MAP_FIXED, ro, page) == two + page);
	R(madvise(two, 2 * page, MADV_REMOVE));
	say("%d %d\n", two[0], two[page]);
	return t_done();
}
