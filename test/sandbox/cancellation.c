/* Cancellation points as musl and glibc (2.41 and later) have them, instruction by instruction, and as musl has them in programs that never
 * cancel. Each makes so many reads, by one thread and then by several at once, and prints how many gave what they should. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READS = 2000, THREADS = 3 };

/* Number and six arguments, behind a word that specifies whether to cancel; and without that word. */
long cancellable(volatile int *, long, long, long, long, long, long, long);
long plain(long, long, long, long, long, long, long);
asm(".text\n.p2align 4\ncancellable:\n"
    "mov (%rdi), %eax\n test %eax, %eax\n jnz 1f\n mov %rdi, %r11\n mov %rsi, %rax\n mov %rdx, %rdi\n mov %rcx, %rsi\n mov %r8, %rdx\n"
    "mov %r9, %r10\n mov 8(%rsp), %r8\n mov 16(%rsp), %r9\n mov %r11, 8(%rsp)\n syscall\n ret\n 1: mov $-125, %rax\n ret\n"
    ".p2align 4\nplain:\n"
    "mov %rdi, %rax\n mov %r8, %r10\n mov %rsi, %rdi\n mov %r9, %r8\n mov %rdx, %rsi\n mov 8(%rsp), %r9\n mov %rcx, %rdx\n syscall\n ret\n"
    ".p2align 4\n");

static int zero, self;

static void *reads(void *unused)
{
	static volatile int cancel;
	char page[4096];
	long good = 0;
	for (int i = 0; i < READS; i++) {
		char byte = 1, other = 1;
		good += cancellable(&cancel, SYS_pread64, zero, (long)&byte, 1, i, 0, 0) == 1 && byte == 0;
		good += plain(SYS_pread64, zero, (long)&other, 1, i, 0, 0) == 1 && other == 0;
		if (i % 100 == 0) {
			/* Six arguments, the last two by way of the stack: the second page of the program's own file. */
			long at = cancellable(&cancel, SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, self, 4096);
			good += at > 0 && pread(self, page, 4096, 4096) == 4096 && !memcmp((void *)at, page, 4096) && munmap((void *)at, 4096) == 0;
		}
	}
	return (void *)good;
}

int main(void)
{
	pthread_t threads[THREADS];
	void *good;
	volatile int cancel = 1;
	zero = open("/dev/zero", O_RDONLY);
	self = open("/proc/self/exe", O_RDONLY);
	printf("alone: %ld\n", (long)reads(0));
	for (int i = 0; i < THREADS; i++)
		pthread_create(threads + i, 0, reads, 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &good);
		printf("thread: %ld\n", (long)good);
	}
	printf("cancelled: %ld, no such call: %ld\n", cancellable(&cancel, SYS_pread64, zero, 0, 0, 0, 0, 0), plain(-1, 0, 0, 0, 0, 0, 0));
	return 0;
}
