/* read and write in all their forms: positioned, vectored, appended, at and beyond the end, with bad arguments. */
#include "t.h"
#ifndef RWF_APPEND
#define RWF_APPEND 0x10
#endif
int main(void)
{
	char a[8] = "", b[8] = "", big[100];
	int f = must(open("f", O_RDWR | O_CREAT, 0600));
	R(read(f, a, 4));
	R(write(f, "hello world", 11));
	R(read(f, a, 4));
	R(lseek(f, 6, SEEK_SET));
	R(read(f, a, 7));
	S(a);
	R(pread(f, a, 5, 0));
	R(pread(f, a, 5, 100));
	R(pread(f, a, 5, -1));
	R(pwrite(f, "HE", 2, 0));
	R(pwrite(f, "!", 1, 20)); /* a hole before it */
	R(lseek(f, 0, SEEK_CUR));
	R(pread(f, big, 100, 0));
	T(big[11] == 0 && big[19] == 0 && big[20] == '!');
	struct iovec v[3] = {{a, 3}, {0, 0}, {b, 3}};
	lseek(f, 0, SEEK_SET);
	memset(a, 0, 8), memset(b, 0, 8);
	R(readv(f, v, 3));
	say("%s|%s\n", a, b);
	R(writev(f, v, 3));
	R(readv(f, v, 0));
	R(readv(f, v, -1));
	R(readv(f, v, 1025));
	R(readv(f, (void *)8, 1));
	v[1].iov_len = -1;
	R(readv(f, v, 3));
	v[1] = (struct iovec){(void *)8, 4};
	lseek(f, 0, SEEK_SET);
	R(readv(f, v, 3)); /* what came before the bad part is kept */
	R(preadv(f, v, 1, 2));
	R(pwritev(f, v, 1, 30));
	R(syscall(SYS_preadv2, f, v, 1, -1L, -1L, 0));
	R(syscall(SYS_preadv2, f, v, 1, 0, 0, 0x10000));
	R(syscall(SYS_pwritev2, f, v, 1, 0, 0, RWF_APPEND));
	struct stat s;
	fstat(f, &s);
	N(s.st_size);
	R(read(f, (void *)8, 4));
	R(write(f, (void *)8, 4));
	R(read(f, a, 0));
	R(write(f, a, 0));
	R(read(99, a, 1));
	R(write(99, a, 1));
	int r = must(open("f", O_RDONLY)), w = must(open("f", O_WRONLY)), d = must(open(".", O_RDONLY)), p[2];
	R(write(r, a, 1));
	R(read(w, a, 1));
	R(read(d, a, 1));
	R(write(d, a, 1));
	must(pipe(p));
	R(pread(p[0], a, 1, 0));
	R(lseek(p[0], 0, SEEK_SET));
	int ap = must(open("f", O_WRONLY | O_APPEND));
	long before = s.st_size;
	lseek(ap, 0, SEEK_SET);
	R(write(ap, "end", 3));
	T(lseek(ap, 0, SEEK_CUR) == before + 3);
	R(pwrite(ap, "zz", 2, 0)); /* Linux appends all the same */
	T(lseek(ap, 0, SEEK_END) == before + 5);
	/* Two writers who append lose nothing. */
	pid_t c[4];
	for (int i = 0; i < 4; i++)
		if (!(c[i] = must(fork()))) {
			int q = open("log", O_WRONLY | O_APPEND | O_CREAT, 0600);
			for (int k = 0; k < 500; k++)
				write(q, "12345678\n", 9);
			_exit(0);
		}
	while (wait(0) > 0)
		;
	R(stat("log", &s));
	N(s.st_size);
	/* A read across the end of the address space or into read-only memory. */
	char *ro = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(ro + 4096, 4096);
	lseek(f, 0, SEEK_SET);
	R(read(f, ro + 4090, 6));
	R(read(f, ro + 4096, 6));
	R(write(f, ro + 4090, 100) > 0);
	R(read(f, (char *)-100, 50));
	return t_done();
}
