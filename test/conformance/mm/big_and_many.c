/* Large and many mappings, threads that map and unmap at once, memory given back. */
#include "t.h"
static void *th(void *a)
{
	long id = (long)a, bad = 0;
	for (int i = 0; i < 400; i++) {
		size_t n = 4096 * (1 + (i + id) % 16);
		char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED) {
			bad++;
			continue;
		}
		for (size_t k = 0; k < n; k += 4096)
			bad += p[k] != 0, p[k] = id;
		for (size_t k = 0; k < n; k += 4096)
			bad += p[k] != id;
		if (i % 4 == 0)
			mprotect(p, 4096, PROT_READ);
		munmap(p, n);
	}
	return (void *)bad;
}
int main(void)
{
	pthread_t t[6];
	long bad = 0;
	for (long i = 0; i < 6; i++)
		pthread_create(&t[i], 0, th, (void *)(i + 1));
	for (int i = 0; i < 6; i++) {
		void *r;
		pthread_join(t[i], &r);
		bad += (long)r;
	}
	N(bad);
	size_t big = 128 << 20;
	char *p = mmap(0, big, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < big; i += 4096)
		p[i] = 1;
	CHILD("fork of 128 MiB", {
		long sum = 0;
		for (size_t i = 0; i < big; i += 65536)
			sum += p[i];
		N(sum);
	});
	R(munmap(p, big));
	/* 3000 mappings that cannot be joined. */
	int n = 0;
	char *base = mmap(0, 6000 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 3000; i++)
		n += mprotect(base + i * 8192, 4096, PROT_READ | PROT_WRITE) == 0;
	N(n);
	base[2999 * 8192] = 1;
	R(munmap(base, 6000 * 4096));
	char *m[200];
	for (int r = 0; r < 5; r++) {
		for (int i = 0; i < 200; i++)
			memset(m[i] = malloc(200000), i, 200000);
		for (int i = 0; i < 200; i++)
			free(m[i]);
	}
	say("done\n");
	return t_done();
}
