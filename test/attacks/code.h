/* What the attacks by code made at run time share. */
#include "attack.h"

#define PAGE 4096

typedef void code(void);

/* xor %eax,%eax; xor %ecx,%ecx; xor %edx,%edx; wrpkru; ret */
static const unsigned char OPEN[] = {0x31, 0xc0, 0x31, 0xc9, 0x31, 0xd2, 0x0f, 0x01, 0xef, 0xc3};
/* Where the three bytes of wrpkru are in it, and what is there instead while it is harmless. */
enum { WRPKRU = 6 };
#define HARMLESS "\x90\x90\x90"

static inline int loot(void)
{
	return *(volatile uint64_t *)CONTROL ? 0 : REFUSED;
}

static inline unsigned char *memory(size_t len, int prot)
{
	void *p = mmap(0, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		_exit(99);
	return p;
}

/* Faults of the calling thread end in its own landing place. */
#include <setjmp.h>
static __thread sigjmp_buf landing;

static inline void land(int signal)
{
	siglongjmp(landing, signal);
}

static inline void expect_faults(void)
{
	struct sigaction action = {.sa_handler = land, .sa_flags = SA_NODEFER};
	sigaction(SIGSEGV, &action, 0);
	sigaction(SIGILL, &action, 0);
}
