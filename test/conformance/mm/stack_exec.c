/* What a C library does for a library that needs an executable stack: the stack's page, and with it all of the stack below. */
#include "t.h"
#ifndef PROT_GROWSDOWN
#define PROT_GROWSDOWN 0x01000000
#endif
int main(void)
{
	long page = sysconf(_SC_PAGESIZE);
	int here;
	char *at = (char *)((uintptr_t)&here & -page);
	R(mprotect(at, page, PROT_READ | PROT_WRITE | PROT_GROWSDOWN));
	volatile char far[512 << 10];
	for (size_t i = 0; i < sizeof far; i += page)
		far[i] = 1;
	T(far[page] == 1);
	R(mprotect(at, page, PROT_READ | PROT_WRITE | PROT_GROWSDOWN));
	char *other = mmap(0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	R(mprotect(other, page, PROT_READ | PROT_GROWSDOWN));
	R(mprotect((void *)4096, page, PROT_READ | PROT_GROWSDOWN));
	return t_done();
}
