/* Applications that misbehave, one by its argument: each is ended with a message, and the kernel lives to write it. */
#include "octo.h"

static volatile int *volatile nowhere = (volatile int *)8;

static int same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* Ends only when the stack does. */
static int __attribute__((noinline)) recurse(volatile int *depth)
{
    volatile char room[1024];
    room[0] = (char)++*depth;
    return *depth ? recurse(depth) + room[0] : 0;
}

#if defined(__x86_64__)
/* A call by the gate `signal` as the library makes it, with another stack pointer if it is not 0. */
static octo_word signal_from(octo_word stack, octo_word number)
{
    register octo_word call __asm__("r12") = number, sp __asm__("r14") = stack;
    octo_word answer = 234;
    __asm__ volatile("push %%rbx\n push %%rbp\n mov %%rsp, %%r15\n mov %%r12, %%rbx\n"
                     "test %%r14, %%r14\n cmovnz %%r14, %%rsp\n"
                     "mov %%fs:48, %%rdi\n mov %%fs:56, %%rsi\n mov %%fs:64, %%rdx\n syscall\n"
                     "mov %%r15, %%rsp\n pop %%rbp\n pop %%rbx"
                     : "+a"(answer), "+r"(call), "+r"(sp)
                     :
                     : "rcx", "r11", "rdi", "rsi", "rdx", "r8", "r9", "r10", "r13", "r15", "memory");
    return answer;
}
#endif

void main_ilet(claim_t claim)
{
    (void)claim;
    const char *what = octo_argument(1) ? octo_argument(1) : "";
    octo_printf("%s\n", what);
    if (same(what, "range"))
        octo_call(100000, 1, 2, 3, 4, 5, 6);
    if (same(what, "negative"))
        octo_call((octo_word)-1, 0, 0, 0, 0, 0, 0);
    if (same(what, "unregistered"))
        octo_call(81, 0, 0, 0, 0, 0, 0);
    if (same(what, "pointer"))
        simple_signal_wait((simple_signal *)0x10);
#if defined(__x86_64__)
    if (same(what, "kernel"))
        *(volatile long *)0x600000001000 = 1;
    if (same(what, "kernel-by-call"))
        octo_call(9, 0x600000001000, 0, 0, 0, 0, 0);
    if (same(what, "privileged"))
        __asm__ volatile("hlt");
    /* Of the bare machine. */
    if (same(what, "kernel-half"))
        *(volatile long *)0xffffffff80200000 = 1;
    if (same(what, "kernel-half-read"))
        (void)*(volatile long *)0xffff800000000000;
    if (same(what, "kernel-half-by-call"))
        octo_call(9, 0xffffffff80200000, 0, 0, 0, 0, 0);
    if (same(what, "kernel-half-jump"))
        ((void (*)(void))0xffffffff80200000)();
    if (same(what, "not-canonical"))
        *(volatile long *)0x8000000000000000 = 1;
    if (same(what, "code"))
        *(volatile char *)main_ilet = 0;
    if (same(what, "data-as-code"))
        ((void (*)(void))&nowhere)();
    if (same(what, "control-register"))
        __asm__ volatile("mov %%cr3, %%rax" : : : "rax");
    if (same(what, "interrupts"))
        __asm__ volatile("cli");
    if (same(what, "port"))
        __asm__ volatile("outb %%al, $0xf4" : : "a"(0x10));
    if (same(what, "undefined"))
        __asm__ volatile("ud2");
    if (same(what, "divide"))
        __asm__ volatile("xor %%ecx, %%ecx\n div %%ecx" : : : "eax", "ecx", "edx");
    if (same(what, "memory"))
        for (volatile char *at;; *at = 1) {
            if (!(at = mem_map(MEM_TLM_LOCAL, 1)))
                shutdown(2);
        }
    if (same(what, "i386"))
        __asm__ volatile("int $0x80" : : "a"(1), "b"(7) : "memory");
    if (same(what, "stack-pointer"))
        __asm__ volatile("mov $0xffffffff80200000, %%rsp\n push %%rax" : : : "memory");
    if (same(what, "host"))
        __asm__ volatile("syscall" : : "a"(1), "D"(1), "S"("escaped\n"), "d"(8) : "rcx", "r11", "memory");
    if (same(what, "signal-others"))
        __asm__ volatile("syscall" : : "a"(234), "D"(1), "S"(1), "d"(16) : "rcx", "r11", "memory");
    if (same(what, "stray-signal"))
        signal_from(0, 100001);
    /* Wherever on a kernel stack the signal's frame is asked for, it overwrites nothing, and the call is a call. */
    if (same(what, "kernel-stack")) {
        for (octo_word stack = 0; stack < 16; stack++)
            for (octo_word below = 0; below <= 0x8000; below += 0x1000)
                if (below < 0x3000 || below > 0x5000)
                    if (signal_from(0x600004010000 + stack * 0x10000 - below, 39) != get_tile_core_count())
                        shutdown(2);
        octo_printf("every call was answered\n");
        shutdown(0);
    }
    /* There is no room for a frame. */
    if (same(what, "kernel-stack-full"))
        for (octo_word stack = 0; stack < 16; stack++)
            signal_from(0x600004010000 + stack * 0x10000 - 0x4000, 39);
#elif defined(__sparc__)
    if (same(what, "privileged"))
        __asm__ volatile("wr %g0, 0, %psr");
#endif
    if (same(what, "null"))
        *nowhere = 1;
    if (same(what, "wait")) {
        /* For ever: nobody signals. Ended from outside. */
        simple_signal never;
        simple_signal_init(&never, 1);
        simple_signal_wait(&never);
    }
    if (same(what, "stack")) {
        int depth = 0;
        recurse(&depth);
    }
    octo_printf("it went on\n");
    shutdown(1);
}
