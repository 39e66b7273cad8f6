/* Faults as signals that software emulation of a processor may not know: SSE exceptions, the error code of a refused vector. */
/* not: i386 */
#include "t.h"
#include <setjmp.h>
static sigjmp_buf j;
static void h(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;
	long err = c->uc_mcontext.gregs[19], trap = c->uc_mcontext.gregs[20];
	say("%s code %d", t_sig(s), i->si_code);
	say(" addr is rip %d", s == SIGFPE && i->si_addr == (void *)c->uc_mcontext.gregs[16]);
	say(" trap %ld err %ld\n", trap, err);
	siglongjmp(j, 1);
}
#define TRY(name, ...) do { say("%s: ", name); if (!sigsetjmp(j, 1)) { __VA_ARGS__; say("nothing\n"); } } while (0)
int main(void)
{
	t_info(SIGSEGV, h, 0);
	t_info(SIGFPE, h, 0);
	TRY("int 77", asm volatile("int $77"));
	unsigned mx = 0x1d80;
	TRY("sse", asm volatile("ldmxcsr %0\n xorps %%xmm0,%%xmm0\n movl $0x3f800000,%%eax\n movd %%eax,%%xmm1\n divss %%xmm0,%%xmm1" ::"m"(mx) : "eax"));
	mx = 0x1f80;
	asm volatile("ldmxcsr %0" ::"m"(mx));
	return t_done();
}
