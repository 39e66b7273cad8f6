/* Code in a memfd that changes after it was mapped: by write(2), through a second mapping, cut off and grown again. The code that
 * runs is what was looked at; a shared executable mapping of what others can write is refused. */
/* none: succeeded */
/* no keys: SIGILL */
/* pkey: SIGSEGV */
/* process: SIGILL | succeeded */
#include "code.h"

static int attack(void)
{
	int f = memfd_create("code", 0);
	unsigned char page[PAGE] = {0xc3};
	if (write(f, page, PAGE) != PAGE)
		return errno;
	unsigned char *w = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	unsigned char *x = mmap(0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0);
	if (w == MAP_FAILED || x == MAP_FAILED)
		return errno;
	((code *)x)();
	memcpy(w, OPEN, sizeof OPEN);
	((code *)x)();
	if (pwrite(f, OPEN, sizeof OPEN, 0) < 0 || ftruncate(f, 0) || ftruncate(f, PAGE) || pwrite(f, OPEN, sizeof OPEN, 0) < 0)
		return errno;
	((code *)x)();
	unsigned char *s = mmap(0, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, f, 0);
	if (s != MAP_FAILED)
		((code *)s)();
	if (!mprotect(w, PAGE, PROT_READ | PROT_EXEC))
		((code *)w)();
	return loot();
}
