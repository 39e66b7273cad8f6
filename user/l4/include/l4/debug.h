/* Services of the kernel's debugger: output, and the end of the system. */
#ifndef L4_DEBUG_H
#define L4_DEBUG_H

#include <stdint.h>

static inline void l4_outchar(char c) { __asm__ volatile("int3; cmpb $0, %%al" : : "a"(c)); }
static inline void l4_outstring(const char *text) { __asm__ volatile("int3; cmpb $2, %%al" : : "a"(text) : "memory"); }
static inline void l4_outhex(uint32_t number) { __asm__ volatile("int3; cmpb $5, %%al" : : "a"(number)); }
static inline void l4_outdec(int32_t number) { __asm__ volatile("int3; cmpb $11, %%al" : : "a"(number)); }

/* Shows the thread's registers. */
#define l4_enter_debugger(text) __asm__ volatile("int3; jmp 1f; .ascii \"" text "\"; 1:")

/* Ends the system with an exit code. */
static inline _Noreturn void l4_exit(uint32_t code)
{
    __asm__ volatile("int3; jmp 1f; .ascii \"janua-exit\"; 1:" : : "a"(code));
    __builtin_unreachable();
}

#endif
