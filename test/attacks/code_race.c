/* One thread keeps writing WRPKRU into a page and taking it out again, while another runs the page. */
/* none: succeeded */
/* pkey: SIGSEGV */
/* process: SIGSEGV */
#include "code.h"

static unsigned char *page;
static volatile int stop;

static void *writer(void *unused)
{
	while (!stop) {
		memcpy(page + WRPKRU, OPEN + WRPKRU, 3);
		memcpy(page + WRPKRU, HARMLESS, 3);
	}
	return unused;
}

static int attack(void)
{
	pthread_t thread;
	page = memory(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(page, OPEN, sizeof OPEN);
	expect_faults();
	pthread_create(&thread, 0, writer, 0);
	for (int i = 0; i < part(3000); i++) {
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
