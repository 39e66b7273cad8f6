/* memfd_create(2) with MFD_HUGETLB: a file of huge pages has a size and holes; more of them than any machine sets aside cannot be had. */
#include "t.h"
#include <sys/mman.h>
#include <sys/vfs.h>

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4U
#endif
#define MANY (1L << 30)
#define PAGE (2L << 20)

static int make(unsigned flags)
{
	return syscall(SYS_memfd_create, "huge", flags);
}

static void sizes(int f)
{
	struct stat s;
	struct statfs fs;
	char b[16] = "12345678";

	must(fstat(f, &s));
	say("mode %o size %ld of %ld\n", s.st_mode, (long)s.st_size, (long)s.st_blksize);
	must(fstatfs(f, &fs));
	say("type %lx of %ld\n", (long)fs.f_type & 0xffffffff, (long)fs.f_bsize);
	R(ftruncate(f, 4096));
	R(ftruncate(f, PAGE + 1));
	R(ftruncate(f, MANY));
	say("size %ld\n", (long)must(lseek(f, 0, SEEK_END)));
	R(pread(f, b, 8, PAGE - 4));
	say("read %d %d\n", b[0], b[7]);
	R(pwrite(f, b, 8, 0));
	R(write(f, b, 0));
}

static void pages(int f)
{
	say("shared %d\n", mmap(0, MANY, PROT_READ, MAP_SHARED, f, 0) == MAP_FAILED ? errno : 0);
	say("private %d\n", mmap(0, MANY, PROT_READ | PROT_WRITE, MAP_PRIVATE, f, 0) == MAP_FAILED ? errno : 0);
	say("anonymous %d\n",
	    mmap(0, MANY, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | 0x40000, -1, 0) == MAP_FAILED ? errno : 0);
	R(fallocate(f, 0, 0, MANY));
	R(fallocate(f, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, PAGE));
	R(ftruncate(f, 0));
	say("size %ld\n", (long)must(lseek(f, 0, SEEK_END)));
}

static void sealed(void)
{
	int f = must(make(MFD_HUGETLB | MFD_ALLOW_SEALING | 21U << 26));

	R(fcntl(f, F_GET_SEALS));
	R(fcntl(f, F_ADD_SEALS, F_SEAL_GROW));
	R(ftruncate(f, PAGE));
	R(ftruncate(f, 0));
}

int main(void)
{
	int f = must(make(MFD_HUGETLB));

	sizes(f);
	pages(f);
	sealed();
	R(fcntl(f, F_GET_SEALS));
	R(make(MFD_HUGETLB | 16U << 26));
	R(make(21U << 26));
	R(make(0x20));
	return 0;
}
