/* A constant in just-in-time compiled code has the bytes of an xrstor or a wrpkru: an address, for instance. The code works. */
#include "t.h"
/* not: i386 */
#define PAGE 4096
typedef long fn(long rounds, long (*call)(long), long *out);

static long called(long x)
{
	return x * 3 + 1;
}

static unsigned char *put(unsigned char *p, const void *bytes, int n)
{
	memcpy(p, bytes, n);
	return p + n;
}
#define PUT(...) p = put(p, (unsigned char[]){ __VA_ARGS__ }, sizeof((unsigned char[]){ __VA_ARGS__ }))

static unsigned char *emit(unsigned char *p, long constant)
{
	PUT(0x55, 0x48, 0x89, 0xe5);             /* push %rbp; mov %rsp,%rbp */
	PUT(0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56); /* push %rbx, %r12, %r13, %r14 */
	PUT(0x48, 0x89, 0xfb);                   /* mov %rdi,%rbx */
	PUT(0x49, 0x89, 0xf4);                   /* mov %rsi,%r12 */
	PUT(0x49, 0x89, 0xd5);                   /* mov %rdx,%r13 */
	PUT(0x45, 0x31, 0xf6);                   /* xor %r14d,%r14d */
	unsigned char *again = p;
	PUT(0x48, 0xb8);                         /* movabs $constant,%rax */
	p = put(p, &constant, 8);
	PUT(0x49, 0x31, 0xc6);                   /* xor %rax,%r14 */
	PUT(0x4c, 0x89, 0xf7);                   /* mov %r14,%rdi */
	PUT(0x41, 0xff, 0xd4);                   /* call *%r12 */
	PUT(0x49, 0x01, 0xc6);                   /* add %rax,%r14 */
	PUT(0x49, 0xd1, 0xee);                   /* shr %r14 */
	PUT(0x4d, 0x6b, 0xf6, 0x05);             /* imul $5,%r14,%r14 */
	PUT(0x49, 0xc1, 0xfe, 0x02);             /* sar $2,%r14 */
	PUT(0x4d, 0x85, 0xf6);                   /* test %r14,%r14 */
	PUT(0x0f, 0x98, 0xc1);                   /* sets %cl */
	PUT(0x0f, 0xb6, 0xc9);                   /* movzbl %cl,%ecx */
	PUT(0x49, 0x03, 0x4d, 0x00);             /* add (%r13),%rcx */
	PUT(0x49, 0x89, 0x4d, 0x00);             /* mov %rcx,(%r13) */
	PUT(0x48, 0xff, 0xcb);                   /* dec %rbx */
	PUT(0x0f, 0x85);                         /* jnz again */
	int distance = again - (p + 4);
	p = put(p, &distance, 4);
	PUT(0x4c, 0x89, 0xf0);                   /* mov %r14,%rax */
	PUT(0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b); /* pop %r14, %r13, %r12, %rbx */
	PUT(0xc9, 0xc3);                         /* leave; ret */
	return p;
}

static fn *code;
static void *run(void *out)
{
	return (void *)code(500, called, out);
}

static void compute(long constant)
{
	long out[5] = { 0 };
	N(code(1, called, out));
	N(code(1000, called, out));
	N(out[0]);
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, run, &out[i + 1]);
	for (int i = 0; i < 4; i++) {
		void *sum;
		pthread_join(t[i], &sum);
		N((long)sum);
		N(out[i + 1]);
	}
}

int main(void)
{
	/* xrstor (%rax), wrpkru, xrstor 0x40(%rsp), and an address of nothing in particular. */
	long constants[] = { 0x00007f28ae0f1234, 0x0000ef010f000001, 0x0040246cae0f0000, 0x00007f1234567890 };
	for (int i = 0; i < 4; i++) {
		unsigned char *p = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		T(p != MAP_FAILED);
		/* In one page, and across two. */
		for (int at = PAGE + 64; at < 3 * PAGE; at += PAGE - 64 - 40) {
			R(mprotect(p, 4 * PAGE, PROT_READ | PROT_WRITE));
			emit(p + at, constants[i]);
			R(mprotect(p, 4 * PAGE, PROT_READ | PROT_EXEC));
			code = (fn *)(p + at);
			compute(constants[i]);
			/* Compilers read what they have made. */
			T(memmem(p + at, 64, &constants[i], 8) != 0);
		}
		munmap(p, 4 * PAGE);
		p = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		emit(p + 100, constants[i]);
		code = (fn *)(p + 100);
		compute(constants[i]);
		munmap(p, 2 * PAGE);
	}
	return t_done();
}
