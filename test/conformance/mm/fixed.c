/* MAP_FIXED replaces what is there, MAP_FIXED_NOREPLACE refuses; parts of mappings can go. */
#include "t.h"
#include <setjmp.h>
static sigjmp_buf j;
static void h(int s) { siglongjmp(j, s); }
static int there(volatile char *p)
{
	if (sigsetjmp(j, 1))
		return 0;
	(void)*p;
	return 1;
}
static void shape(char *b)
{
	char s[17] = {0};
	for (int i = 0; i < 16; i++)
		s[i] = there(b + i * 4096) ? '0' + b[i * 4096] : '-';
	say("[%s]\n", s);
}
int main(void)
{
	t_handle(SIGSEGV, h, 0);
	char *b = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 16; i++)
		b[i * 4096] = 1;
	shape(b);
	T(mmap(b + 8192, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == b + 8192);
	shape(b);
	R(munmap(b + 4096 * 6, 4096 * 2));
	shape(b);
	T(mmap(b + 4096 * 5, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
	T(mmap(b + 4096 * 6, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == b + 4096 * 6);
	shape(b);
	R(munmap(b + 4096 * 5 + 1, 100));
	R(munmap(b + 4096 * 10, 1));
	shape(b);
	R(munmap(b, 65536));
	shape(b);
	/* A file over the middle of anonymous memory. */
	t_write("f", "9999999999");
	int f = must(open("f", O_RDONLY));
	b = mmap(b, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	T(mmap(b + 8192, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, f, 0) == b + 8192);
	T(b[8192] == '9' && b[4096] == 0 && b[12288] == 0);
	R(munmap(b, 65536));
	R(munmap(b, 65536));
	for (int i = 0; i < 1000; i++) {
		char *p = mmap(0, 4096 * (1 + i % 7), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*p = 1;
		if (i % 3)
			munmap(p, 4096);
	}
	say("many\n");
	return t_done();
}
