/* Random sequences of mmap, mprotect, munmap, mremap and madvise on a few pages that hold functions, each call's result and
 * each function's value in a sum that must come out as it does natively. */
/* not: i386 */
/* linux: 6.17 */
/* seconds: 60 */
#include "t.h"
#include <setjmp.h>
#define PAGE 4096ul
#define PAGES 24
#define SEEDS 12
#define STEPS 400

static unsigned char *arena;
static uint64_t state, sum;
static sigjmp_buf landing;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void note(long value)
{
	sum = (sum ^ (uint64_t)value) * 0x100000001b3ul + 1;
}

/* A result: an address counts from the arena's start. */
static void answer(long r)
{
	int e = errno;
	note(r == -1 ? -e : r >= (long)(uintptr_t)arena && r < (long)(uintptr_t)(arena + PAGES * PAGE) ? r - (long)(uintptr_t)arena : r);
}

static void on_fault(int s, siginfo_t *i, void *u)
{
	(void)u;
	note(s);
	note(i->si_code);
	siglongjmp(landing, 1);
}

/* mov $value,%eax; ret, or a call of getuid's number and an addition. */
static void emit(unsigned char *p, int value, int calls)
{
	static const unsigned char call[] = {0xb8, SYS_getuid, 0, 0, 0, 0x0f, 0x05, 0x05};
	if (calls) {
		memcpy(p, call, sizeof call);
		memcpy(p + sizeof call, &value, 4);
		p[sizeof call + 4] = 0xc3;
	} else {
		p[0] = 0xb8;
		memcpy(p + 1, &value, 4);
		p[5] = 0xc3;
	}
}

/* What the code at an address returns, begun with 0 in the register of the result and in those an instruction could read. */
static long run(unsigned char *at)
{
	register unsigned char *r11 asm("r11") = at;
	long got = 0, a = 0, b = 0, c = 0, d = 0;
	asm volatile("call *%%r11" : "+a"(got), "+r"(r11), "+c"(a), "+d"(b), "+S"(c), "+D"(d) : : "r8", "r9", "r10", "memory", "cc");
	return (int)got;
}

static void step(int file)
{
	static const int prots[] = {PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC,
				    PROT_READ | PROT_WRITE | PROT_EXEC, PROT_NONE};
	unsigned first = next() % PAGES, pages = 1 + next() % 6, to = next() % PAGES;
	int prot = prots[next() % 7];
	if (first + pages > PAGES)
		pages = PAGES - first;
	unsigned char *at = arena + first * PAGE;
	/* Slots of 32 bytes; the last one reaches into the next page. */
	unsigned char *slot = at + 16 + 32 * (next() % 127);
	int value = (int)next();
	switch (next() % 16) {
	case 0:
		answer((long)mmap(at, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
		return;
	case 1:
		answer((long)mmap(at, pages * PAGE, prot, MAP_PRIVATE | MAP_FIXED, file, 0));
		return;
	case 2:
		answer(munmap(at, pages * PAGE));
		return;
	case 3:
		if (to + pages <= PAGES)
			answer((long)mremap(at, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, arena + to * PAGE));
		return;
	case 4:
		answer(madvise(at, pages * PAGE, MADV_DONTNEED));
		return;
	case 5: case 6: case 7:
		answer(mprotect(at, pages * PAGE, prot));
		return;
	case 8: {
		pid_t pid = fork();
		if (pid == 0) {
			for (int i = 0; i < 4; i++)
				if (!sigsetjmp(landing, 1))
					note(run(slot + 32 * i));
			_exit(sum & 0x7f);
		}
		int status;
		waitpid(pid, &status, 0);
		note(status);
		return;
	}
	case 9: case 10: case 11:
		if (!sigsetjmp(landing, 1))
			emit(slot, value, value & 1);
		return;
	case 12:
		if (!sigsetjmp(landing, 1))
			note(*slot);
		return;
	default:
		if (!sigsetjmp(landing, 1))
			for (int i = 0; i < 6; i++)
				note(run(slot));
	}
}

int main(void)
{
	int file = must(memfd_create("code", 0));
	unsigned char page[PAGE];
	/* ret */
	memset(page, 0xc3, sizeof page);
	for (int i = 0; i < 8; i++) {
		for (unsigned k = 16; k + 32 < PAGE; k += 64)
			emit(page + k, i * 1000 + k, k & 64);
		must(write(file, page, PAGE));
	}
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaction(SIGSEGV, &action, 0);
	sigaction(SIGBUS, &action, 0);
	sigaction(SIGILL, &action, 0);
	sigaction(SIGTRAP, &action, 0);
	static char stack[65536];
	stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
	sigaltstack(&alternative, 0);
	uint64_t first = t_seed() * SEEDS + 1;
	for (uint64_t seed = first; seed < first + SEEDS; seed++) {
		state = 0x9e3779b97f4a7c15ul * seed;
		sum = seed;
		/* The arena is alone, so that what is beside it never joins. */
		char *room = mmap(0, (PAGES + 32) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		arena = (unsigned char *)room + 16 * PAGE;
		mmap(arena, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		memset(arena, 0xc3, PAGES * PAGE);
		for (int i = 0; i < STEPS; i++)
			step(file);
		say("seed %lu: %016lx\n", (unsigned long)seed, (unsigned long)sum);
		munmap(room, (PAGES + 32) * PAGE);
	}
	return t_done();
}
