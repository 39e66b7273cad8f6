/* Faults as signals: number, code and address of each kind. */
/* not: i386 */
#include "t.h"
#include <setjmp.h>
static sigjmp_buf j;
static char *base;
static volatile int zero, one = 1;
static void h(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;
	long err = c->uc_mcontext.gregs[19], trap = c->uc_mcontext.gregs[20];
	say("%s code %d", t_sig(s), i->si_code);
	char *a = i->si_addr;
	if (s == SIGSEGV || s == SIGBUS) {
		if (a >= base && a < base + 65536)
			say(" addr base+%#lx", (long)(a - base));
		else
			say(" addr %#lx", (unsigned long)a < 65536 ? (unsigned long)a : 0xffff);
	} else if (s == SIGILL || s == SIGFPE)
		say(" addr is rip %d", a == (char *)c->uc_mcontext.gregs[16]);
	say(" trap %ld err %ld\n", trap, trap == 14 ? err & 7 : err);
	siglongjmp(j, 1);
}
#define TRY(name, ...) do { say("%s: ", name); if (!sigsetjmp(j, 1)) { __VA_ARGS__; say("nothing\n"); } } while (0)
static void *volatile p;
int main(void)
{
	int all[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
	for (int i = 0; i < 5; i++)
		t_info(all[i], h, 0);
	base = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(base + 4096, 4096, PROT_NONE);
	mprotect(base + 8192, 4096, PROT_READ);
	munmap(base + 12288, 4096);
	TRY("read null", p = 0; *(volatile char *)p);
	TRY("write null+8", p = (void *)8; *(volatile char *)p = 1);
	TRY("read PROT_NONE", *(volatile char *)(base + 4096 + 5));
	TRY("write PROT_NONE", *(volatile char *)(base + 4096 + 6) = 1);
	TRY("read only, read", *(volatile char *)(base + 8192));
	TRY("read only, write", *(volatile char *)(base + 8192 + 7) = 1);
	TRY("unmapped", *(volatile char *)(base + 12288 + 9) = 1);
	TRY("crossing", *(volatile long *)(base + 4096 - 4) = 1);
	TRY("execute data", ((void (*)(void))base)());
	TRY("execute null", p = 0; ((void (*)(void))p)());
	TRY("non-canonical", p = (void *)0x8000000000000000; *(volatile char *)p);
	TRY("privileged", asm volatile("hlt"));
	TRY("cli", asm volatile("cli"));
	TRY("in port", asm volatile("inb $0x80,%%al" ::: "al"));
	TRY("divide by zero", one = one / zero);
	TRY("divide overflow", asm volatile("movl $0x80000000,%%eax\n cltd\n movl $-1,%%ecx\n idivl %%ecx" ::: "eax", "ecx", "edx"));
	TRY("ud2", asm volatile("ud2"));
	TRY("int3", asm volatile("int3"));
	TRY("int 4", asm volatile("int $4"));
	TRY("x87", unsigned short cw = 0x33b; asm volatile("fninit; fldcw %0; fldz; fld1; fdivp; fwait" ::"m"(cw)));
	asm volatile("fninit");
	TRY("movaps unaligned", asm volatile("movaps 1(%0),%%xmm0" ::"r"(base)));
	TRY("single step", asm volatile("pushfq; orl $0x100,(%%rsp); popfq; nop; nop" ::: "memory"));
	int f = must(open("short", O_CREAT | O_RDWR, 0600));
	must(ftruncate(f, 5000));
	must(mmap(base, 16384, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, f, 0) == MAP_FAILED ? -1 : 0);
	TRY("last page", N(base[4999]));
	TRY("beyond the file", *(volatile char *)(base + 8192 + 3));
	must(ftruncate(f, 100));
	TRY("cut short", *(volatile char *)(base + 4096 + 3) = 1);
	/* A blocked fault kills. */
	CHILD("blocked", sigset_t m; sigfillset(&m); sigprocmask(SIG_SETMASK, &m, 0); *(volatile char *)0 = 1);
	CHILD("ignored", signal(SIGFPE, SIG_IGN); zero = 0; one = one / zero);
	CHILD("default ILL", signal(SIGILL, SIG_DFL); asm volatile("ud2"));
	CHILD("default TRAP", signal(SIGTRAP, SIG_DFL); asm volatile("int3"));
	CHILD("default BUS", signal(SIGBUS, SIG_DFL); *(volatile char *)(base + 8192) = 1);
	return t_done();
}
