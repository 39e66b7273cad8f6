/* A hole punched into a file leaves the copies of private mappings; pages moved to right behind themselves arrive. */
#include "t.h"
#include <sys/mman.h>
#define PAGE 4096
int main(void)
{
	int fd = memfd_create("file", 0);
	OK(ftruncate(fd, 3 * PAGE));
	must(pwrite(fd, "abc", 3, PAGE) == 3);
	char *mine = mmap(0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	char *ours = mmap(0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(mine != MAP_FAILED && ours != MAP_FAILED);
	mine[PAGE] = 'x';
	ours[2 * PAGE] = 'y';
	T(mine[2 * PAGE] == 'y');
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, 2 * PAGE));
	/* The copy, with what it was a copy of; what was no copy is the hole. */
	T(mine[PAGE] == 'x' && mine[PAGE + 1] == 'b');
	T(mine[2 * PAGE] == 0);
	T(ours[PAGE] == 0 && ours[2 * PAGE] == 0);
	ours[2 * PAGE] = 'z';
	T(mine[2 * PAGE] == 'z');
	/* A file that is cut takes the copies with it. */
	OK(ftruncate(fd, 0));
	OK(ftruncate(fd, 3 * PAGE));
	T(mine[PAGE] == 0 && mine[PAGE + 1] == 0);

	char *old = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(old != MAP_FAILED);
	old[0] = '1';
	old[PAGE] = '2';
	OK(mprotect(old, PAGE, PROT_READ));
	OK(mprotect(old, PAGE, PROT_READ | PROT_WRITE));
	T(mremap(old, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, old + 2 * PAGE) == old + 2 * PAGE);
	T(old[2 * PAGE] == '1' && old[3 * PAGE] == '2');
	unsigned char in[2];
	N(mincore(old, 2 * PAGE, in));
	return 0;
}
