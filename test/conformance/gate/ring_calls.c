/* Rings of calls, by the library for them: batches, chains, errors, back-pressure, counts that go round. Where the kernel has no such rings the library makes the
 * calls one by one: results are the same. */
/* not: i386 */
#include "../t.h"
#include "../../../user/ring/ring.c"
static struct janua_ring ring;

static void put(uint64_t tag, unsigned flags, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct janua_call *call = janua_ring_call(&ring);
	if (!call) {
		say("%d: no room\n", (int)tag);
		return;
	}
	janua_call(call, tag, number, a, b, c, d, 0, 0);
	call->flags = flags;
}

/* Waits for so many ends, and prints what they are by their tags. */
static void show(const char *what, int count)
{
	struct janua_end end[64], one;
	int got = 0;
	janua_ring_submit(&ring, 0);
	while (got < count) {
		long there = janua_ring_wait(&ring, 1, 0);
		if (there < 0) {
			say("%s: %s\n", what, t_errno(-there));
			return;
		}
		while (got < 64 && janua_ring_end(&ring, &one)) {
			int at = got++;
			for (; at > 0 && end[at - 1].tag > one.tag; at--)
				end[at] = end[at - 1];
			end[at] = one;
		}
	}
	say("%s: %d\n", what, got);
	for (int n = 0; n < got; n++) {
		if (end[n].result < 0)
			say(" %d: %s\n", (int)end[n].tag, t_errno(-end[n].result));
		else
			say(" %d: %ld\n", (int)end[n].tag, (long)end[n].result);
	}
}

int main(void)
{
	char b[64] = "", c[8] = "";
	int p[2], right = 0;
	struct janua_end end;
	must(pipe(p));
	N(janua_ring_open(&ring, 7, 4));
	N(janua_ring_open(&ring, 8, 4));
	/* Eight at once, and no ninth. */
	for (int n = 0; n < 8; n++)
		put(n, 0, SYS_getppid, 0, 0, 0, 0);
	T(janua_ring_call(&ring) == 0);
	janua_ring_submit(&ring, 0);
	T(janua_ring_wait(&ring, 8, 0) == 8);
	for (int n = 0; janua_ring_end(&ring, &end); n++)
		right += end.result == getppid() && end.tag < 8;
	N(right);
	T(janua_ring_call(&ring) != 0);
	ring.filled--;
	/* What may wait, and what is left in a file. */
	int f = must(open("file", O_RDWR | O_CREAT, 0600));
	put(1, JANUA_LINK, SYS_write, f, (uintptr_t)"hello world", 11, 0);
	put(2, JANUA_LINK, SYS_lseek, f, 0, SEEK_SET, 0);
	put(3, JANUA_LINK_WHOLE, SYS_read, f, (uintptr_t)b, 11, 0);
	put(4, 0, SYS_pread64, f, (uintptr_t)c, 5, 6);
	show("a chain", 4);
	S(b);
	S(c);
	put(1, JANUA_LINK_WHOLE, SYS_pread64, f, (uintptr_t)b, 64, 0);
	put(2, JANUA_LINK, SYS_ftruncate, f, 0, 0, 0);
	put(3, 0, SYS_ftruncate, f, 1, 0, 0);
	put(4, 0, SYS_lseek, f, 0, SEEK_END, 0);
	show("a short read", 4);
	put(1, JANUA_LINK_HARD, SYS_pread64, -1, 0, 0, 0);
	put(2, JANUA_LINK, SYS_lseek, f, 3, SEEK_SET, 0);
	put(3, JANUA_LINK, SYS_pread64, -1, 0, 0, 0);
	put(4, 0, SYS_lseek, f, 0, SEEK_SET, 0);
	show("hard and soft", 4);
	put(1, 0, SYS_write, p[1], (uintptr_t)"abc", 3, 0);
	put(2, 0, SYS_read, p[0], (uintptr_t)b, 64, 0);
	show("a pipe", 2);
	/* Errors. */
	put(1, 0, 1000, 0, 0, 0, 0);
	put(2, 8, SYS_getppid, 0, 0, 0, 0);
	put(3, JANUA_LINK | JANUA_LINK_HARD, SYS_getppid, 0, 0, 0, 0);
	put(4, 0, SYS_read, f, 8, 4, 0);
	put(5, 0, SYS_open, (uintptr_t)"nowhere/at/all", O_RDONLY, 0, 0);
	put(6, 0, JANUA_CANCEL, 77, 0, 0, 0);
	put(7, 1, JANUA_CANCEL, 77, 0, 0, 0);
	put(8, 0, SYS_dup, 99, 0, 0, 0);
	show("errors", 8);
	/* No more than there is room for in the completions: sixteen. */
	for (int n = 0; n < 3; n++) {
		for (int k = 0; k < 8 && janua_ring_call(&ring); k++)
			ring.filled--, put(n * 8 + k, 0, SYS_lseek, f, n * 8 + k, SEEK_SET, 0);
		janua_ring_submit(&ring, 0);
		long there = janua_ring_wait(&ring, n < 2 ? 8 * n + 8 : 0, 0);
		T(there == (n < 2 ? 8 * n + 8 : 16));
	}
	for (right = 0; janua_ring_end(&ring, &end); right++)
		if (end.result != (long)end.tag)
			say("%d: %ld\n", (int)end.tag, (long)end.result);
	T(right == 16 || right == 24);
	while (right < 24 && janua_ring_wait(&ring, 1, 0) > 0)
		for (; janua_ring_end(&ring, &end); right++)
			if (end.result != (long)end.tag)
				say("%d: %ld\n", (int)end.tag, (long)end.result);
	N(right);
	/* Round and round. */
	uint64_t sum = 0;
	for (int n = 0, ended = 0; ended < 3000;) {
		for (struct janua_call *call; n < 3000 && (call = janua_ring_call(&ring)); n++)
			janua_call(call, n, SYS_lseek, f, n, SEEK_SET, 0, 0, 0);
		janua_ring_submit(&ring, 1);
		janua_ring_wait(&ring, 1, 0);
		for (; janua_ring_end(&ring, &end); ended++)
			sum += end.tag == (uint64_t)end.result ? end.tag : 1 << 30;
	}
	N((int)sum);
	N(janua_ring_close(&ring));
	N(janua_ring_open(&ring, 2, 1));
	put(1, 0, SYS_close, f, 0, 0, 0);
	put(2, 0, SYS_close, f, 0, 0, 0);
	show("the last", 2);
	N(janua_ring_close(&ring));
	return t_failed;
}
