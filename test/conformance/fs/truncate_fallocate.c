/* truncate, ftruncate, fallocate with its modes. */
#include "t.h"
#include <linux/falloc.h>
static long size(int f)
{
	struct stat s;
	fstat(f, &s);
	return s.st_size;
}
static char b[65536];
static int zero(int f, long o, long n)
{
	if (pread(f, b, n, o) != n)
		return -1;
	for (long i = 0; i < n; i++)
		if (b[i])
			return 0;
	return 1;
}
int main(void)
{
	t_write("f", "0123456789");
	R(truncate("f", 5));
	R(truncate("f", 20));
	int f = must(open("f", O_RDWR)), r = must(open("f", O_RDONLY)), p[2];
	N(size(f));
	N(zero(f, 5, 15));
	R(truncate("f", -1));
	R(truncate("none", 1));
	R(truncate(".", 1));
	R(truncate("f/x", 1));
	R(ftruncate(r, 1));
	R(ftruncate(f, -1));
	R(ftruncate(99, 1));
	must(pipe(p));
	R(ftruncate(p[1], 1));
	lseek(f, 15, SEEK_SET);
	R(ftruncate(f, 10));
	N(lseek(f, 0, SEEK_CUR));
	R(read(f, b, 1));
	R(write(f, "x", 1));
	N(size(f));
	R(ftruncate(f, 65536));
	memset(b, 'a', sizeof b);
	R(pwrite(f, b, 65536, 0));
	R(fallocate(f, 0, 0, 100));
	N(size(f));
	R(fallocate(f, 0, 65536, 4096));
	N(size(f));
	N(zero(f, 65536, 4096));
	R(fallocate(f, FALLOC_FL_KEEP_SIZE, 100000, 4096));
	N(size(f));
	R(fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100, 8192));
	N(zero(f, 100, 8192));
	pread(f, b, 1, 99);
	T(b[0] == 'a');
	pread(f, b, 1, 8292);
	T(b[0] == 'a');
	R(fallocate(f, FALLOC_FL_PUNCH_HOLE, 100, 8192));
	R(fallocate(f, 0, 0, 0));
	R(fallocate(f, 0, -1, 10));
	R(fallocate(f, 0x800, 0, 10));
	R(fallocate(r, 0, 0, 10));
	R(fallocate(p[1], 0, 0, 10));
	int d = must(open(".", O_RDONLY));
	R(fallocate(d, 0, 0, 10));
	R(posix_fallocate(f, 0, 200000));
	N(size(f));
	/* A mapping sees what a cut takes away and gives back. */
	char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	m[50] = 'm', m[5000] = 'm';
	R(ftruncate(f, 40));
	R(ftruncate(f, 8192));
	T(m[50] == 0 && m[5000] == 0);
	R(fsync(f));
	R(fdatasync(f));
	R(fsync(p[0]));
	R(syscall(SYS_sync_file_range, f, 0, 0, 0));
	R(posix_fadvise(f, 0, 0, POSIX_FADV_DONTNEED));
	R(posix_fadvise(p[0], 0, 0, POSIX_FADV_DONTNEED));
	R(posix_fadvise(f, 0, 0, 99));
	R(readahead(f, 0, 4096));
	sync();
	R(syncfs(f));
	return t_done();
}
