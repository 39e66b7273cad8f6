/* Calls from code made at run time by eight threads at once while it is rewritten; beside it, on the same page and the next ones, code that
 * nobody but one thread runs, and pages that another writes, makes executable, runs and writes again. */
/* not: i386 */
/* seconds: 60 */
#include "t.h"
#include <stdatomic.h>
#define PAGE 4096
#define CALLERS 8
#define ROUNDS 30
#define CALLS 300

typedef long fn(void);
static unsigned char *code;
static atomic_int wrong, stop;
static atomic_long turned, added;
static pthread_barrier_t start;

/* mov $number, %eax; syscall; ret */
static void emit(unsigned char *p, int number)
{
	p[0] = 0xb8;
	memcpy(p + 1, &number, 4);
	memcpy(p + 5, "\x0f\x05\xc3", 3);
}

static void *caller(void *site)
{
	pid_t pid = getpid();
	pthread_barrier_wait(&start);
	for (int i = 0; i < CALLS; i++)
		wrong += ((fn *)site)() != pid;
	return 0;
}

/* Without a call: mov $0x1234, %eax; ret. It is between the sites. */
static void *neighbour(void *place)
{
	pthread_barrier_wait(&start);
	do {
		wrong += ((fn *)place)() != 0x1234;
		added++;
	} while (!stop);
	return 0;
}

/* A page of its own: written, run, written again. */
static void *maker(void *page)
{
	unsigned char *p = page;
	pthread_barrier_wait(&start);
	do {
		int parent = turned % 2;
		if (mprotect(p, PAGE, PROT_READ | PROT_WRITE))
			wrong++;
		emit(p + 256, parent ? SYS_getppid : SYS_getpid);
		if (mprotect(p, PAGE, PROT_READ | PROT_EXEC))
			wrong++;
		for (int i = 0; i < 6; i++)
			wrong += ((fn *)(p + 256))() != (parent ? getppid() : getpid());
		turned++;
	} while (!stop);
	return 0;
}

/* No part of the page may be taken away for good, nor given rights that it has not. */
static int runs(unsigned char *p)
{
	pid_t child = fork();
	if (!child) {
		/* Against core files where a fault is what is asked for. */
		signal(SIGSEGV, _exit);
		_exit(((fn *)p)() != getpid());
	}
	int status = -1;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	pthread_barrier_init(&start, 0, CALLERS + 2);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned char *made = mmap(0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(made != MAP_FAILED ? 0 : -1);
		memset(made, 0x90, 3 * PAGE);
		code = made + PAGE;
		/* The last is across the border of two pages. */
		unsigned char *sites[2] = {code + 512, code + PAGE - 3}, *between = code + 1024;
		emit(sites[0], SYS_getpid);
		emit(sites[1], SYS_getpid);
		memcpy(between, "\xb8\x34\x12\x00\x00\xc3", 6);
		must(mprotect(code, 2 * PAGE, PROT_READ | PROT_EXEC));
		pthread_t threads[CALLERS + 2];
		stop = 0;
		for (long i = 0; i < CALLERS; i++)
			must(-pthread_create(&threads[i], 0, caller, sites[i & 1]));
		must(-pthread_create(&threads[CALLERS], 0, neighbour, between));
		must(-pthread_create(&threads[CALLERS + 1], 0, maker, made));
		for (int i = 0; i < CALLERS; i++)
			pthread_join(threads[i], 0);
		stop = 1;
		pthread_join(threads[CALLERS], 0);
		pthread_join(threads[CALLERS + 1], 0);
		if (runs(sites[0]) || runs(sites[1]))
			wrong++;
		/* It is data now; a fetch is a fault and not waited for. */
		must(mprotect(code, PAGE, PROT_READ));
		if (runs(sites[0]) != SIGSEGV)
			wrong++;
		/* The program's own bytes are there. */
		if (memcmp(sites[0], "\xb8\x27\x00\x00\x00\x0f\x05\xc3", 8))
			wrong++;
		must(munmap(made, 3 * PAGE));
	}
	N(wrong);
	T(turned > 0 && added > 0);
	return t_done();
}
