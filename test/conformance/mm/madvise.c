/* madvise: DONTNEED gives zeros or the file back, the hints are taken, the unknown is refused. */
#include "t.h"
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
int main(void)
{
	char *b = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(b, 5, 65536);
	R(madvise(b + 4096, 8192, MADV_DONTNEED));
	T(b[4095] == 5 && b[4096] == 0 && b[12287] == 0 && b[12288] == 5);
	t_write("f", "content of the file");
	int f = must(open("f", O_RDWR));
	char *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, f, 0), *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	p[0] = 'C', s[1] = 'O';
	R(madvise(p, 4096, MADV_DONTNEED));
	R(madvise(s, 4096, MADV_DONTNEED));
	T(!memcmp(p, "cOntent", 7) && !memcmp(s, "cOntent", 7));
	int hint[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP, MADV_MERGEABLE, MADV_UNMERGEABLE};
	for (int i = 0; i < 10; i++) {
		int r = madvise(b, 65536, hint[i]);
		say("hint %d: %s\n", hint[i], r == 0 || errno == EINVAL ? "ok or not built in" : t_errno(errno));
	}
	R(madvise(b + 1, 4096, MADV_DONTNEED));
	R(madvise(b, 4096, 9999));
	R(madvise(b, 0, MADV_DONTNEED));
	munmap(b + 16384, 4096);
	R(madvise(b, 65536, MADV_DONTNEED)); /* done, yet it reports a hole */
	T(b[0] == 0 && b[40960] == 0);
	R(madvise(b, 4096, MADV_FREE));
	b[0] = 1;
	T(b[0] == 1);
	R(madvise(s, 4096, MADV_FREE));
	R(madvise(b, 8192, MADV_POPULATE_WRITE));
	must(ftruncate(f, 8192));
	s = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	s[5000] = 1;
	R(madvise(s + 4096, 4096, MADV_REMOVE));
	T(s[5000] == 0);
	CHILD("DONTNEED and fork", {
		memset(b, 4, 8192);
		madvise(b, 4096, MADV_DONTNEED);
		T(b[0] == 0 && b[4096] == 4);
	});
	return t_done();
}
