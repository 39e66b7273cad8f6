/* Threads that at random map, protect, move, drop, write and run the same few pages, with WRPKRU and calls among what they write,
 * while signals arrive and children are forked; from the next seeds every day. FUZZ_FIRST, FUZZ_SEEDS and FUZZ_STEPS make it another and longer one. What must not happen is that
 * the key opens, or that anybody else notices. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "code.h"

#define PAGES 12
#define THREADS 4

static unsigned char *arena;
static uint64_t seed;
static volatile int signals;
/* Whether kernel memory is closed at all: without a jail there is nothing to open. */
static int locked;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void on_alarm(int signal)
{
	signals++;
}

/* Nothing the code does to a register may reach the caller. */
static void run(unsigned char *at)
{
	register unsigned char *r11 asm("r11") = at;
	long a = 0, b = 0, c = 0, d = 0, e = 0;
	asm volatile("push %%rbx; push %%rbp; push %%r12; push %%r13; push %%r14; push %%r15; sub $128, %%rsp; call *%%r11;"
		     "add $128, %%rsp; pop %%r15; pop %%r14; pop %%r13; pop %%r12; pop %%rbp; pop %%rbx"
		     : "+a"(a), "+c"(b), "+d"(c), "+S"(d), "+D"(e), "+r"(r11) : : "r8", "r9", "r10", "memory", "cc");
	if (locked) {
		/* Faults, and lands, as long as the key is closed. */
		if (loot() == 0)
			_exit(0x77);
	}
}

static void write_something(unsigned char *at, uint64_t what)
{
	/* A call of getpid, which the kernel rewrites after a while. */
	static const unsigned char call[] = {0xb8, SYS_getpid, 0, 0, 0, 0x0f, 0x05, 0xc3};
	static const unsigned char restore[] = {0xb8, 0, 2, 0, 0, 0x31, 0xd2, 0x48, 0x0f, 0xae, 0x2f, 0xc3};
	switch (what % 5) {
	case 0:
		memcpy(at, OPEN, sizeof OPEN);
		return;
	case 1:
		memcpy(at, restore, sizeof restore);
		return;
	case 2:
		*at = 0xc3;
		return;
	}
	memcpy(at, call, sizeof call);
}

static void *racer(void *arg)
{
	static const int prots[] = {PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC,
				    PROT_READ | PROT_WRITE | PROT_EXEC, PROT_READ};
	uint64_t state = 0x9e3779b97f4a7c15ul * (seed * THREADS + (long)arg + 1);
	long steps = getenv("FUZZ_STEPS") ? atol(getenv("FUZZ_STEPS")) : 400;
	for (long i = 0; i < steps; i++) {
		unsigned first = next(&state) % PAGES, pages = 1 + next(&state) % 3, to = next(&state) % PAGES;
		int prot = prots[next(&state) % 6];
		if (first + pages > PAGES)
			pages = PAGES - first;
		if (to + pages > PAGES)
			to = PAGES - pages;
		unsigned char *at = arena + first * PAGE, *place = at + (next(&state) % 4 ? next(&state) % 64 * 64 : PAGE - 7);
		if (sigsetjmp(landing, 1))
			continue;
		switch (next(&state) % 16) {
		case 0:
			mmap(at, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		case 1:
			munmap(at, pages * PAGE);
			break;
		case 2:
			mremap(at, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, arena + to * PAGE);
			break;
		case 3:
			madvise(at, pages * PAGE, next(&state) & 1 ? MADV_DONTNEED : MADV_FREE);
			break;
		case 4:
			if (next(&state) % 4 == 0) {
				pid_t pid = fork();
				if (pid == 0) {
					for (int k = 0; k < 8; k++)
						if (!sigsetjmp(landing, 1))
							run(place + 64 * k);
					_exit(0);
				}
				int status = 0;
				while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
					;
				if (WIFEXITED(status) && WEXITSTATUS(status) == 0x77)
					_exit(0x77);
			}
			break;
		case 5: case 6: case 7:
			mprotect(at, pages * PAGE, prot);
			break;
		case 8: case 9: case 10:
			write_something(place, next(&state));
			break;
		default:
			for (int k = 0; k < 6; k++)
				run(place);
		}
	}
	return 0;
}

static int one(void *number)
{
	seed = (uintptr_t)number;
	expect_faults();
	struct sigaction action = {.sa_handler = land, .sa_flags = SA_NODEFER};
	sigaction(SIGBUS, &action, 0);
	sigaction(SIGTRAP, &action, 0);
	sigaction(SIGFPE, &action, 0);
	signal(SIGALRM, on_alarm);
	locked = 1;
	if (!sigsetjmp(landing, 1))
		locked = loot() != 0;
	arena = memory(PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	struct itimerval every = {{0, 700}, {0, 700}};
	setitimer(ITIMER_REAL, &every, 0);
	pthread_t threads[THREADS];
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, racer, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], 0);
	_exit(0);
}

static int attack(void)
{
	alarm(0);
	long first = getenv("FUZZ_FIRST") ? atol(getenv("FUZZ_FIRST")) : (long)day() * 12;
	long seeds = getenv("FUZZ_SEEDS") ? atol(getenv("FUZZ_SEEDS")) : part(12);
	for (long number = first; number < first + seeds; number++) {
		int status = 0;
		pid_t pid = fork();
		if (pid == 0)
			one((void *)number);
		/* Code made at random may also wait for ever. */
		int most = 400 * patience(1);
		for (int i = 0; i < most && waitpid(pid, &status, WNOHANG) != pid; i++) {
			usleep(10000);
			if (i == most - 1) {
				kill(pid, SIGKILL);
				waitpid(pid, &status, 0);
			}
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0x77)
			return 0;
		if (getenv("FUZZ_SAY"))
			dprintf(2, "seed %ld: %#x\n", number, status);
	}
	return REFUSED;
}
