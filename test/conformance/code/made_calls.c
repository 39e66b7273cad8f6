/* System calls from code made at run time: written again, moved, unmapped, shared with threads and children. */
/* not: i386 */
/* seconds: 60 */
#include "t.h"
#define PAGE 4096
#define PAD 256
typedef long fn(long, long, long);
static int prot_code = PROT_READ | PROT_EXEC, prot_data = PROT_READ | PROT_WRITE;

static unsigned char *memory(int pages)
{
	unsigned char *p = mmap(0, pages * PAGE, prot_data, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(p != MAP_FAILED ? 0 : -1);
	return p;
}
/* mov $number, %eax; syscall; ret, behind instructions of one byte. */
static unsigned char *by_number(unsigned char *p, int number)
{
	memset(p, 0x90, PAD);
	p += PAD;
	p[0] = 0xb8;
	memcpy(p + 1, &number, 4);
	memcpy(p + 5, "\x0f\x05\xc3", 3);
	return p;
}
/* mov %edi, %eax; syscall; cmp $-4096, %rax; ja 1f; ret; 1: mov $-1, %eax; ret */
static unsigned char *by_register(unsigned char *p)
{
	memset(p, 0x90, PAD);
	p += PAD;
	memcpy(p, "\x89\xf8\x0f\x05\x48\x3d\x00\xf0\xff\xff\x77\x01\xc3\xb8\xff\xff\xff\xff\xc3", 19);
	return p;
}
static long call(unsigned char *p, long a)
{
	return ((fn *)p)(a, 0, 0);
}
/* How many of n calls returned what they should. */
static int many(unsigned char *p, long a, long answer, int n)
{
	int good = 0;
	for (int i = 0; i < n; i++)
		good += call(p, a) == answer;
	return good;
}

static unsigned char *shared;
static pthread_barrier_t start;
static void *racer(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&start);
	return (void *)(long)many(shared, 0, getpid(), 200);
}
static volatile int stop;
static unsigned char *both[2];
static void *caller(void *arg)
{
	long good = 0, all = 0;
	/* At least once: on a busy machine it may begin when all else is done. */
	do {
		all++;
		good += call(arg, 0) == getpid();
	} while (!stop);
	return (void *)(long)(all > 0 && good == all);
}

