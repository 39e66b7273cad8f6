/* A program in memory is sealed while a mapping from before still writes to it: what is mapped of it now would count as unchanging. */
/* none: EBUSY */
/* pkey: EBUSY */
/* process: EBUSY */
#include "attack.h"
#include <sys/stat.h>

#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif

static int attack(void)
{
	int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, 4096) || fchmod(fd, 0755))
		return REFUSED;
	char *writable = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (writable == MAP_FAILED)
		return REFUSED;
	/* Of a program the seal implies those against writing, growing and shrinking. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC))
		return errno;
	const char *seen = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (seen == MAP_FAILED)
		return errno;
	writable[0] = 1;
	return seen[0] == 1 ? 0 : REFUSED;
}
