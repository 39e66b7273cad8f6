/* int $0x80 in 64-bit code, and 64-bit code that goes to 32-bit code and back. */
/* only: glibc musl */
#include "t.h"
#include <sys/ucontext.h>

static char *low;

static long int80(long n, long a, long b, long c, long d, long e)
{
	long r;
	asm volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e) : "memory", "r8", "r9", "r10", "r11");
	return r;
}

/* Runs 32-bit code on a stack below 4 GiB, and comes back by two jumps: out of 32-bit code to 64-bit code in the same low
   memory, and from there to where it was. */
static long narrow(const void *code, int size, long a, long b)
{
	long r;
	struct { uint32_t offset; uint16_t segment; } __attribute__((packed)) *to = (void *)(low + 1024), *back;
	memcpy(low + 256, code, size);
	low[256 + size] = 0xea;
	back = (void *)(low + 257 + size);
	back->offset = (uint32_t)(uintptr_t)low + 512;
	back->segment = 0x33;
	memcpy(low + 512, "\xff\x25\0\0\0\0", 6);
	to->offset = (uint32_t)(uintptr_t)low + 256;
	to->segment = 0x23;
	asm volatile("mov %%rsp, 2048(%[low])\n"
		     "lea 1f(%%rip), %%rax\n"
		     "mov %%rax, 518(%[low])\n"
		     "lea 8192(%[low]), %%rsp\n"
		     "ljmp *1024(%[low])\n"
		     "1: mov 2048(%[low]), %%rsp\n"
		     : "=&a"(r)
		     : [low] "D"(low), "b"(a), "c"(b)
		     : "memory", "rdx", "r8", "r9", "r10", "r11", "cc");
	return (int)r;
}

static volatile int caught;

static volatile long where, at_segment;

static void handler(int s)
{
	caught = s;
}

static void skip(int s, siginfo_t *i, void *p)
{
	greg_t *r = ((ucontext_t *)p)->uc_mcontext.gregs;
	caught = s;
	where = (long)i->si_addr;
	at_segment = r[REG_CSGSFS] & 0xffff;
	r[REG_RIP] += 5;
}

int main(void)
{
	low = mmap(0, 16384, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	T(low != MAP_FAILED && (uintptr_t)low >> 32 == 0);
	strcpy(low, "by int 0x80\n");
	T(int80(20, 0, 0, 0, 0, 0) == getpid());
	N(int80(4, 1, (long)low, 12, 0, 0));
	/* The upper halves do not count. */
	N(int80(4, 0x700000001, (long)low | 0x500000000, 0x90000000c, 0, 0));
	N(int80(9999, 0, 0, 0, 0, 0));
	N(int80(-1, 0, 0, 0, 0, 0));
	N(int80(4, 99, (long)low, 1, 0, 0));
	long at = int80(192, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	T(at > 0 && at >> 32 == 0);
	strcpy((char *)at, "mmap2");
	S((char *)at);
	N(int80(91, at, 4096, 0, 0, 0));
	/* exit in a child, waited for by waitpid. */
	pid_t child = int80(2, 0, 0, 0, 0, 0);
	if (!child)
		int80(1, 42, 0, 0, 0, 0);
	T(int80(7, child, (long)(low + 128), 0, 0, 0) == child);
	T(WEXITSTATUS(*(int *)(low + 128)) == 42);

	/* getpid by int $0x80 */
	T(narrow("\xb8\x14\0\0\0\xcd\x80", 7, 0, 0) == getpid());
	/* mov %cs, %eax */
	N(narrow("\x8c\xc8", 2, 0, 0) & 0xffff);
	/* A 64-bit handler for a signal that 32-bit code sends itself: kill(ebx, ecx). */
	signal(SIGUSR1, handler);
	N(narrow("\xb8\x25\0\0\0\xcd\x80", 7, getpid(), SIGUSR1));
	N(caught);
	/* A fault in 32-bit code: mov 8, %eax */
	struct sigaction fault = { .sa_sigaction = skip, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &fault, 0);
	N(narrow("\x31\xc0\xa1\x08\0\0\0", 7, 0, 0));
	N(caught), N(at_segment), N(where);
	/* The same numbers by syscall are other calls still. */
	T(syscall(SYS_getpid) == getpid());
	return t_failed;
}
