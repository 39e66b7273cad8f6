/* Shared memory segments are objects of their own: a mapping that is made longer than its segment never shows another one's memory,
 * and what a segment held is gone with it. The same of memfd_create's files, small and large, before and after they are mapped. */
#include "t.h"
#include <setjmp.h>
#include <sys/shm.h>

#define PAGE 4096
#define MANY 64

static sigjmp_buf out;

static void on_bus(int sig)
{
	siglongjmp(out, sig);
}

/* The byte, or -1 where it is SIGBUS's. */
static int look(volatile char *at)
{
	if (sigsetjmp(out, 1))
		return -1;
	return (unsigned char)*at;
}

static int attached(int id)
{
	struct shmid_ds s;
	must(shmctl(id, IPC_STAT, &s));
	return s.shm_nattch;
}

static void segments(void)
{
	static int id[MANY];
	static char *at[MANY];
	for (int i = 0; i < MANY; i++) {
		id[i] = must(shmget(IPC_PRIVATE, PAGE * (1 + i % 2) - 100, 0600));
		at[i] = shmat(id[i], 0, 0);
		T(at[i] != (void *)-1);
		T(look(at[i]) == 0 && look(at[i] + PAGE - 1) == 0);
		memset(at[i], i + 1, PAGE);
	}
	/* Longer than the segment. */
	char *more = mremap(at[2], PAGE, 3 * PAGE, MREMAP_MAYMOVE);
	T(more != MAP_FAILED);
	N(look(more));
	N(look(more + PAGE));
	N(look(more + 2 * PAGE));
	N(attached(id[2]));
	/* A second mapping of the same, by an old length of 0. */
	char *twin = mremap(at[4], 0, 4 * PAGE, MREMAP_MAYMOVE);
	T(twin != MAP_FAILED && twin != at[4]);
	N(look(twin));
	N(look(twin + PAGE));
	N(look(twin + 3 * PAGE));
	twin[1] = 77;
	N(look(at[4] + 1));
	N(attached(id[4]));
	/* From the middle on. */
	R(munmap(at[5] + PAGE, PAGE));
	char *long_again = mremap(at[5], PAGE, 3 * PAGE, MREMAP_MAYMOVE);
	T(long_again != MAP_FAILED);
	N(look(long_again + PAGE));
	N(look(long_again + 2 * PAGE));
	long_again[PAGE] = 55;
	char *other = shmat(id[5], 0, SHM_RDONLY);
	T(other != (void *)-1);
	N(look(other + PAGE));
	/* A child has them too. */
	pid_t child = must(fork());
	if (child == 0) {
		T(look(more + PAGE) == -1 && look(long_again + PAGE) == 55);
		twin[2] = 78;
		_exit(t_failed);
	}
	int status;
	T(waitpid(child, &status, 0) == child && status == 0);
	N(look(at[4] + 2));
	for (int i = 6; i < MANY; i++)
		T(look(at[i]) == i + 1 && look(at[i] + PAGE - 1) == i + 1);
	/* One that is gone leaves nothing. */
	for (int i = 6; i < MANY; i++) {
		must(shmctl(id[i], IPC_RMID, 0));
		must(shmdt(at[i]));
	}
	int fresh = must(shmget(IPC_PRIVATE, 16 * PAGE, 0600));
	char *empty = shmat(fresh, 0, 0);
	T(empty != (void *)-1);
	for (int i = 0; i < 16; i++)
		T(look(empty + i * PAGE) == 0);
	must(shmctl(fresh, IPC_RMID, 0));
	for (int i = 0; i < 6; i++)
		must(shmctl(id[i], IPC_RMID, 0));
}

static void files(off_t size)
{
	struct stat s;
	char b[16] = "";
	int f = must(memfd_create("m", 0));
	N(pwrite(f, "begin", 5, 0));
	N(pwrite(f, "end", 3, size - 3));
	must(fstat(f, &s));
	N(s.st_size - size);
	N(s.st_blocks);
	N(lseek(f, 5 * PAGE, SEEK_DATA) - size);
	N(lseek(f, 0, SEEK_HOLE));
	N(pread(f, b, 5, 0));
	S(b);
	char *m = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	T(m != MAP_FAILED);
	T(!memcmp(m, "begin", 5) && !memcmp(m + size - 3, "end", 3));
	m[1] = 'i';
	N(pread(f, b, 5, 0));
	S(b);
	R(ftruncate(f, PAGE));
	N(look(m));
	N(look(m + PAGE));
	R(ftruncate(f, 2 * PAGE));
	N(look(m + PAGE));
	R(fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	N(look(m));
	R(fallocate(f, 0, 0, 0));
	R(fallocate(f, FALLOC_FL_PUNCH_HOLE, 0, PAGE));
	R(munmap(m, size));
	R(close(f));
}

static void times(void)
{
	struct stat a, b;
	char c;
	struct timespec old[2] = { { 1000, 5 }, { 2000, 6 } };
	int f = must(memfd_create("t", 0));
	R(futimens(f, old));
	must(fstat(f, &a));
	T(a.st_atime == 1000 && a.st_atim.tv_nsec == 5 && a.st_mtime == 2000);
	N(write(f, "x", 1));
	must(fstat(f, &b));
	T(b.st_atime == 1000 && b.st_mtime > 2000);
	R(futimens(f, old));
	N(pread(f, &c, 1, 0));
	must(fstat(f, &b));
	T(b.st_atime > 1000 && b.st_mtime == 2000);
	R(ftruncate(f, 10));
	must(fstat(f, &b));
	T(b.st_mtime > 2000);
}

int main(void)
{
	signal(SIGBUS, on_bus);
	segments();
	files(10 * PAGE);
	files(1000 * PAGE);
	times();
}
