/* mremap: shrink, grow in place, move, fixed, and what is refused. */
#include "t.h"
static char *map(size_t n) { return mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static int ok(char *p, size_t n, int v)
{
	for (size_t i = 0; i < n; i += 4096)
		if (p[i] != v)
			return 0;
	return 1;
}
#define ERR(e) say("%s: %s\n", #e, (e) == MAP_FAILED ? t_errno(errno) : "ok")
int main(void)
{
	char *b = map(262144);
	munmap(b + 65536, 196608);
	memset(b, 5, 65536);
	T(mremap(b, 65536, 32768, 0) == b);
	unsigned char v[16];
	R(mincore(b + 32768, 4096, v));
	T(mremap(b, 32768, 65536, 0) == b); /* the room behind is free again */
	T(ok(b, 32768, 5) && ok(b + 32768, 32768, 0));
	char *wall = mmap(b + 65536, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	T(wall == b + 65536);
	ERR(mremap(b, 65536, 131072, 0));
	char *n = mremap(b, 65536, 131072, MREMAP_MAYMOVE);
	T(n != MAP_FAILED && n != b && ok(n, 32768, 5) && ok(n + 65536, 65536, 0));
	R(mincore(b, 4096, v));
	/* Fixed: over something else. */
	char *t = map(131072);
	memset(t, 8, 131072);
	T(mremap(n, 32768, 32768, MREMAP_MAYMOVE | MREMAP_FIXED, t) == t);
	T(ok(t, 32768, 5) && ok(t + 32768, 98304, 8));
	ERR(mremap(n, 32768, 4096, MREMAP_MAYMOVE));
	ERR(mremap(t, 4096, 0, 0));
	ERR(mremap(t + 1, 4096, 8192, 0));
	ERR(mremap(t, 4096, 4096, MREMAP_FIXED, n));
	ERR(mremap(t, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, t + 4096));
	ERR(mremap(t, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)77));
	ERR(mremap(t, 4096, 8192, 64));
	ERR(mremap(t, 1ul << 40, 1ul << 41, MREMAP_MAYMOVE));
	/* Shared memory moves with its content and stays shared. */
	int f = must(memfd_create("m", 0));
	must(ftruncate(f, 65536));
	char *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	s[0] = 'x';
	s = mremap(s, 4096, 65536, MREMAP_MAYMOVE);
	T(s != MAP_FAILED && s[0] == 'x');
	s[65535] = 'y';
	char c;
	must(pread(f, &c, 1, 65535));
	T(c == 'y');
	/* Old size 0 of a shared mapping makes a second one. */
	char *d = mremap(s, 0, 4096, MREMAP_MAYMOVE);
	T(d != MAP_FAILED && d != s && d[0] == 'x' && (d[1] = 'z') && s[1] == 'z');
	char *k = map(16384);
	memset(k, 3, 16384);
	char *l = (char *)syscall(SYS_mremap, k, 16384, 16384, MREMAP_MAYMOVE | 4 /* DONTUNMAP */, 0);
	T(l != MAP_FAILED);
	T(ok(l, 16384, 3));
	T(ok(k, 16384, 0));
	/* A realloc that grows to 64 MiB. */
	size_t z = 1 << 20;
	char *r = malloc(z);
	memset(r, 6, z);
	for (; z < 64 << 20; z *= 2)
		r = realloc(r, z * 2);
	T(ok(r, 1 << 20, 6));
	free(r);
	return t_done();
}
