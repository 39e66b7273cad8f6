/* Copies files to standard output: a chain of calls for each piece, of which the next is submitted while the last is made.
 *   cc -O2 -I user/ring/include user/ring/examples/cat.c user/ring/ring.c -o ring-cat && janua run -- ./ring-cat FILE... */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "janua_ring.h"

static char piece[2][1 << 16];

static void call(struct janua_ring *ring, uint64_t tag, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct janua_call *place;
	while (!(place = janua_ring_call(ring)))
		janua_ring_wait(ring, 1, 0);
	janua_call(place, tag, number, a, b, c, d, 0, 0);
}

static int copy(struct janua_ring *ring, const char *name)
{
	int fd = open(name, O_RDONLY);
	if (fd < 0)
		return perror(name), 1;
	off_t at = 0;
	long got = pread(fd, piece[0], sizeof piece[0], 0);
	for (int now = 0; got > 0; now ^= 1) {
		/* The piece that is there is written while the next is read. */
		long next = 0, written = 0;
		call(ring, 1, SYS_write, 1, (uint64_t)piece[now], got, 0);
		call(ring, 2, SYS_pread64, fd, (uint64_t)piece[!now], sizeof piece[0], at + got);
		janua_ring_submit(ring, 1);
		for (int ended = 0; ended < 2;) {
			struct janua_end end;
			while (janua_ring_end(ring, &end)) {
				*(end.tag == 1 ? &written : &next) = end.result;
				ended++;
			}
			long waited = ended < 2 ? janua_ring_wait(ring, 1, 0) : 0;
			if (waited < 0)
				return fprintf(stderr, "%s: %s\n", name, strerror(-waited)), 1;
		}
		while (written >= 0 && written < got) {
			long more = write(1, piece[now] + written, got - written);
			written = more < 0 ? -1 : written + more;
		}
		if (written < 0 || next < 0)
			return fprintf(stderr, "%s: not copied\n", name), 1;
		at += got, got = next;
	}
	return close(fd), got < 0;
}

int main(int count, char **names)
{
	struct janua_ring ring;
	int wrong = janua_ring_open(&ring, 8, 4);
	if (wrong)
		return fprintf(stderr, "no ring: %s\n", strerror(-wrong)), 1;
	for (int n = 1; n < count; n++)
		wrong |= copy(&ring, names[n]);
	janua_ring_close(&ring);
	return wrong;
}
