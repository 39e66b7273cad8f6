/* Code that stores into the page it runs in: a counter beside the code, an operand of the next instruction, a call on a stack that
 * holds code. */
#include "t.h"
/* not: i386 */
typedef long fn(long);
static unsigned char *put(unsigned char *p, const char *bytes, size_t n)
{
	memcpy(p, bytes, n);
	return p + n;
}
#define PUT(s) (q = put(q, s, sizeof s - 1))
int main(void)
{
	unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q = p;
	T(p != MAP_FAILED);
	/* mov %rdi, 0x100(p); mov 0x100(p), %rax; ret */
	PUT("\x48\x89\x3d\xf9\x00\x00\x00" "\x48\x8b\x05\xf2\x00\x00\x00" "\xc3");
	long sum = 0;
	for (long i = 0; i < 200; i++)
		sum += ((fn *)p)(i);
	N(sum);
	/* mov %edi, 1(%rip): the operand of the instruction behind; mov $0, %eax; ret */
	q = p + 0x200;
	PUT("\x89\x3d\x01\x00\x00\x00" "\xb8\x00\x00\x00\x00" "\xc3");
	sum = 0;
	for (long i = 0; i < 200; i++)
		sum += ((fn *)(p + 0x200))(i);
	N(sum);
	/* movb $5, 0x100(p); addl/incl would need flags: mov imm32, mov imm64 sign-extended, byte and word stores. */
	q = p + 0x300;
	PUT("\xc6\x05\xf9\x0f\x00\x00\x05");
	q = p + 0x300;
	PUT("\xc6\x05\x79\x00\x00\x00\x05" "\x66\xc7\x05\x72\x00\x00\x00\x34\x12" "\x48\xc7\x05\x6f\x00\x00\x00\xfe\xff\xff\xff" "\xc3");
	((fn *)(p + 0x300))(0);
	N(p[0x380]);
	N(*(short *)(p + 0x382));
	N(*(long *)(p + 0x38a));
	/* lea 0x400 above, %rsp for a while: mov %rsp,%rdx; lea 0x3f0(%rip),%rsp; push %rdi; call +1; (here:) pop %rcx; pop %rax;
	 * mov %rdx,%rsp; ret */
	q = p + 0x400;
	PUT("\x48\x89\xe2" "\x48\x8d\x25\xf0\x03\x00\x00" "\x57" "\xe8\x00\x00\x00\x00" "\x59" "\x58" "\x48\x89\xd4" "\xc3");
	sum = 0;
	for (long i = 0; i < 200; i++)
		sum += ((fn *)(p + 0x400))(i);
	N(sum);
	/* addq %rdi, counter; sub, xor, and, or, inc, dec of memory; the flags decide: jc skips the last store.
	 * add %rdi,0xf9(%rip); setc %al; movzbl %al,%eax; ret */
	q = p + 0x600;
	*(unsigned long *)(p + 0x700) = ~0ul - 2;
	PUT("\x48\x01\x3d\xf9\x00\x00\x00" "\x0f\x92\xc0" "\x0f\xb6\xc0" "\xc3");
	for (long i = 0; i < 4; i++)
		N(((fn *)(p + 0x600))(1));
	N(*(long *)(p + 0x700));
	return t_done();
}
