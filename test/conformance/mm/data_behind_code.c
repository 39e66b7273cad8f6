/* An instruction that loads from, or stores to, the page right behind it, which may not be run: an access, and no fetch. */
/* not: i386 */
#include "t.h"

int main(void)
{
	unsigned char *m = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(m != MAP_FAILED);
	/* mov eax, [rip + 1]; ret: the word begins with the next page. */
	static const unsigned char load[] = {0x8b, 0x05, 1, 0, 0, 0, 0xc3};
	/* mov [rip + 1], edi; ret */
	static const unsigned char store[] = {0x89, 0x3d, 1, 0, 0, 0, 0xc3};
	memcpy(m + 4096 - sizeof load, load, sizeof load);
	T(mprotect(m, 4096, PROT_READ | PROT_EXEC) == 0);
	T(((int (*)(void))(m + 4096 - sizeof load))() == 0);
	T(mprotect(m, 4096, PROT_READ | PROT_WRITE) == 0);
	memcpy(m + 4096 - sizeof store, store, sizeof store);
	T(mprotect(m, 4096, PROT_READ | PROT_EXEC) == 0);
	T(madvise(m + 4096, 4096, MADV_DONTNEED) == 0);
	((void (*)(int))(m + 4096 - sizeof store))(77);
	T(*(int *)(m + 4096) == 77);
	/* And one across the border into a page that may not be run is not fetched. */
	pid_t p = fork();
	if (!p) {
		mprotect(m, 4096, PROT_READ | PROT_WRITE);
		memset(m + 4092, 0x90, 3);
		m[4095] = 0x8b;
		mprotect(m, 4096, PROT_READ | PROT_EXEC);
		((void (*)(void))(m + 4092))();
		_exit(1);
	}
	int st;
	T(waitpid(p, &st, 0) == p && WIFSIGNALED(st) && WTERMSIG(st) == SIGSEGV);
	return 0;
}
