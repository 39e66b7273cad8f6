/* Calls so close together that what a kernel does to reach one could reach into the next, and across the border of a page. */
/* not: i386 */
#include "t.h"
#define PAGE 4096
#define PAD 256
#define FN(name, body) asm(".text\n.balign 16\n.type " #name ",@function\n" #name ":\n" body "\n.size " #name ",.-" #name "\n")
typedef long fn(long, long, long);
/* The first call's number comes from its caller, so that what follows it matters: it ends in what loads the second's. */
FN(two, "mov %rdi,%rax\n syscall\n mov %eax,%edx\n mov $39,%eax\n syscall\n lea (%rax,%rdx,4),%rax\n ret");
FN(second, "jmp 1f\n .skip 40,0x90\n 2: syscall\n mov %eax,%edx\n mov $39,%eax\n syscall\n lea (%rax,%rdx,4),%rax\n ret\n 1: mov %rdi,%rax\n jmp 2b");
extern fn two, second;
static const unsigned char pair[] = {0x48, 0x89, 0xf8, 0x0f, 0x05, 0x89, 0xc2, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x48, 0x8d, 0x04, 0x90, 0xc3};
/* movabs $39, %rax; lea 0(%rsp), %rsi with a distance of four bytes; syscall; ret */
static const unsigned char longest[] = {0x48, 0xb8, 39, 0, 0, 0, 0, 0, 0, 0, 0x48, 0x8d, 0xb4, 0x24, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};
static unsigned char *memory(int pages)
{
	unsigned char *p = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(p != MAP_FAILED ? 0 : -1);
	memset(p, 0x90, pages * PAGE);
	return p;
}
static int many(void *code, long a, long answer, int n)
{
	int good = 0;
	for (int i = 0; i < n; i++)
		good += ((fn *)code)(a, 0, 0) == answer;
	return good;
}
static int line[2];
static void *waiter(void *arg)
{
	char byte;
	(void)arg;
	must(read(line[0], &byte, 1) == 1 ? 0 : -1);
	return 0;
}
int main(void)
{
	must(pipe(line));
	long both = getpid() + 4 * getppid();
	N(many(two, SYS_getppid, both, 50));
	N(many(second, SYS_getppid, both, 50));
	unsigned char *p = memory(1);
	memcpy(p + PAD, pair, sizeof pair);
	must(mprotect(p, PAGE, PROT_READ | PROT_EXEC));
	N(many(p + PAD, SYS_getppid, both, 50));
	must(mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	N(memcmp(p + PAD, pair, sizeof pair));
	static const unsigned char only[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x31, 0xd2, 0xc3};
	for (int i = 0; i < 8; i++) {
		unsigned char *q = memory(1);
		memcpy(q + PAD, pair, sizeof pair);
		must(mprotect(q, PAGE, PROT_READ | PROT_EXEC));
		/* While there is another thread only the second can be reached in a shorter way. */
		pthread_t other;
		if (i & 1)
			must(-pthread_create(&other, 0, waiter, 0));
		N(many(q + PAD, SYS_getppid, both, 20));
		if (i & 1) {
			must(write(line[1], "", 1) == 1 ? 0 : -1);
			pthread_join(other, 0);
		}
		N(many(q + PAD, SYS_getppid, both, 20));
		must(mprotect(q, PAGE, PROT_READ | PROT_WRITE));
		N(memcmp(q + PAD, pair, sizeof pair));
		memcpy(q + PAD, only, sizeof only);
		must(mprotect(q, PAGE, PROT_READ | PROT_EXEC));
		N(many(q + PAD, 0, getpid(), 20));
		must(munmap(q, PAGE));
	}
	/* What loads the number begins with the last bytes of a page; the program wants only that page to write to. */
	for (int before = 1; before < 20; before++) {
		unsigned char *q = memory(2), *code = q + PAGE - before;
		memcpy(code, longest, sizeof longest);
		must(mprotect(q, 2 * PAGE, PROT_READ | PROT_EXEC));
		N(many(code, 0, getpid(), 20));
		must(mprotect(q, PAGE, PROT_READ | PROT_WRITE));
		N(memcmp(code, longest, sizeof longest));
		must(mprotect(q, PAGE, PROT_READ | PROT_EXEC));
		N(many(code, 0, getpid(), 20));
		must(munmap(q, 2 * PAGE));
	}
	/* The same, but the call is on the next page, and only that changes. */
	for (int before = 1; before < 19; before++) {
		unsigned char *q = memory(2), *code = q + PAGE - before;
		memcpy(code, longest, sizeof longest);
		must(mprotect(q, 2 * PAGE, PROT_READ | PROT_EXEC));
		N(many(code, 0, getpid(), 20));
		must(mprotect(q + PAGE, PAGE, PROT_READ | PROT_WRITE));
		N(memcmp(code, longest, sizeof longest));
		memset(code + 18, 0x90, 2);
		must(mprotect(q + PAGE, PAGE, PROT_READ | PROT_EXEC));
		N(many(code, 0, 39, 20));
		must(munmap(q, 2 * PAGE));
	}
	return t_done();
}
