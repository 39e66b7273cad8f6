/* Registers and the 128 bytes below the stack pointer survive a signal at any instruction and a system call (but rcx, r11). */
/* not: i386 */
#include "t.h"
static volatile int n;
static void h(int s)
{
	volatile char junk[2048];
	memset((char *)junk, s, sizeof junk);
	n++;
}
/* Fills the red zone and all registers, spins, then counts what differs. */
static long spin(long turns)
{
	long bad;
	asm volatile(
		"mov %1,%%rcx\n xor %%eax,%%eax\n"
		"movq $0x1111,-8(%%rsp)\n movq $0x2222,-64(%%rsp)\n movq $0x3333,-128(%%rsp)\n"
		"mov $2,%%edx\n mov $3,%%esi\n mov $4,%%edi\n mov $8,%%r8d\n mov $9,%%r9d\n mov $10,%%r10d\n mov $11,%%r11d\n mov $12,%%r12d\n mov $13,%%r13d\n mov $14,%%r14d\n mov $15,%%r15d\n"
		"1: dec %%rcx\n jnz 1b\n"
		"cmpq $0x1111,-8(%%rsp)\n je 2f\n inc %%eax\n 2: cmpq $0x2222,-64(%%rsp)\n je 2f\n inc %%eax\n 2: cmpq $0x3333,-128(%%rsp)\n je 2f\n inc %%eax\n"
		"2: cmp $2,%%rdx\n je 2f\n inc %%eax\n 2: cmp $3,%%rsi\n je 2f\n inc %%eax\n 2: cmp $4,%%rdi\n je 2f\n inc %%eax\n 2: cmp $8,%%r8\n je 2f\n inc %%eax\n"
		"2: cmp $9,%%r9\n je 2f\n inc %%eax\n 2: cmp $10,%%r10\n je 2f\n inc %%eax\n 2: cmp $11,%%r11\n je 2f\n inc %%eax\n 2: cmp $12,%%r12\n je 2f\n inc %%eax\n"
		"2: cmp $13,%%r13\n je 2f\n inc %%eax\n 2: cmp $14,%%r14\n je 2f\n inc %%eax\n 2: cmp $15,%%r15\n je 2f\n inc %%eax\n 2:\n"
		: "=&a"(bad) : "b"(turns) : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	return bad;
}
static long call(void)
{
	long bad;
	asm volatile(
		"movq $0x1111,-8(%%rsp)\n movq $0x2222,-64(%%rsp)\n movq $0x3333,-128(%%rsp)\n"
		"mov $110,%%eax\n mov $2,%%edx\n mov $3,%%esi\n mov $4,%%edi\n mov $8,%%r8d\n mov $9,%%r9d\n mov $10,%%r10d\n mov $12,%%r12d\n mov $13,%%r13d\n mov $14,%%r14d\n mov $15,%%r15d\n"
		"syscall\n xor %%eax,%%eax\n"
		"cmpq $0x1111,-8(%%rsp)\n je 2f\n inc %%eax\n 2: cmpq $0x2222,-64(%%rsp)\n je 2f\n inc %%eax\n 2: cmpq $0x3333,-128(%%rsp)\n je 2f\n inc %%eax\n"
		"2: cmp $2,%%rdx\n je 2f\n inc %%eax\n 2: cmp $3,%%rsi\n je 2f\n inc %%eax\n 2: cmp $4,%%rdi\n je 2f\n inc %%eax\n 2: cmp $8,%%r8\n je 2f\n inc %%eax\n"
		"2: cmp $9,%%r9\n je 2f\n inc %%eax\n 2: cmp $10,%%r10\n je 2f\n inc %%eax\n 2: cmp $12,%%r12\n je 2f\n inc %%eax\n"
		"2: cmp $13,%%r13\n je 2f\n inc %%eax\n 2: cmp $14,%%r14\n je 2f\n inc %%eax\n 2: cmp $15,%%r15\n je 2f\n inc %%eax\n 2:\n"
		: "=&a"(bad)::"rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	return bad;
}
int main(void)
{
	t_handle(SIGALRM, h, 0);
	struct itimerval v = {{0, 1000}, {0, 1000}}, z = {{0, 0}, {0, 0}};
	long bad = 0;
	setitimer(ITIMER_REAL, &v, 0);
	while (n < 300)
		bad += spin(300000);
	setitimer(ITIMER_REAL, &z, 0);
	N(bad);
	for (int i = 0; i < 1000; i++)
		bad += call();
	N(bad);
	n = 0;
	setitimer(ITIMER_REAL, &v, 0);
	while (n < 300)
		bad += call();
	setitimer(ITIMER_REAL, &z, 0);
	N(bad);
	/* The flags: direction is clear in a handler, and the caller's come back. */
	long f;
	asm volatile("std\n mov $110,%%eax\n syscall\n pushfq\n pop %0\n cld" : "=r"(f)::"rax", "rcx", "r11", "memory");
	T(f & 0x400);
	return t_done();
}
