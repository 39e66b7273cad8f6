/* See include/janua_ring.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "include/janua_ring.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t ring_bytes(const struct janua_ring *ring)
{
	return sizeof *ring->head + ring->call_count * sizeof *ring->calls + ring->end_count * sizeof *ring->ends;
}

int janua_ring_open(struct janua_ring *ring, unsigned calls, unsigned under_way)
{
	memset(ring, 0, sizeof *ring);
	if (calls == 0 || calls & (calls - 1) || calls > 1 << 14)
		return -EINVAL;
	ring->call_count = calls, ring->end_count = 2 * calls;
	/* The kernel maps the memory: what it does by a module is sooner then than in memory of the program's own. */
	long opened = syscall(JANUA_RING_OPEN, 0, calls, 2 * calls, under_way);
	if (opened == -1 && errno != ENOSYS)
		return -errno;
	ring->alone = opened == -1;
	ring->watched = !ring->alone && opened & 1;
	ring->head = (void *)(opened & ~1l);
	if (ring->alone) {
		ring->head = mmap(0, ring_bytes(ring), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (ring->head == MAP_FAILED)
			return -errno;
		ring->head->flags = JANUA_ANNOUNCE;
	}
	ring->calls = (void *)(ring->head + 1);
	ring->ends = (void *)(ring->calls + calls);
	return 0;
}

int janua_ring_close(struct janua_ring *ring)
{
	int result = ring->alone ? 0 : syscall(JANUA_RING_CLOSE) == 0 ? 0 : -errno;
	munmap(ring->head, ring_bytes(ring));
	return result;
}

struct janua_call *janua_ring_call(struct janua_ring *ring)
{
	uint32_t taken = __atomic_load_n(&ring->head->taken, __ATOMIC_ACQUIRE);
	if (ring->filled - taken >= ring->call_count)
		return 0;
	return &ring->calls[ring->filled++ & (ring->call_count - 1)];
}

/* A kernel without rings: makes the calls as far as there is room for their results. */
static void make_alone(struct janua_ring *ring)
{
	struct janua_ring_head *head = ring->head;
	while ((uint32_t)head->taken != head->submitted && (uint32_t)head->posted - head->reaped < ring->end_count) {
		struct janua_call call = ring->calls[(uint32_t)head->taken & (ring->call_count - 1)];
		head->taken = (uint32_t)head->taken + 1;
		int64_t result;
		int wrong = call.flags & (call.flags - 1) || call.flags > JANUA_LINK_HARD || (call.number == JANUA_CANCEL && call.flags);
		if (ring->linked && ring->broken && call.number != JANUA_CANCEL) {
			result = -ECANCELED;
		} else if (wrong) {
			result = -EINVAL;
		} else if (call.number == JANUA_CANCEL) {
			result = -ENOENT;
		} else {
			long got = syscall(call.number, call.args[0], call.args[1], call.args[2], call.args[3], call.args[4], call.args[5]);
			result = got == -1 ? -errno : got;
		}
		if (call.number != JANUA_CANCEL) {
			int64_t least = call.flags == JANUA_LINK_HARD ? INT64_MIN : call.flags == JANUA_LINK_WHOLE ? (int64_t)call.args[2] : 0;
			ring->broken = (ring->linked && ring->broken) || wrong || result < least;
			ring->linked = !wrong && call.flags != 0;
		}
		ring->ends[(uint32_t)head->posted & (ring->end_count - 1)] = (struct janua_end){ call.tag, result };
		head->posted = (uint32_t)head->posted + 1;
	}
}

void janua_ring_submit(struct janua_ring *ring, int now)
{
	__atomic_store_n(&ring->head->submitted, ring->filled, __ATOMIC_RELEASE);
	if (!now)
		return;
	/* What is submitted is seen by who looks, or that one's flag is seen here. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ring->head->flags, __ATOMIC_RELAXED) & JANUA_ANNOUNCE)
		janua_ring_wait(ring, 0, 0);
}

static uint32_t there_are(const struct janua_ring *ring)
{
	return (uint32_t)__atomic_load_n(&ring->head->posted, __ATOMIC_ACQUIRE) - ring->reaped;
}

/* Where a module makes the calls, results are looked for in place of entering the kernel, for some 50 microseconds, what it costs to be woken: whether there are so many. */
static int look(const struct janua_ring *ring, unsigned least)
{
	if (!ring->watched)
		return 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (int looks = 0; looks < 2000; looks++) {
		if (__atomic_load_n(&ring->head->flags, __ATOMIC_RELAXED) & JANUA_ANNOUNCE)
			return 0;
		if (there_are(ring) >= least)
			return 1;
		__builtin_ia32_pause();
	}
	return 0;
}

long janua_ring_wait(struct janua_ring *ring, unsigned least, uint64_t nanos)
{
	if (ring->alone) {
		make_alone(ring);
		return there_are(ring);
	}
	if (look(ring, least))
		return there_are(ring);
	long there = syscall(JANUA_RING_WAIT, (uint64_t)least, nanos);
	return there < 0 ? -errno : there;
}
