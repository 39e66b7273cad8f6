/* Shared memory across fork and exec boundaries: anonymous, file, memfd, /dev/shm, /dev/zero; private stays private. */
#include "t.h"
int main(void)
{
	int *a = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int f = must(open("f", O_RDWR | O_CREAT, 0600));
	must(ftruncate(f, 8192));
	int *s = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	int zf = must(open("/dev/zero", O_RDWR));
	int *z = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, zf, 0);
	char name[64];
	snprintf(name, sizeof name, "/janua-test-%d", getpid());
	int h = must(shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600));
	R(shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600));
	must(ftruncate(h, 8192));
	int *g = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, h, 0);
	char path[128];
	snprintf(path, sizeof path, "/dev/shm%s", name);
	R(access(path, F_OK));
	a[0] = p[0] = s[0] = z[0] = g[0] = 1;
	CHILD("child", {
		a[0] = p[0] = s[0] = z[0] = g[0] = 2;
		a[1500] = s[1500] = z[1500] = g[1500] = 3; /* a page touched by the child first */
		int k = must(shm_open(name, O_RDWR, 0));
		int *o = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, k, 0);
		o[1] = 4;
	});
	say("anon %d file %d zero %d shm %d private %d\n", a[0], s[0], z[0], g[0], p[0]);
	say("anon %d file %d zero %d shm %d shm again %d\n", a[1500], s[1500], z[1500], g[1500], g[1]);
	int v;
	must(pread(f, &v, 4, 0));
	N(v);
	R(shm_unlink(name));
	R(shm_unlink(name));
	R(access(path, F_OK));
	N(g[0]);
	/* Counting together. */
	a[2] = 0;
	for (int i = 0; i < 4; i++)
		if (!fork()) {
			for (int k = 0; k < 20000; k++)
				__atomic_add_fetch(&a[2], 1, __ATOMIC_SEQ_CST);
			_exit(0);
		}
	while (wait(0) > 0)
		;
	N(a[2]);
	/* Copy on write in both directions, for many pages. */
	char *m = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 256; i++)
		m[i * 4096] = i;
	int pi[2];
	must(pipe(pi));
	pid_t c = must(fork());
	if (!c) {
		char x;
		read(pi[0], &x, 1);
		int bad = 0;
		for (int i = 0; i < 256; i++)
			bad += m[i * 4096] != (char)i;
		memset(m, 9, 1 << 20);
		_exit(bad);
	}
	for (int i = 0; i < 256; i++)
		m[i * 4096]++;
	write(pi[1], "x", 1);
	t_reap("copy", c);
	int bad = 0;
	for (int i = 0; i < 256; i++)
		bad += m[i * 4096] != (char)(i + 1);
	N(bad);
	R(madvise(m, 4096, MADV_DONTFORK));
	R(madvise(m + 8192, 4096, MADV_WIPEONFORK));
	CHILD("wiped", T(m[8192] == 0));
	CHILD("not there", m[0] = 1);
	return t_done();
}
