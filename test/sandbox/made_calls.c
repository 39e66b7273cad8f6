/* Four threads that each make 5000 calls from code made at run time, after all of them have begun: by a number just before the call. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#define CALLERS 4
#define CALLS 5000

static pthread_barrier_t start;

static void *caller(void *site)
{
	long good = 0, pid = getpid();
	pthread_barrier_wait(&start);
	for (int i = 0; i < CALLS; i++)
		good += ((long (*)(void))site)() == pid;
	return (void *)good;
}

int main(void)
{
	unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int number = SYS_getpid;
	memset(code, 0x90, 4096);
	code[512] = 0xb8;
	memcpy(code + 513, &number, 4);
	memcpy(code + 517, "\x0f\x05\xc3", 3);
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	pthread_barrier_init(&start, 0, CALLERS);
	pthread_t threads[CALLERS];
	for (int i = 0; i < CALLERS; i++)
		pthread_create(&threads[i], 0, caller, code + 512);
	for (int i = 0; i < CALLERS; i++) {
		void *good;
		pthread_join(threads[i], &good);
		printf("thread: %ld\n", (long)good);
	}
	return 0;
}
