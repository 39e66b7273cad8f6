/* What the pages beside the vDSO still show of another process: of its parent, and of one that has ended, whose host process this one may have got. Addresses
 * that only those had mapped are looked for in all that can be read there. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"
#include <setjmp.h>
#include <sys/auxv.h>

enum { PAGES = 100, APART = 2 << 20 };
static uintptr_t secret = 0x313130000000;
static sigjmp_buf back;

static void away(int sig)
{
	siglongjmp(back, sig);
}

/* Has pages far from each other, one mapping of the host's each, and no longer. */
static void map_secret(void)
{
	char *at = mmap((void *)secret, (size_t)PAGES * APART, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	for (long n = 0; n < PAGES; n++)
		*(volatile char *)(at + n * APART) = 1;
	munmap(at, (size_t)PAGES * APART);
}

/* 0 where one of those addresses is found. */
static int look(void *unused)
{
	uintptr_t vdso = getauxval(AT_SYSINFO_EHDR) & ~4095ul, secrets = secret >> 36;
	(void)unused;
	signal(SIGSEGV, away);
	signal(SIGBUS, away);
	for (volatile uintptr_t page = vdso - 64 * 4096; page < vdso; page += 4096) {
		if (sigsetjmp(back, 1))
			continue;
		for (int n = 0; n < 512; n++)
			if (((volatile uint64_t *)page)[n] >> 36 == secrets)
				return 0;
	}
	return REFUSED;
}

static int attack(void)
{
	for (int n = 0; n < 8; n++) {
		pid_t pid = fork();
		if (pid == 0) {
			map_secret();
			_exit(0);
		}
		waitpid(pid, 0, 0);
		if (try_apart(look, 0) == 0)
			return 0;
	}
	map_secret();
	return try_apart(look, 0) == 0 ? 0 : REFUSED;
}
