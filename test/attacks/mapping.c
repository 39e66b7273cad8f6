/* Every call that changes mappings, on the kernel's range and across its borders. */
/* none: refused */
/* pkey: refused */
/* process: SIGSEGV */
#include "attack.h"
#include <sys/shm.h>

static int attack(void)
{
	static const struct { uintptr_t at; size_t len; } ranges[] = {
		{ KERNEL, 4096 }, { CONTROL, 4096 }, { SELECTORS, 4096 }, { STACKS, 65536 }, { HEAP, 1 << 20 },
		{ KERNEL - 4096, 8192 }, { KERNEL, KERNEL_END - KERNEL }, { KERNEL_END - 4096, 8192 },
		{ KERNEL - (1ul << 40), (1ul << 40) + (1ul << 36) },
	};
	char *own = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), won = 0;
	for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		void *at = (void *)ranges[i].at;
		size_t len = ranges[i].len;
		won |= mmap(at, len, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
		won |= mmap(at, len, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at;
		won |= mmap(at, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == at && i < 5;
		won |= mprotect(at, len, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
		won |= syscall(SYS_pkey_mprotect, at, len, PROT_READ | PROT_WRITE, 0) == 0;
		won |= syscall(SYS_pkey_mprotect, at, len, PROT_READ | PROT_WRITE, -1) == 0;
		won |= mremap(own, 4096, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED;
		won |= mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, own) != MAP_FAILED;
		won |= mremap(at, len, 2 * len, MREMAP_MAYMOVE) != MAP_FAILED;
		for (int advice = 0; advice < 26; advice++)
			won |= madvise(at, len, advice) == 0 && i < 5;
		madvise(at, len, MADV_DONTNEED);
		won |= syscall(SYS_remap_file_pages, at, len, 0, 0, 0) == 0;
		/* The last range starts in the program's own part. */
		won |= i < 8 && i != 5 && shmat(id, at, SHM_REMAP) != (void *)-1;
		won |= syscall(SYS_brk, at) == (long)at;
		won |= mlock(at, len) == 0 && i < 5;
		unsigned char state[256];
		won |= len <= 1 << 20 && mincore(at, len, state) == 0;
		won |= msync(at, len, MS_SYNC) == 0 && i < 5;
	}
	return won ? 0 : REFUSED;
}
