/* The routine that replaces the dynamic linker's XRSTOR, with and without the key register in the mask, while another thread changes the
 * area, a third takes the page of the key register's part away and gives it back, and signals come at any moment. No handler
 * and no return may find the key open. */
/* skip none: without a key there is nothing to open */
/* pkey: refused */
/* process: SIGSEGV */
#include <stdatomic.h>
#include "restore.h"

static unsigned char *area, *keys_page;
static atomic_int over, open_seen, back;
static pthread_t caller;

static void look(int signal)
{
	if (keys() != LOCKED)
		open_seen = 1;
}

static void landed(int signal)
{
	look(signal);
	siglongjmp(landing, signal);
}

static void *changes(void *arg)
{
	static const uint64_t headers[][2] = {{0, 0}, {KEYS, 0}, {KEYS | VECTORS, 0}, {KEYS, 1ull << 63 | KEYS}, {~0ull, 0}};
	for (unsigned n = 0; !over; n++) {
		header(area, headers[n % 5][0], headers[n % 5][1]);
		*(volatile uint32_t *)(area + 576) = n & 1 ? 0 : LOCKED;
		if (n % 64 == 0)
			pthread_kill(caller, SIGUSR1);
	}
	return 0;
}

static void *takes(void *arg)
{
	while (!over) {
		mprotect(keys_page, PAGE, PROT_NONE);
		mprotect(keys_page, PAGE, PROT_READ | PROT_WRITE);
	}
	return 0;
}

static int attack(void)
{
	static const uint64_t masks[] = {VECTORS, KEYS | VECTORS, KEYS, VECTORS | 1ull << 41};
	uintptr_t routine = place("ATTACK_RESTORE", 0);
	if (!routine)
		return ENODATA;
	unsigned char *memory_ = memory(4 * PAGE, PROT_READ | PROT_WRITE);
	/* The key register's part begins a page. */
	keys_page = memory_ + 2 * PAGE;
	area = keys_page - KEYS_AT;
	*(uint32_t *)(area + 24) = 0x1f80;
	own_stack();
	struct sigaction action = {.sa_handler = landed, .sa_flags = SA_ONSTACK | SA_NODEFER};
	sigaction(SIGILL, &action, 0);
	sigaction(SIGSEGV, &action, 0);
	sigaction(SIGBUS, &action, 0);
	action.sa_handler = look;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, 0);
	sigaction(SIGALRM, &action, 0);
	struct itimerval often = {{0, 200}, {0, 200}};
	setitimer(ITIMER_REAL, &often, 0);
	caller = pthread_self();
	pthread_t others[2];
	pthread_create(&others[0], 0, changes, 0);
	pthread_create(&others[1], 0, takes, 0);
	for (volatile int n = 0; n < part(20000) && !open_seen; n++) {
		if (sigsetjmp(landing, 0) == 0) {
			restore(routine, area, masks[n % 4]);
			back++;
		}
		look(0);
		if (n % 100 == 0 && sigsetjmp(landing, 0) == 0 && loot() == 0)
			open_seen = 1;
	}
	over = 1;
	pthread_join(others[0], 0);
	pthread_join(others[1], 0);
	/* Some have come back, or nothing was tried. */
	return open_seen ? 0 : back ? REFUSED : ENODATA;
}
