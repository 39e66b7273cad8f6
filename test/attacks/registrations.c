/* Addresses the host would write at a thread's end or at a preemption: robust list, clear-tid word, rseq area, all in kernel
 * memory. The word looked at afterwards is one that nothing else changes. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"

static void *thread(void *word)
{
	struct { void *next; long offset; void *pending; } *head = word;
	syscall(SYS_set_robust_list, head, 24);
	syscall(SYS_set_tid_address, word);
	syscall(SYS_rseq, word, 32, 0, 0x53053053);
	for (int i = 0; i < 100; i++)
		sched_yield();
	syscall(SYS_exit, 0);
	return 0;
}

static int attack(void)
{
	pthread_t id;
	for (int i = 0; i < 8; i++) {
		pthread_create(&id, 0, thread, (void *)(UNUSED + 64 * i));
		usleep(2000);
	}
	return getppid() > 0 ? REFUSED : 0;
}
