/* Rings of system calls: many calls submitted with one store, made by the kernel while the program goes on or when it waits, their results taken in any order.
 *
 *   struct janua_ring ring;
 *   janua_ring_open(&ring, 64, 32);                             64 submissions, at most 32 calls that wait at a time
 *   struct janua_call *call = janua_ring_call(&ring);           null: there is no room, take completions first
 *   janua_call(call, 1, SYS_read, fd, buf, len, 0, 0, 0);       tag 1
 *   janua_ring_submit(&ring);                                   all that has been filled in, by one store
 *   janua_ring_wait(&ring, 1, 0);                               until one is over
 *   struct janua_end end;
 *   while (janua_ring_end(&ring, &end))                         whatever is over
 *           use(end.tag, end.result);
 *
 * A ring is the thread's that opened it, and used by that thread. Neither side trusts what is in its memory. A child of fork() has no ring, and
 * its memory only where that is the program's own: what it wrote there would count as the parent's.
 *
 * Order: calls begin in any order and end in any order, but for linked ones. A call flagged JANUA_LINK lets the next begin when it has ended without an error,
 * JANUA_LINK_WHOLE with at least its third argument (all of a transfer), JANUA_LINK_HARD whatever it ended with; otherwise the rest of the chain ends with ECANCELED.
 *
 * Buffers that a call names are the kernel's from its submission until its completion has been taken; the place of the submission itself is free again as soon as
 * janua_ring_call() gives it out. A call that was cancelled owns its buffers until its own completion is there.
 *
 * Which calls: those of the program's own system-call table that may run away from their thread (`janua support` lists them). Others end with EXDEV: fork, execve, rt_sigaction and
 * whatever else is about the calling thread itself. An unknown number ends with ENOSYS, a flag that means nothing with EINVAL.
 *
 * On a kernel without such rings (Linux) the library makes the calls itself, one after the other, when the program waits: the same program runs, and gains nothing. */
#ifndef JANUA_RING_H
#define JANUA_RING_H
#include <stdint.h>

enum { JANUA_LINK = 1, JANUA_LINK_WHOLE = 2, JANUA_LINK_HARD = 4 };
/* The number of a call that cancels the one whose tag is its first argument: 0, or ENOENT when there is none under way. */
#define JANUA_CANCEL 0xffffffffu

/* The kernel's calls, and the flag by which it reports that it does not look into the ring. */
enum { JANUA_RING_OPEN = 400, JANUA_RING_CLOSE = 401, JANUA_RING_WAIT = 402, JANUA_ANNOUNCE = 1 };

/* A submission. */
struct janua_call {
	uint32_t number, flags;
	uint64_t args[6], tag;
};

/* A completion: a value, or the negated error. */
struct janua_end {
	uint64_t tag;
	int64_t result;
};

/* What the shared memory begins with; the entries are behind it. Counts are modulo 2^32. */
struct janua_ring_head {
	/* The program's: calls submitted, completions taken. */
	uint32_t submitted, reaped;
	uint64_t unused[7];
	/* The kernel's: completions posted, submissions copied, JANUA_ANNOUNCE. */
	uint64_t posted, taken, flags;
	uint64_t unused_too[5];
};

struct janua_ring {
	struct janua_ring_head *head;
	struct janua_call *calls;
	struct janua_end *ends;
	/* Powers of two. */
	uint32_t call_count, end_count;
	/* Calls given out, and completions taken. */
	uint32_t filled, reaped;
	/* A module of the kernel's looks into it; there is no such kernel. */
	int watched, alone;
	/* Of a ring without a kernel: whether the next call is linked to one that went wrong. */
	int linked, broken;
};

/* Opens the calling thread's ring, with room for `calls` submissions (a power of two) and twice as many completions, and at most `under_way` calls (1 to 256) that
 * wait at a time. 0, or a negated error: EBUSY when the thread has one. */
int janua_ring_open(struct janua_ring *, unsigned calls, unsigned under_way);
/* Ends it, with all that is under way: what has not begun is not made, what waits is interrupted. */
int janua_ring_close(struct janua_ring *);
/* The next free place, or null when all are taken: then wait, and take completions. */
struct janua_call *janua_ring_call(struct janua_ring *);
/* Submits what has been filled in. Traps only if nobody looks into the ring and `now` is set. */
void janua_ring_submit(struct janua_ring *, int now);
/* Has what is submitted made, and waits until so many completions can be taken, no longer than `nanos` (0: for ever): how many there are, or a negated error. */
long janua_ring_wait(struct janua_ring *, unsigned least, uint64_t nanos);

/* Fills in a call. */
static inline void janua_call(struct janua_call *call, uint64_t tag, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	call->number = number, call->flags = 0, call->tag = tag;
	call->args[0] = a, call->args[1] = b, call->args[2] = c, call->args[3] = d, call->args[4] = e, call->args[5] = f;
}

/* Takes a completion: 1, or 0 when there is none. */
static inline int janua_ring_end(struct janua_ring *ring, struct janua_end *end)
{
	if ((uint32_t)__atomic_load_n(&ring->head->posted, __ATOMIC_ACQUIRE) == ring->reaped)
		return 0;
	*end = ring->ends[ring->reaped++ & (ring->end_count - 1)];
	__atomic_store_n(&ring->head->reaped, ring->reaped, __ATOMIC_RELEASE);
	return 1;
}
#endif
