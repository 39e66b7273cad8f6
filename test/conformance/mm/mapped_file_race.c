/* Threads read, write, append, cut and map one file by its own mapping, all at once: nobody waits for himself, and what is there is right. */
#include "t.h"
#include <setjmp.h>
enum { PAGE = 4096, PAGES = 512, MS = 400 };

static int fd;
static char *at;
static long until;
static volatile int wrong;
static __thread sigjmp_buf back;
static __thread unsigned seed;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

static unsigned any(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % below;
}

/* One word a page, the page's number or, after a cut, zero. */
static void look(unsigned page)
{
	if (sigsetjmp(back, 1))
		return;
	unsigned found = *(volatile unsigned *)(at + (size_t)page * PAGE);
	if (found != 0 && found != page)
		wrong++;
}

static void *one(void *which)
{
	long kind = (long)which;
	seed = kind + 1;
	unsigned turns = 0;
	while (t_now() < until || turns < 20) {
		unsigned page = any(PAGES);
		char *place = at + (size_t)page * PAGE;
		turns++;
		switch (kind) {
		case 0:
			look(page);
			break;
		case 1:
			/* Its own number over itself, from the mapping into the file. */
			if (pwrite(fd, &page, sizeof page, (off_t)page * PAGE) < 0)
				wrong++;
			pwrite(fd, place + 8, PAGE - 8, (off_t)any(PAGES) * PAGE + 8);
			break;
		case 2:
			pread(fd, place + 64, PAGE - 64, (off_t)any(PAGES) * PAGE + 64);
			break;
		case 3:
			madvise(place, PAGE, MADV_DONTNEED);
			look(page);
			break;
		case 4: {
			char *other = mmap(0, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, (off_t)(page & ~7u) * PAGE);
			if (other == MAP_FAILED) {
				wrong++;
				break;
			}
			if (!sigsetjmp(back, 1)) {
				other[any(8) * PAGE + 16] = 1;
				unsigned found = *(volatile unsigned *)other;
				if (found != 0 && found != (page & ~7u))
					wrong++;
			}
			munmap(other, 8 * PAGE);
			break;
		}
		case 5:
			ftruncate(fd, (off_t)(PAGES - any(64)) * PAGE);
			ftruncate(fd, (off_t)PAGES * PAGE);
			break;
		}
	}
	return 0;
}

int main(void)
{
	fd = must(open("raced", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	for (unsigned page = 0; page < PAGES; page++)
		must(pwrite(fd, &page, sizeof page, (off_t)page * PAGE) == sizeof page ? 0 : -1);
	at = mmap(0, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(at == MAP_FAILED ? -1 : 0);
	t_handle(SIGBUS, on_bus, SA_NODEFER);
	until = t_now() + MS;
	pthread_t threads[6];
	for (long kind = 0; kind < 6; kind++)
		must(-pthread_create(&threads[kind], 0, one, (void *)kind));
	for (int kind = 0; kind < 6; kind++)
		must(-pthread_join(threads[kind], 0));
	N(wrong);
	CHILD("forked", T(at[0] == 0));
	unlink("raced");
	return t_done();
}
