/* A mapping of a file: pages come when they are touched, by user code or by the kernel on its behalf, and what has no page is SIGBUS or
 * EFAULT. On a disk nothing of it is in memory before. */
#include "t.h"
#include <linux/futex.h>
#include <setjmp.h>
enum { PAGE = 4096, BIG = 2048, SMALL = 64 };

static sigjmp_buf back;
static volatile int code;
static void *volatile where;

static void on_bus(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	code = info->si_code;
	where = info->si_addr;
	siglongjmp(back, 1);
}

/* Whether a touch is SIGBUS, with the address. */
static int is_bus(volatile char *at)
{
	if (sigsetjmp(back, 1))
		return code == BUS_ADRERR && where == (void *)at;
	(void)*at;
	return 0;
}

static char *map(int fd, int pages, int prot, int flags)
{
	char *at = mmap(0, (size_t)pages * PAGE, prot, flags, fd, 0);
	must(at == MAP_FAILED ? -1 : 0);
	return at;
}

static int present(char *at, int pages)
{
	static unsigned char in[BIG];
	int count = 0;
	must(mincore(at, (size_t)pages * PAGE, in));
	for (int i = 0; i < pages; i++)
		count += in[i] & 1;
	return count;
}

/* A file whose pages begin with their number. */
static int made(const char *name, int pages)
{
	int fd = must(open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	char page[PAGE];
	for (int i = 0; i < pages; i++) {
		snprintf(page, sizeof page, "page %d", i);
		memset(page + 100, 'a' + i % 26, PAGE - 100);
		must(write(fd, page, PAGE) == PAGE ? 0 : -1);
	}
	return fd;
}

static int is_page(const char *at, int number)
{
	return atoi(at + 5) == number && at[PAGE - 1] == 'a' + number % 26;
}

static void sparse(void)
{
	int fd = must(open("sparse", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	must(ftruncate(fd, (off_t)BIG * PAGE));
	char *at = map(fd, BIG, PROT_READ | PROT_WRITE, MAP_SHARED);
	T(at[0] == 0 && at[(size_t)1000 * PAGE + 7] == 0);
	at[(size_t)BIG * PAGE - 1] = 'z';
	T(present(at, BIG) >= 3);
	OK(msync(at, (size_t)BIG * PAGE, MS_SYNC));
	char last;
	T(pread(fd, &last, 1, (off_t)BIG * PAGE - 1) == 1 && last == 'z');
	/* What is written by a call is seen at once, in a page that was there and in one that was not. */
	must(pwrite(fd, "X", 1, (off_t)1000 * PAGE) == 1 ? 0 : -1);
	must(pwrite(fd, "Y", 1, (off_t)1500 * PAGE) == 1 ? 0 : -1);
	T(at[(size_t)1000 * PAGE] == 'X' && at[(size_t)1500 * PAGE] == 'Y');
	munmap(at, (size_t)BIG * PAGE);
	close(fd);
	unlink("sparse");
}

static void shared_and_private(void)
{
	int fd = made("pages", SMALL);
	char *ours = map(fd, SMALL, PROT_READ | PROT_WRITE, MAP_SHARED);
	char *mine = map(fd, SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	int good = 0;
	for (int i = SMALL - 1; i >= 0; i--)
		good += is_page(mine + i * PAGE, i) && is_page(ours + i * PAGE, i);
	N(good);
	strcpy(mine, "mine 99");
	T(is_page(ours, 0) && !is_page(mine, 0));
	CHILD("writer", strcpy(ours + PAGE, "from 77"); strcpy(mine + PAGE, "lost"); T(!strcmp(mine, "mine 99")));
	S(ours + PAGE);
	S(mine + PAGE);
	/* The copy goes, and the file is seen again. */
	OK(madvise(mine, SMALL * PAGE, MADV_DONTNEED));
	T(is_page(mine, 0));
	OK(madvise(ours, SMALL * PAGE, MADV_WILLNEED));
	char text[8];
	T(pread(fd, text, 8, PAGE) == 8 && !strcmp(text, "from 77"));
	char *moved = mremap(mine + 8 * PAGE, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	T(moved != MAP_FAILED && is_page(moved, 8) && is_page(moved + 15 * PAGE, 23));
	char *all = map(fd, SMALL, PROT_READ, MAP_PRIVATE | MAP_POPULATE);
	T(present(all, SMALL) == SMALL);
	close(fd);
	/* The mapping keeps the file, which has no name any more. */
	OK(unlink("pages"));
	T(is_page(all + 40 * PAGE, 40));
	munmap(all, SMALL * PAGE);
	munmap(ours, SMALL * PAGE);
}

static void beyond_the_end(void)
{
	int fd = made("short", 8);
	must(ftruncate(fd, 6 * PAGE + 10));
	char *at = map(fd, 10, PROT_READ | PROT_WRITE, MAP_SHARED);
	char *mine = map(fd, 10, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	T(at[6 * PAGE + 5] == '6' && at[6 * PAGE + 10] == 0 && at[7 * PAGE - 1] == 0);
	T(is_bus(at + 7 * PAGE) && is_bus(mine + 9 * PAGE + 1));
	int pipes[2];
	must(pipe(pipes));
	R(write(pipes[1], at + 8 * PAGE, 10));
	R(write(pipes[1], at + 7 * PAGE - 3, 10));
	must(write(pipes[1], "two", 2));
	R(read(pipes[0], at + 7 * PAGE, 2));
	R(pread(fd, at + 7 * PAGE - 4, 8, 0));
	R(open(at + 7 * PAGE, O_RDONLY));
	R(syscall(SYS_futex, at + 7 * PAGE, FUTEX_WAIT, 1, 0, 0, 0));
	/* Cut under the mapping, copies and all; longer again. */
	mine[3 * PAGE] = 'M';
	T(is_page(at + 4 * PAGE, 4));
	OK(ftruncate(fd, 2 * PAGE));
	T(is_bus(at + 4 * PAGE) && is_bus(mine + 3 * PAGE) && is_page(mine + PAGE, 1));
	CHILD("toucher", signal(SIGBUS, SIG_DFL); at[5 * PAGE] = 1);
	OK(ftruncate(fd, 9 * PAGE));
	T(at[4 * PAGE] == 0 && mine[3 * PAGE] == 0 && mine[8 * PAGE] == 0);
	at[8 * PAGE] = '8';
	T(mine[8 * PAGE] == '8');
	munmap(at, 10 * PAGE);
	munmap(mine, 10 * PAGE);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	unlink("short");
}

/* The kernel's accesses to pages nobody has touched; to those of the very file too that the call is about. */
static void by_the_kernel(void)
{
	int fd = must(open("self", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	must(ftruncate(fd, (off_t)BIG * PAGE));
	char *at = map(fd, BIG, PROT_READ | PROT_WRITE, MAP_SHARED);
	R(pwrite(fd, at + 300 * PAGE, 5 * PAGE, 310 * PAGE + 100));
	R(pread(fd, at + 500 * PAGE, 3 * PAGE, 700 * PAGE));
	struct iovec parts[2] = {{at + 800 * PAGE - 5, 10}, {at + 900 * PAGE, PAGE}};
	R(pwritev(fd, parts, 2, 899 * PAGE));
	R(preadv(fd, parts, 2, 1000 * PAGE - 10));
	int end = must(open("self", O_WRONLY | O_APPEND | O_CLOEXEC));
	R(write(end, at + 1100 * PAGE, 40 * PAGE));
	T(lseek(fd, 0, SEEK_END) == (off_t)(BIG + 40) * PAGE);
	/* A word, a name, a structure. */
	R(syscall(SYS_futex, at + 1300 * PAGE, FUTEX_WAIT, 1, 0, 0, 0));
	R(syscall(SYS_futex, at + 1400 * PAGE, FUTEX_WAKE, 1, 0, 0, 0));
	R(open(at + 1500 * PAGE, O_RDONLY));
	OK(fstat(fd, (struct stat *)(at + 1600 * PAGE - 8)));
	T(pread(fd, at + 1700 * PAGE, PAGE, 1599 * PAGE) == PAGE);
	T(memcmp(at + 1700 * PAGE, at + 1599 * PAGE, PAGE) == 0);
	munmap(at, (size_t)BIG * PAGE);
	close(end);
	close(fd);
	unlink("self");
}

int main(void)
{
	t_info(SIGBUS, on_bus, 0);
	sparse();
	shared_and_private();
	beyond_the_end();
	by_the_kernel();
	return t_done();
}
