/* What the attacks on the kernel's routine that user code restores its vector registers by share: a call of it, and what it loads. */
#include "code.h"

/* The key register while user code runs: the kernel's key closed, the selectors' not to be written. */
#define LOCKED 0x2cu
/* Components of the extended state: what the dynamic linker loads, and the key register, which is at 2688 in the standard form. */
enum { VECTORS = 0xee, KEYS = 1 << 9, KEYS_AT = 2688 };

/* The extended state, 0x40 above the stack pointer the routine is called with. */
struct state {
	char below[4096];
	unsigned char area[8192];
} __attribute__((aligned(64)));

static inline unsigned keys(void)
{
	unsigned eax, edx;
	asm volatile("rdpkru" : "=a"(eax), "=d"(edx) : "c"(0));
	return eax;
}

/* Calls the routine at `to` (or a byte of it) with the area's address less 0x40 in rsp and `mask` in edx:eax: comes back by rcx, or
 * not at all. */
static inline void restore(uintptr_t to, const void *area, uint64_t mask)
{
	register uintptr_t stack asm("r12") = (uintptr_t)area - 0x40, at asm("r13") = to;
	asm volatile("mov %%rsp, %%r14; mov %%r12, %%rsp; lea 1f(%%rip), %%rcx; jmp *%%r13; 1: mov %%r14, %%rsp"
		     : : "a"((uint32_t)mask), "d"((uint32_t)(mask >> 32)), "r"(stack), "r"(at)
		     : "rcx", "r11", "r14", "r15", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
		       "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* Fills in a header: which components are there, and the compact form's word. */
static inline void header(unsigned char *area, uint64_t present, uint64_t compact)
{
	((volatile uint64_t *)(area + 512))[0] = present;
	((volatile uint64_t *)(area + 512))[1] = compact;
}

/* Handlers run on a stack of their own: the routine is called with any stack pointer. */
static inline void own_stack(void)
{
	stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
	sigaltstack(&stack, 0);
}
