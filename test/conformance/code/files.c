/* Code in files that can be written: the working directory, /dev/shm, memfd. */
#include "t.h"
typedef int fn(void);
static void emit(unsigned char *p, int value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}
static void try(const char *what, int f)
{
	unsigned char code[8192] = {0};
	emit(code, 11);
	emit(code + 4096, 12);
	say("%s\n", what);
	must(write(f, code, sizeof code));
	unsigned char *p = mmap(0, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0);
	T(p != MAP_FAILED);
	N(((fn *)p)() + ((fn *)(p + 4096))());
	/* Private code that is changed stays apart from the file. */
	R(mprotect(p, 4096, PROT_READ | PROT_WRITE));
	emit(p, 13);
	R(mprotect(p, 4096, PROT_READ | PROT_EXEC));
	N(((fn *)p)() + ((fn *)(p + 4096))());
	unsigned char back[6];
	must(pread(f, back, 6, 0));
	T(!memcmp(back, code, 6));
	R(munmap(p, 8192));
	/* First readable, then executable. */
	p = mmap(0, 8192, PROT_READ, MAP_PRIVATE, f, 0);
	N(p[0]);
	R(mprotect(p, 8192, PROT_READ | PROT_EXEC));
	N(((fn *)p)() + ((fn *)(p + 4096))());
	R(munmap(p, 8192));
	/* All at once. */
	p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, f, 0);
	N(((fn *)p)());
	emit(p, 14);
	N(((fn *)p)());
	R(munmap(p, 4096));
	close(f);
}
int main(void)
{
	try("file", must(open("code", O_RDWR | O_CREAT | O_TRUNC, 0700)));
	unlink("code");
	char shared[64];
	sprintf(shared, "/dev/shm/code-%d", getpid());
	try("/dev/shm", must(open(shared, O_RDWR | O_CREAT | O_TRUNC, 0700)));
	unlink(shared);
	try("memfd", must(memfd_create("code", 0)));
	/* Shared, and nobody can change it any more. */
	int f = must(memfd_create("sealed", MFD_ALLOW_SEALING));
	unsigned char code[4096] = {0};
	emit(code, 15);
	must(write(f, code, sizeof code));
	R(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK));
	unsigned char *p = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, f, 0);
	T(p != MAP_FAILED);
	N(((fn *)p)());
	return t_done();
}
