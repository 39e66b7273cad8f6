/* Rings of calls: in the kernel's memory, with calls that are given the kernel's memory, with counts and entries that another thread changes all the time, and ended from outside while
 * calls are under way. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"
#include "../../user/ring/ring.c"

static struct janua_ring ring;
static int p[2];

static long made(long number, uint64_t a, uint64_t b, uint64_t c)
{
	struct janua_call *call = janua_ring_call(&ring);
	struct janua_end end = { 0, -ETIMEDOUT };
	if (!call)
		return -EAGAIN;
	janua_call(call, 1, number, a, b, c, 0, 0, 0);
	janua_ring_submit(&ring, 0);
	janua_ring_wait(&ring, 1, 1000000000);
	janua_ring_end(&ring, &end);
	return end.result;
}

static void *change(void *unused)
{
	uint64_t seed = day() | 1;
	for (;;) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		uint64_t *words = (void *)ring.head;
		unsigned at = (seed >> 33) % (16 + 16 * 8);
		static const uint64_t values[] = { KERNEL, STACKS, HEAP, 0, 1, 0xffffffff, SYS_read, SYS_write, SYS_getppid, SYS_pipe, SYS_uname };
		words[at] = at == 0 ? seed >> 40 << 32 | (seed & 31) : values[(seed >> 20) % 11];
	}
	return 0;
}

/* One that is killed in the midst of it. */
static int storm(void *arg)
{
	static char b[4096];
	pthread_t thread;
	if (janua_ring_open(&ring, 16, 8))
		return REFUSED;
	for (int n = 0; n < 4; n++)
		janua_call(janua_ring_call(&ring), n, SYS_read, p[0], (uintptr_t)b, 1, 0, 0, 0);
	janua_ring_submit(&ring, 1);
	pthread_create(&thread, 0, change, 0);
	if (arg)
		ualarm(20000, 0);
	for (long n = part(20000); n > 0 || arg; n--)
		syscall(JANUA_RING_WAIT, n % 7 == 0, 100000);
	/* The other thread goes on meanwhile, in memory that stays. */
	_exit(syscall(JANUA_RING_CLOSE) ? 1 : 255);
}

static int attack(void)
{
	uintptr_t places[] = { KERNEL, CONTROL, SELECTORS, STACKS, HEAP, UNUSED & ~63ul };
	int won = 0, zero = open("/dev/zero", O_RDONLY), file = open("file", O_RDWR | O_CREAT, 0600);
	pipe(p);
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
		won |= syscall(JANUA_RING_OPEN, places[i], 8, 8, 8) >= 0;
	/* The last ring that fits below it, and one that does not. */
	won |= syscall(JANUA_RING_OPEN, KERNEL - 64, 8, 8, 8) >= 0;
	won |= syscall(JANUA_RING_OPEN, -64ul, 1 << 15, 1 << 15, 256) >= 0;
	if (janua_ring_open(&ring, 16, 8) || ring.alone)
		return ENOSYS;
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		won |= made(SYS_read, zero, places[i], 64) > 0;
		won |= made(SYS_write, file, places[i], 64) > 0;
		won |= made(SYS_uname, places[i], 0, 0) >= 0;
		won |= made(SYS_fstat, file, places[i], 0) >= 0;
		won |= made(SYS_open, places[i], 0, 0) != -EFAULT;
		won |= made(SYS_pipe, places[i], 0, 0) >= 0;
	}
	janua_ring_close(&ring);
	for (int n = 0; n < 4 && !won; n++)
		won |= try_apart(storm, 0) != REFUSED;
	for (int n = 0; n < 4 && !won; n++)
		won |= try_apart(storm, "killed") != -SIGALRM;
	return won ? 0 : REFUSED;
}
