/* mmap: anonymous and file, private and shared, hints, and every refusal. */
/* not: i386 */
#include "t.h"
#define M(a, n, p, f, fd, o) say("mmap(" #a ", " #n ", " #p ", " #f ", " #fd ", " #o "): %s\n", mmap(a, n, p, f, fd, o) == MAP_FAILED ? t_errno(errno) : "ok")
int main(void)
{
	int f = must(open("f", O_RDWR | O_CREAT, 0600)), r, w, d, p[2];
	char b[10000];
	memset(b, 'a', sizeof b);
	must(write(f, b, sizeof b));
	r = must(open("f", O_RDONLY)), w = must(open("f", O_WRONLY)), d = must(open(".", O_RDONLY));
	must(pipe(p));
	M(0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	M(0, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	M(0, 4096, PROT_READ, MAP_ANONYMOUS, -1, 0);
	M(0, 4096, PROT_READ, MAP_PRIVATE, -1, 0);
	M(0, 4096, PROT_READ, MAP_PRIVATE, 99, 0);
	M(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, 99, 0);
	M(0, 4096, PROT_READ, MAP_PRIVATE, f, 1);
	M(0, 4096, PROT_READ, MAP_PRIVATE, f, 1 << 20);
	M(0, -1ul, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	M(0, 1ul << 47, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	M(0, 4096, PROT_READ, MAP_PRIVATE, w, 0);
	M(0, 4096, PROT_WRITE, MAP_PRIVATE, w, 0);
	M(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, r, 0);
	M(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r, 0);
	M(0, 4096, PROT_READ, MAP_SHARED, r, 0);
	M(0, 4096, PROT_READ, MAP_PRIVATE, d, 0);
	M(0, 4096, PROT_READ, MAP_PRIVATE, p[0], 0);
	M((void *)4097, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	M((void *)(1ul << 47), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	M((void *)-4096ul, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	M(0, 4096, PROT_READ, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0);
	M(0, 4096, PROT_READ, MAP_SHARED_VALIDATE | 0x400000, r, 0);
	M(0, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	M(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	M(0, 64ul << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int zf = must(open("/dev/zero", O_RDWR));
	char *z = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, zf, 0);
	T(z != MAP_FAILED && z[8191] == 0 && (z[5] = 3));
	/* Private: own copy. Shared: the file. */
	char *pr = mmap(0, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE, f, 0), *sh = mmap(0, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0), *sh2 = mmap(0, 4096, PROT_READ, MAP_SHARED, r, 4096);
	pr[0] = 'P', sh[1] = 'S', sh[4096] = '2';
	must(pread(f, b, 2, 0));
	T(b[0] == 'a' && b[1] == 'S');
	T(sh2[0] == '2');
	must(pwrite(f, "W", 1, 3));
	T(sh[3] == 'W');
	T(sh[10001] == 0 && sh[12287] == 0); /* the rest of the last page is zero */
	close(f), close(r);
	unlink("f");
	T(sh[3] == 'W' && sh2[0] == '2'); /* the mapping keeps the file */
	/* A hint that is free is taken; a taken one is not. */
	char *h = mmap(0, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(h, 65536);
	T(mmap(h, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == h);
	T(mmap(h, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != h);
#ifdef __x86_64__
	/* Also with MAP_32BIT, below the first gibibyte as well; beyond the second it is elsewhere in that part. */
	char *low = (char *)0x31230000, *high = (char *)0x7fff0000;
	T(mmap(low, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0) == low);
	T(mmap(low, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0) != low);
	char *part = mmap(high, 131072, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	T(part >= (char *)0x40000000 && part + 131072 <= (char *)0x80000000);
	munmap(low, 4096);
	munmap(part, 131072);
#endif
	R(munmap((void *)1, 4096));
	R(munmap(h, 0));
	R(munmap((void *)-4096ul, 8192));
	R(munmap(h, 4096));
	R(munmap(h, 4096)); /* nothing there is no error */
	R(msync(sh, 4096, MS_SYNC));
	R(msync(sh + 1, 4096, MS_SYNC));
	R(msync(h, 4096, MS_SYNC));
	R(msync(sh, 4096, MS_SYNC | MS_ASYNC));
	unsigned char v[3];
	R(mincore(sh, 10000, v));
	R(mincore(h, 4096, v));
	R(mincore(sh + 1, 4096, v));
	/* The address is looked at before the place for the result, and the length before that, too. */
	R(mincore(sh + 1, 4096, (void *)-1l));
	R(mincore(sh, -4096ul, (void *)-1l));
	R(mincore(sh, 4096, (void *)-1l));
	R(mlock(sh, 4096));
	R(munlock(sh, 4096));
	R(mlock(h, 4096));
	return t_done();
}
