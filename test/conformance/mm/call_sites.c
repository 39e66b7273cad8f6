/* Calls made from every shape of code: whatever a kernel does to reach them faster, the program must not notice. */
/* not: i386 */
#include "t.h"
#include <sys/auxv.h>
#define FN(name, body) asm(".text\n.balign 16\n.type " #name ",@function\n" #name ":\n" body "\n.size " #name ",.-" #name "\n")
#define DECL(name) extern long name(long, long, long)
FN(plain, "mov $110,%eax\n syscall\n ret");
FN(wide, "mov $110,%rax\n syscall\n ret");
FN(spread, "mov $110,%eax\n mov %rdi,%r8\n syscall\n cmp $-4096,%rax\n ja 1f\n ret\n 1: neg %eax\n ret");
FN(zeroed, "xor %eax,%eax\n syscall\n test %rax,%rax\n js 1f\n ret\n 1: mov %rax,%rdx\n mov %rdx,%rax\n ret");
/* The loop enters behind the call the second time. */
FN(into_tail, "mov %rdi,%r9\n xor %r8d,%r8d\n mov $110,%eax\n mov %eax,%eax\n syscall\n 1: test %eax,%eax\n mov %eax,%ecx\n inc %r8d\n dec %r9\n jnz 1b\n mov %r8d,%eax\n ret");
/* ... and here it enters at the call, with the number loaded elsewhere. */
FN(into_call, "mov %rdi,%r9\n xor %r8d,%r8d\n mov $110,%eax\n 1: syscall\n add %rax,%r8\n mov $186,%eax\n dec %r9\n jnz 1b\n mov %r8,%rax\n ret");
FN(then_jump, "mov %rdi,%rax\n syscall\n jmp 1f\n ud2\n 1: ret");
FN(by_pc, "lea 1f(%rip),%rdx\n mov $110,%eax\n mov %eax,%eax\n syscall\n mov one(%rip),%ecx\n 1: ret");
FN(other_register, "mov %rdi,%rax\n mov $110,%r8d\n syscall\n ret");
FN(flags_kept, "stc\n mov $110,%eax\n syscall\n sbb %eax,%eax\n ret");
FN(in_constant, "mov $0xc3050f,%eax\n ret");
int one = 1;
DECL(plain); DECL(wide); DECL(spread); DECL(zeroed); DECL(into_tail); DECL(into_call); DECL(then_jump); DECL(by_pc);
DECL(other_register); DECL(flags_kept); DECL(in_constant);
/* A call across two pages. */
asm(".text\n.balign 4096\n.skip 4093\n.type split,@function\nsplit: mov $110,%eax\n syscall\n ret\n.size split,.-split\n");
DECL(split);
extern char waits_return[], waits_number_return[];
static volatile int handled;
static volatile unsigned long at_pc;
static void on_alarm(int s, siginfo_t *i, void *u)
{
	(void)s, (void)i;
	unsigned long pc = ((ucontext_t *)u)->uc_mcontext.gregs[REG_RIP];
	/* The timer may come again before the program has looked. */
	if (pc == (unsigned long)waits_return || pc == (unsigned long)waits_number_return)
		at_pc = pc;
	handled++;
}
/* pause(2) with what looks at the result behind it; the handler must see the address behind the call. */
FN(waits, "xor %eax,%eax\n add $34,%eax\n syscall\n .globl waits_return\n waits_return: cmp $-4,%rax\n sete %al\n movzbl %al,%eax\n ret");
FN(waits_number, "mov $34,%eax\n syscall\n .globl waits_number_return\n waits_number_return: cmp $-4,%rax\n sete %al\n movzbl %al,%eax\n ret");
DECL(waits); DECL(waits_number);
static void arm(void)
{
	struct itimerval v = {{0, 10000}, {0, 30000}};
	setitimer(ITIMER_REAL, &v, 0);
}
static void *many(void *bad)
{
	for (int i = 0; i < 20000; i++)
		if (plain(0, 0, 0) != getppid() || wide(0, 0, 0) != getppid() || into_tail(3, 0, 0) != 3)
			++*(long *)bad;
	return 0;
}
static unsigned char code[] = {0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3};
int main(void)
{
	long parent = getppid(), tid = syscall(SYS_gettid);
	for (int i = 0; i < 3; i++) {
		T(plain(0, 0, 0) == parent);
		T(wide(0, 0, 0) == parent);
		T(spread(0, 0, 0) == parent);
		N(zeroed(-1, 0, 0));
		N(into_tail(4, 0, 0));
		T(into_call(3, 0, 0) == parent + 2 * tid);
		T(then_jump(SYS_getppid, 0, 0) == parent);
		T(by_pc(0, 0, 0) == parent);
		T(other_register(SYS_getppid, 0, 0) == parent);
		N(flags_kept(0, 0, 0));
		N(in_constant(0, 0, 0));
		T(split(0, 0, 0) == parent);
	}
	/* An interrupted call shows the handler the program's own code, and goes on there. */
	struct sigaction sa = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO};
	sigaction(SIGALRM, &sa, 0);
	arm();
	N(waits(0, 0, 0));
	T(at_pc == (unsigned long)waits_return);
	N(waits_number(0, 0, 0));
	T(at_pc == (unsigned long)waits_number_return);
	struct itimerval zero = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &zero, 0);
	/* After fork both go on. */
	CHILD("fork", { T(plain(0, 0, 0) == getppid()); T(split(0, 0, 0) == getppid()); });
	pthread_t t[4];
	long bad[4] = {0};
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, many, &bad[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	N(bad[0] + bad[1] + bad[2] + bad[3]);
	/* Code written by the program, changed, moved. */
	char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p, code, sizeof code);
	R(mprotect(p, 8192, PROT_READ | PROT_EXEC));
	T(((long (*)(void))p)() == parent);
	T(((long (*)(void))p)() == parent);
	R(mprotect(p, 8192, PROT_READ | PROT_WRITE));
	p[1] = 39;
	R(mprotect(p, 8192, PROT_READ | PROT_EXEC));
	T(((long (*)(void))p)() == getpid());
	char *q = mremap(p, 8192, 16384, MREMAP_MAYMOVE);
	T(q != MAP_FAILED && ((long (*)(void))q)() == getpid());
	R(munmap(q, 16384));
	/* The program's own code made writable holds what its file holds, and can be changed. */
	char *page = (char *)((unsigned long)plain & ~4095ul);
	R(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0 || errno == EACCES);
	T(plain(0, 0, 0) == parent);
	R(mprotect(page, 4096, PROT_READ | PROT_EXEC));
	T(plain(0, 0, 0) == parent);
	R(mprotect(page, 4096, PROT_READ | PROT_WRITE));
	T(((unsigned char *)plain)[0] == 0xb8 && ((unsigned char *)plain)[5] == 0x0f);
	((unsigned char *)plain)[1] = 39;
	R(mprotect(page, 4096, PROT_READ | PROT_EXEC));
	T(plain(0, 0, 0) == getpid());
	T(wide(0, 0, 0) == parent);
	return t_done();
}
