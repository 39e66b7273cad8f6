/* Unwinding out of a signal handler, often enough for the C library's calls to have been rewritten meanwhile: the return from the handler is
 * found for what it is, and what was interrupted above it. */
/* not: musl */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <unwind.h>

static int depth, seen_outer, seen_main;

int main(void);
static void outer(void);

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *unused)
{
	void *function = _Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context));

	(void)unused;
	if (++depth > 100)
		return _URC_END_OF_STACK;
	if (function == (void *)outer)
		seen_outer = depth;
	if (function == (void *)main)
		seen_main = depth;
	return _URC_NO_REASON;
}

static void handler(int signal)
{
	(void)signal;
	depth = seen_outer = seen_main = 0;
	_Unwind_Backtrace(frame, NULL);
}

static __attribute__((noinline)) void outer(void)
{
	kill(getpid(), SIGUSR1);
	__asm__ volatile("");
}

int main(void)
{
	int good = 0;

	signal(SIGUSR1, handler);
	for (int round = 0; round < 40; round++) {
		outer();
		good += seen_outer > 1 && seen_main > seen_outer;
	}
	printf("%d of 40 reached main\n", good);
	return 0;
}
