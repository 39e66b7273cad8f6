/* Floating point and vector registers: a handler sees a fresh state, the interrupted code its own; system calls and other threads leave them alone. */
/* not: i386 */
#include "t.h"
#include <math.h>
typedef struct { unsigned char b[16][32]; } regs;
static regs want, got, seen;
static int avx;
static volatile int count;
static void load(regs *r)
{
	if (avx)
		asm volatile("vmovups (%0),%%ymm0;vmovups 32(%0),%%ymm1;vmovups 64(%0),%%ymm2;vmovups 96(%0),%%ymm3;vmovups 128(%0),%%ymm4;vmovups 160(%0),%%ymm5;vmovups 192(%0),%%ymm6;vmovups 224(%0),%%ymm7;"
			     "vmovups 256(%0),%%ymm8;vmovups 288(%0),%%ymm9;vmovups 320(%0),%%ymm10;vmovups 352(%0),%%ymm11;vmovups 384(%0),%%ymm12;vmovups 416(%0),%%ymm13;vmovups 448(%0),%%ymm14;vmovups 480(%0),%%ymm15" ::"r"(r) : "memory");
	else
		asm volatile("movups (%0),%%xmm0;movups 32(%0),%%xmm1;movups 64(%0),%%xmm2;movups 480(%0),%%xmm15" ::"r"(r) : "memory");
}
static void store(regs *r)
{
	if (avx)
		asm volatile("vmovups %%ymm0,(%0);vmovups %%ymm1,32(%0);vmovups %%ymm2,64(%0);vmovups %%ymm3,96(%0);vmovups %%ymm4,128(%0);vmovups %%ymm5,160(%0);vmovups %%ymm6,192(%0);vmovups %%ymm7,224(%0);"
			     "vmovups %%ymm8,256(%0);vmovups %%ymm9,288(%0);vmovups %%ymm10,320(%0);vmovups %%ymm11,352(%0);vmovups %%ymm12,384(%0);vmovups %%ymm13,416(%0);vmovups %%ymm14,448(%0);vmovups %%ymm15,480(%0);vzeroupper" ::"r"(r) : "memory");
	else
		asm volatile("movups %%xmm0,(%0);movups %%xmm1,32(%0);movups %%xmm2,64(%0);movups %%xmm15,480(%0)" ::"r"(r) : "memory");
}
static int same(void) { return !memcmp(&want, &got, sizeof want); }
/* Calls by hand, so that no C code touches the registers in between. */
static long sys3(long n, long a, long b, long c)
{
	long r;
	asm volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}
static void h(int s)
{
	(void)s;
	unsigned short cw;
	unsigned mx;
	asm volatile("fnstcw %0; stmxcsr %1" : "=m"(cw), "=m"(mx));
	if (count == 0)
		say("in the handler: cw %#x mxcsr %#x\n", cw, mx);
	memset(&seen, 0xee, sizeof seen);
	load(&seen);
	volatile double d = sqrt(count + 2.0);
	d = sin(d);
	asm volatile("fldpi; fldz");
	count++;
}
static void *noise(void *a)
{
	(void)a;
	regs x;
	for (int i = 0; i < 20000; i++) {
		memset(&x, i, sizeof x);
		load(&x);
		sys3(SYS_sched_yield, 0, 0, 0);
	}
	return 0;
}
int main(void)
{
	avx = __builtin_cpu_supports("avx");
	for (size_t i = 0; i < sizeof want; i++)
		want.b[i / 32][i % 32] = avx || ((i / 32 < 3 || i / 32 == 15) && i % 32 < 16) ? i * 7 + 3 : 0;
	t_handle(SIGUSR1, h, 0);
	unsigned short cw = 0x27f, cw2;
	unsigned mx = 0x1fa0, mx2;
	asm volatile("fninit; fldcw %0; ldmxcsr %1; fld1; fldpi" ::"m"(cw), "m"(mx));
	pid_t me = getpid(), tid = t_gettid();
	load(&want);
	sys3(SYS_tgkill, me, tid, SIGUSR1);
	store(&got);
	double pi, one;
	asm volatile("fstpl %0; fstpl %1; fnstcw %2; stmxcsr %3" : "=m"(pi), "=m"(one), "=m"(cw2), "=m"(mx2));
	T(same());
	T(count == 1);
	T(pi > 3.14 && pi < 3.15 && one == 1.0);
	say("after: cw %#x mxcsr %#x\n", cw2, mx2);
	char b[64];
	int p[2];
	must(pipe(p));
	load(&want);
	sys3(SYS_write, p[1], (long)"hello", 5);
	sys3(SYS_read, p[0], (long)b, 5);
	sys3(SYS_getppid, 0, 0, 0);
	sys3(SYS_openat, -100, (long)"/dev/null", 0);
	sys3(SYS_sched_yield, 0, 0, 0);
	store(&got);
	T(same());
	load(&want);
	long c = sys3(SYS_fork, 0, 0, 0);
	store(&got);
	if (!c)
		_exit(same() ? 0 : 1);
	T(same());
	t_reap("child has them too", c);
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, noise, 0);
	int bad = 0;
	for (int i = 0; i < 5000; i++) {
		load(&want);
		sys3(i & 1 ? SYS_sched_yield : SYS_tgkill, me, tid, SIGUSR1);
		store(&got);
		bad += !same();
	}
	N(bad);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	N(count);
	return t_done();
}
