/* Whose memory a ring of calls is in: the program's own, or some that the kernel has mapped, which a module that looks into it shares. What becomes of it when the program takes it away,
 * forks, runs another program, or ends its thread without closing the ring; and that nothing stays of many. With two names of files it makes the first in the end, and waits for the second. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "../../user/ring/ring.c"

static int wrong;

static void check(const char *what, int holds)
{
	printf("%s: %s\n", what, holds ? "as it should" : "WRONG");
	wrong |= !holds;
}

/* So many calls by a ring: how many have the right result. */
static int made(struct janua_ring *ring, int count)
{
	int right = 0, got = 0;
	struct janua_end end;
	for (int n = 0; n < count; n++) {
		struct janua_call *call = janua_ring_call(ring);
		if (!call)
			return -1;
		janua_call(call, n, SYS_getppid, 0, 0, 0, 0, 0, 0);
	}
	janua_ring_submit(ring, 1);
	while (got < count) {
		if (janua_ring_wait(ring, 1, 5000000000) < 0)
			return -1;
		for (; janua_ring_end(ring, &end); got++)
			right += end.result == getppid();
	}
	return right;
}

/* Mappings of the kernel's making. */
static int mapped(void)
{
	char line[512];
	int count = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps))
		count += strstr(line, " rw-s ") && strstr(line, "/[ring]");
	if (maps)
		fclose(maps);
	return count;
}

static void in_memory_of_the_program(void)
{
	struct janua_ring ring = { .call_count = 8, .end_count = 16 };
	char *at = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long opened = syscall(JANUA_RING_OPEN, at, 8, 16, 4);
	ring.head = (void *)at, ring.calls = (void *)(ring.head + 1), ring.ends = (void *)(ring.calls + 8);
	ring.watched = opened == 1;
	check("in the program's own memory", (opened == 0 || opened == 1) && made(&ring, 8) == 8 && made(&ring, 5) == 5 && mapped() == 0);
	check("closed", syscall(JANUA_RING_CLOSE) == 0 && munmap(at, 8192) == 0);
}

static void refused(void)
{
	errno = 0;
	check("sizes no ring has", syscall(JANUA_RING_OPEN, 0, 3, 8, 1) == -1 && errno == EINVAL && syscall(JANUA_RING_OPEN, 0, 8, 0, 1) == -1 && errno == EINVAL &&
		syscall(JANUA_RING_OPEN, 0, 1 << 16, 8, 1) == -1 && errno == EINVAL && syscall(JANUA_RING_OPEN, 0, 8, 8, 0) == -1 && errno == EINVAL &&
		syscall(JANUA_RING_OPEN, 0, 8, 8, 257) == -1 && errno == EINVAL && syscall(JANUA_RING_OPEN, 0, -1, -1, 1) == -1 && errno == EINVAL);
	check("leave no memory", mapped() == 0);
}

