/* What an application may not do, one by its argument: it is ended with a message, and the kernel lives to write it. The kernel
 * is at 0x40000000 and above. */
#include "octo.h"

#define KERNEL 0x40020000

/* retl, nop */
uint32_t code[] = {0x81c3e008, 0x01000000};

static int same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* Goes on with the stack pointer given, in a window of its own, and does what makes the processor use it. */
static void __attribute__((noinline)) on_stack(uint32_t stack, int how)
{
    switch (how) {
    case 0: /* Saves until the window has to be stored there. */
        __asm__ volatile("mov %0, %%g1\n save %%g0, %%g0, %%g0\n mov %%g1, %%sp\n"
                         "save %%sp, -96, %%sp\n save %%sp, -96, %%sp\n save %%sp, -96, %%sp\n save %%sp, -96, %%sp\n"
                         "save %%sp, -96, %%sp\n save %%sp, -96, %%sp\n save %%sp, -96, %%sp\n save %%sp, -96, %%sp\n"
                         "restore\n restore\n restore\n restore\n restore\n restore\n restore\n restore\n restore\n"
                         :
                         : "r"(stack)
                         : "g1");
        break;
    case 1: /* A call: the kernel's own windows push this one out, or the seventh word is read there. */
        __asm__ volatile("mov %0, %%sp\n mov 10, %%o0\n ta 0x10\n" : : "r"(stack) : "o0");
        break;
    case 2: /* A call by the slow path, which gives the processor away. */
        __asm__ volatile("mov %0, %%sp\n mov 0, %%o0\n ta 0x10\n" : : "r"(stack) : "o0");
        break;
    case 3: /* This window is asked to go to its stack, which can be read but not written. */
        __asm__ volatile("mov %0, %%sp\n ta 3\n" : : "r"(stack));
        break;
    default: /* The windows are asked to go to their stacks. */
        __asm__ volatile("mov %0, %%g1\n save %%g0, %%g0, %%g0\n mov %%g1, %%sp\n save %%sp, -96, %%sp\n ta 3\n restore\n restore\n"
                         :
                         : "r"(stack)
                         : "g1");
    }
}

void main_ilet(claim_t claim)
{
    (void)claim;
    const char *what = octo_argument(1) ? octo_argument(1) : "";
    if (same(what, "read"))
        *(volatile int *)KERNEL;
    if (same(what, "write"))
        *(volatile int *)KERNEL = 1;
    if (same(what, "core-page"))
        *(volatile int *)0xfffff000 = 1;
    if (same(what, "device"))
        *(volatile int *)0x80000100 = 'x';
    if (same(what, "stopwatch"))
        *(volatile int *)0xf320 = 1;
    if (same(what, "jump"))
        ((void (*)(void))KERNEL)();
    if (same(what, "write-by-call"))
        octo_call(9, KERNEL, 0, 0, 0, 0, 0);
    if (same(what, "code"))
        *(volatile int *)main_ilet = 0;
    if (same(what, "data-as-code"))
        ((void (*)(void))code)();
    if (same(what, "misaligned"))
        *(volatile int *)0x100001;
    if (same(what, "unmapped"))
        *(volatile int *)0x30000000;
    if (same(what, "read-psr"))
        __asm__ volatile("rd %%psr, %%g1" : : : "g1");
    if (same(what, "alternate"))
        __asm__ volatile("lda [%%g0] 0xb, %%g1" : : : "g1");
    if (same(what, "illegal"))
        __asm__ volatile("unimp 0");
    if (same(what, "divide"))
        __asm__ volatile("wr %%g0, 0, %%y\n udiv %%g0, %%g0, %%g1" : : : "g1");
    if (same(what, "trap"))
        __asm__ volatile("ta 0x20");
    if (same(what, "stack-kernel"))
        on_stack(KERNEL, 0);
    if (same(what, "stack-odd"))
        on_stack(((uint32_t)&what & ~7u) - 508, 0);
    if (same(what, "stack-unmapped"))
        on_stack(0x30000000, 0);
    if (same(what, "stack-code"))
        on_stack((uint32_t)main_ilet & ~7u, 0);
    if (same(what, "call-kernel-stack"))
        on_stack(KERNEL, 1);
    if (same(what, "call-odd-stack"))
        on_stack(((uint32_t)&what & ~7u) - 510, 1);
    if (same(what, "call-no-stack"))
        on_stack(0x30000000, 1);
    if (same(what, "exit-kernel-stack"))
        on_stack(KERNEL, 2);
    if (same(what, "flush-kernel-stack"))
        on_stack(KERNEL, 4);
    if (same(what, "flush-code-stack"))
        on_stack((uint32_t)main_ilet & ~7u, 3);
    octo_printf("it went on\n");
    shutdown(1);
}
