/* lseek: whences, refusals, holes and data. */
#include "t.h"
int main(void)
{
	int f = must(open("f", O_RDWR | O_CREAT, 0600)), p[2];
	must(ftruncate(f, 1 << 20));
	must(pwrite(f, "data", 4, 256 << 10));
	R(lseek(f, 10, SEEK_SET));
	R(lseek(f, 5, SEEK_CUR));
	R(lseek(f, -20, SEEK_CUR));
	R(lseek(f, -10, SEEK_END));
	R(lseek(f, 10, SEEK_END));
	R(lseek(f, -1, SEEK_SET));
	R(lseek(f, 0, 77));
	R(lseek(99, 0, SEEK_SET));
	R(lseek(f, 0, SEEK_DATA));
	R(lseek(f, 0, SEEK_HOLE));
	R(lseek(f, 256 << 10, SEEK_DATA));
	R(lseek(f, 256 << 10, SEEK_HOLE));
	R(lseek(f, 300 << 10, SEEK_DATA));
	R(lseek(f, 1 << 20, SEEK_DATA));
	R(lseek(f, 1 << 20, SEEK_HOLE));
	R(lseek(f, 2 << 20, SEEK_HOLE));
	R(lseek(f, -1, SEEK_DATA));
	must(pipe(p));
	R(lseek(p[0], 0, SEEK_CUR));
	int d = must(open(".", O_RDONLY));
	R(lseek(d, 0, SEEK_SET));
	int t = must(open("/dev/null", O_RDWR));
	R(lseek(t, 100, SEEK_SET));
	int z = must(open("/dev/zero", O_RDWR));
	R(lseek(z, 100, SEEK_SET));
	struct stat s;
	fstat(f, &s);
	T(s.st_blocks < 1024); /* holes take no room */
	return t_done();
}