static void taken_away(void)
{
	struct janua_ring ring;
	check("memory of the kernel's", janua_ring_open(&ring, 16, 4) == 0 && made(&ring, 16) == 16 && mapped() == ring.watched);
	janua_call(janua_ring_call(&ring), 1, SYS_getppid, 0, 0, 0, 0, 0, 0);
	janua_ring_submit(&ring, 1);
	check("is taken away", munmap(ring.head, ring_bytes(&ring)) == 0 && mapped() == 0);
	usleep(2000);
	/* What is there now is no ring. */
	char *other = mmap(ring.head, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(other, 0xff, 4096);
	syscall(JANUA_RING_WAIT, 0, 0);
	int kept = 1;
	if (ring.watched)
		for (int n = 0; n < 4096; n++)
			kept &= other[n] == (char)0xff;
	check("and nobody writes to what comes after it", kept);
	check("and the ring is closed all the same", syscall(JANUA_RING_CLOSE) == 0);
	munmap(other, 4096);
}

/* A large ring, so that its parts are in pages of their own, part of which the program may not write to any more. */
static void protected_from_the_program(void)
{
	struct janua_ring ring;
	if (janua_ring_open(&ring, 128, 4))
		exit(3);
	int before = made(&ring, 128);
	check("memory that only the kernel may write to", before == 128 && mprotect((char *)ring.head + 4096, 4096, PROT_READ) == 0);
	syscall(JANUA_RING_WAIT, 0, 0);
	check("closed", janua_ring_close(&ring) == 0 && mapped() == 0);
}

/* A ring in the program's own memory whose places are in pages of their own, of which some are out of reach for a while: what cannot be read is nothing submitted, and
 * a completion that cannot be written is lost. */
static void out_of_reach(void)
{
	enum { CALLS = 256, PAGE = 4096, FIRST = (PAGE - 128) / 64 };
	struct janua_ring ring = { .call_count = CALLS, .end_count = CALLS };
	size_t len = (128 + CALLS * 80 + PAGE - 1) / PAGE * PAGE;
	char *at = mmap(0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (syscall(JANUA_RING_OPEN, at, CALLS, CALLS, 4) != 0) {
		/* A module looks into it, when it likes. */
		syscall(JANUA_RING_CLOSE);
		munmap(at, len);
		return;
	}
	ring.head = (void *)at, ring.calls = (void *)(ring.head + 1), ring.ends = (void *)(ring.calls + CALLS);
	int first = umask(0);
	/* Each umask(2) returns what the one before has set: which of them have been made is seen by that. */
	for (int n = 0; n < CALLS; n++)
		janua_call(janua_ring_call(&ring), n, SYS_umask, n & 0777, 0, 0, 0, 0, 0);
	mprotect(at + PAGE, PAGE, PROT_NONE);
	janua_ring_submit(&ring, 0);
	long there = syscall(JANUA_RING_WAIT, 0, 0);
	check("entries that cannot be read are not taken", there <= FIRST && ring.head->taken == (uint64_t)there);
	mprotect(at + PAGE, PAGE, PROT_READ | PROT_WRITE);
	there = syscall(JANUA_RING_WAIT, CALLS, 0);
	int right = 0;
	struct janua_end end;
	for (int n = 0; janua_ring_end(&ring, &end); n++)
		right += end.tag == n && end.result == (n ? (n - 1) & 0777 : 0);
	check("and are made once they can be", there == CALLS && right == CALLS);
	/* The last page has completions only. */
	size_t last = len - PAGE;
	int lost = 0, kept = 0;
	memset(ring.ends, 0xff, CALLS * sizeof *ring.ends);
	for (int n = 0; n < CALLS; n++) {
		janua_call(janua_ring_call(&ring), n, SYS_umask, n & 0777, 0, 0, 0, 0, 0);
		lost += (char *)(&ring.ends[n] + 1) > at + last;
	}
	mprotect(at + last, PAGE, PROT_NONE);
	janua_ring_submit(&ring, 0);
	there = syscall(JANUA_RING_WAIT, CALLS, 0);
	mprotect(at + last, PAGE, PROT_READ | PROT_WRITE);
	for (int n = 0; n < CALLS; n++)
		kept += ring.ends[n].tag == (uint64_t)n && ring.ends[n].result == (n ? (n - 1) & 0777 : CALLS - 1);
	check("completions that cannot be written are lost, and their calls made", there == CALLS && lost > 0 && kept == CALLS - lost && umask(first) == CALLS - 1);
	check("closed", syscall(JANUA_RING_CLOSE) == 0 && munmap(at, len) == 0);
}

static void forked(void)
{
	struct janua_ring ring;
	int status;
	if (janua_ring_open(&ring, 16, 4))
		exit(3);
	pid_t child = fork();
	if (child == 0) {
		struct janua_ring own;
		int none = syscall(JANUA_RING_WAIT, 0, 0) == -1 && errno == ENXIO;
		/* None of its parent's, by which it could make calls with rights that it may have given up by then. */
		none &= mapped() == 0;
		_exit(!none || janua_ring_open(&own, 16, 4) || made(&own, 16) != 16);
	}
	waitpid(child, &status, 0);
	check("a child has one of its own", WIFEXITED(status) && WEXITSTATUS(status) == 0);
	check("beside its parent's", made(&ring, 16) == 16 && janua_ring_close(&ring) == 0);
	child = vfork();
	if (child == 0) {
		execl("/proc/self/exe", "ring_memory", "again", (char *)0);
		_exit(3);
	}
	waitpid(child, &status, 0);
	check("another program", WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Does not close its ring. */
static void *leaves(void *right)
{
	struct janua_ring ring;
	*(int *)right = janua_ring_open(&ring, 8, 2) == 0 && made(&ring, 8) == 8;
	munmap(ring.head, ring_bytes(&ring));
	return 0;
}

static void many(void)
{
	int right = 0;
	for (int n = 0; n < 200; n++) {
		pthread_t threads[2];
		int fine[2] = { 0, 0 };
		for (int k = 0; k < 2; k++)
			pthread_create(&threads[k], 0, leaves, &fine[k]);
		for (int k = 0; k < 2; k++)
			pthread_join(threads[k], 0);
		right += fine[0] + fine[1];
	}
	check("many threads that end with theirs", right == 400 && mapped() == 0);
}

int main(int argc, char **argv)
{
	struct janua_ring ring;
	setvbuf(stdout, 0, _IONBF, 0);
	if (argc > 1 && !strcmp(argv[1], "again"))
		return janua_ring_open(&ring, 8, 2) || made(&ring, 8) != 8 || mapped() != ring.watched;
	if (janua_ring_open(&ring, 8, 2) || ring.alone)
		return printf("no ring\n"), 2;
	printf("served by %s\n", ring.watched ? "a module" : "the thread");
	check("closed at once", janua_ring_close(&ring) == 0 && mapped() == 0);
	in_memory_of_the_program();
	refused();
	taken_away();
	protected_from_the_program();
	out_of_reach();
	forked();
	many();
	printf("over\n");
	if (argc > 2) {
		close(creat(argv[1], 0600));
		while (access(argv[2], F_OK))
			usleep(10000);
	}
	return wrong;
}