static volatile int handled;
static volatile unsigned long at_pc;
static void on_alarm(int s, siginfo_t *i, void *u)
{
	(void)s, (void)i;
	at_pc = ((ucontext_t *)u)->uc_mcontext.gregs[REG_RIP];
	handled++;
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	unsigned char *p = memory(4);
	unsigned char *pid = by_number(p, SYS_getpid), *any = by_register(p + PAGE);
	must(mprotect(p, 4 * PAGE, prot_code));
	N(many(pid, 0, getpid(), 50));
	N(many(any, SYS_getppid, getppid(), 50));
	N(many(any, 100000, 0xffffffff, 10));
	N(many(any, SYS_getpid, getpid(), 50));

	/* The bytes are the program's when it may write them. */
	must(mprotect(p, 4 * PAGE, prot_data));
	N(memcmp(pid, "\xb8\x27\x00\x00\x00\x0f\x05\xc3", 8));
	N(memcmp(any, "\x89\xf8\x0f\x05\x48\x3d\x00\xf0\xff\xff", 10));
	pid[1] = SYS_getppid;
	must(mprotect(p, 4 * PAGE, prot_code));
	N(many(pid, 0, getppid(), 50));
	int good = 0;
	for (int i = 0; i < 300; i++) {
		must(mprotect(p, PAGE, prot_data));
		pid[1] = i & 1 ? SYS_getppid : SYS_getpid;
		must(mprotect(p, PAGE, prot_code));
		good += many(pid, 0, i & 1 ? getppid() : getpid(), 7);
	}
	N(good);
	/* By way of a right to read alone, which takes the right to execute away first. */
	must(mprotect(p, PAGE, PROT_READ));
	must(mprotect(p, PAGE, prot_data));
	N(pid[0]);
	pid[1] = SYS_getpid;
	must(mprotect(p, PAGE, prot_code));
	N(many(pid, 0, getpid(), 50));

	/* Moved, with the bytes that were there. */
	unsigned char *q = mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory(2));
	T(q != MAP_FAILED);
	N(many(q + PAD, 0, getpid(), 50));
	N(many(q + PAGE + PAD, SYS_getpid, getpid(), 50));
	must(mprotect(q, PAGE, PROT_READ));
	N(memcmp(q + PAD, "\xb8\x27\x00\x00\x00\x0f\x05\xc3", 8));

	/* Dropped pages are empty. */
	q = memory(1);
	unsigned char *code = by_number(q, SYS_getpid);
	must(mprotect(q, PAGE, prot_code));
	N(many(code, 0, getpid(), 20));
	R(madvise(q, PAGE, MADV_DONTNEED));
	N(code[0] | code[5]);
	must(mprotect(q, PAGE, prot_data));
	by_number(q, SYS_getppid);
	must(mprotect(q, PAGE, prot_code));
	N(many(code, 0, getppid(), 20));

	/* Other code in the same place. */
	good = 0;
	for (int i = 0; i < 200; i++) {
		unsigned char *again = mmap(q, PAGE, prot_data, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		must(again == q ? 0 : -1);
		int shift = i % 16;
		by_number(q + shift, i & 1 ? SYS_getpid : SYS_getppid);
		must(mprotect(q, PAGE, prot_code));
		good += many(code + shift, 0, i & 1 ? getpid() : getppid(), 6);
		if (i % 3 == 0) {
			must(munmap(q, PAGE));
		}
	}
	N(good);

	/* A file's code, mapped as no loader would. */
	int fd = must(open("made.bin", O_RDWR | O_CREAT | O_EXCL, 0700));
	unsigned char image[2 * PAGE] = {0};
	by_number(image + PAGE, SYS_getpid);
	must(write(fd, image, sizeof image) == sizeof image ? 0 : -1);
	must(close(fd));
	fd = must(open("made.bin", O_RDONLY));
	good = 0;
	for (int i = 0; i < 30; i++) {
		q = mmap(0, PAGE, prot_code, MAP_PRIVATE, fd, PAGE);
		good += q != MAP_FAILED && many(q + PAD, 0, getpid(), 10) == 10;
		must(munmap(q, PAGE));
	}
	N(good);
	must(unlink("made.bin"));

	/* A signal while a call waits shows an address of the program's. */
	q = memory(1);
	code = by_register(q);
	must(mprotect(q, PAGE, prot_code));
	N(many(code, SYS_getpid, getpid(), 20));
	t_info(SIGALRM, on_alarm, 0);
	struct itimerval timer = {.it_value = {.tv_usec = 30000}};
	must(setitimer(ITIMER_REAL, &timer, 0));
	N(call(code, SYS_pause));
	N(handled);
	N((long)(at_pc - (unsigned long)code));

	/* Threads that all come to a site for the first time. */
	good = 0;
	for (int round = 0; round < 20; round++) {
		pthread_t thread[4];
		q = memory(1);
		shared = by_number(q, SYS_getpid);
		must(mprotect(q, PAGE, prot_code));
		pthread_barrier_init(&start, 0, 4);
		for (int i = 0; i < 4; i++)
			must(-pthread_create(&thread[i], 0, racer, 0));
		for (int i = 0; i < 4; i++) {
			void *answer;
			pthread_join(thread[i], &answer);
			good += (long)answer == 200;
		}
		pthread_barrier_destroy(&start);
	}
	N(good);

	/* One thread calls all the time while the code beside it is changed and calls for the first time. */
	q = memory(2);
	both[0] = by_number(q, SYS_getpid);
	must(mprotect(q, 2 * PAGE, prot_code));
	pthread_t thread;
	must(-pthread_create(&thread, 0, caller, both[0]));
	good = 0;
	for (int i = 0; i < 100; i++) {
		must(mprotect(q + PAGE, PAGE, prot_data));
		both[1] = by_number(q + PAGE + i, SYS_getppid);
		must(mprotect(q + PAGE, PAGE, prot_code));
		good += many(both[1], 0, getppid(), 8);
	}
	N(good);

	/* Children of a process that calls: each its own code. */
	for (int i = 0; i < 8; i++) {
		pid_t child = must(fork());
		if (!child) {
			int own = many(both[0], 0, getpid(), 20) == 20;
			must(mprotect(q, PAGE, prot_data));
			own += memcmp(both[0], "\xb8\x27\x00\x00\x00\x0f\x05\xc3", 8) == 0;
			by_number(q, SYS_getppid);
			must(mprotect(q, PAGE, prot_code));
			own += many(both[0], 0, getppid(), 20) == 20;
			_exit(own);
		}
		int status;
		must(waitpid(child, &status, 0));
		N(WEXITSTATUS(status));
	}
	stop = 1;
	void *answer;
	pthread_join(thread, &answer);
	N((long)answer);
	N(many(both[0], 0, getpid(), 20));
	return t_done();
}
