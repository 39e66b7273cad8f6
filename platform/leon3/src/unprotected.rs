//! Applications without protection, to measure what it costs: they may call the kernel's functions by their addresses, and
//! `janua_dispatch` takes the words of a call and finds the function.

use core::arch::global_asm;

unsafe extern "C" {
    /// Takes the words of a call from an application without protection.
    safe static janua_dispatch: u8;
}

/// Where applications without protection call the kernel.
pub fn dispatch() -> usize {
    &raw const janua_dispatch as usize
}

global_asm!(
    ".section .text.janua_dispatch, \"ax\"",
    // A call of an application without protection. In: %o0 number, %o1 to %o5 and [%sp + 92] arguments.
    ".globl janua_dispatch",
    "janua_dispatch:",
    "andcc %o0, -512, %g0",
    "bne janua_dispatch_long",
    "nop",
    "ld [%g0 - 4096 + 24], %g1",
    "sll %o0, 2, %o0",
    "ld [%g1 + %o0], %g1",
    "tst %g1",
    "be janua_dispatch_long",
    "srl %o0, 2, %o0",
    "jmp %g1",
    "ld [%g0 - 4096 + 4], %o0",
    "janua_dispatch_long:",
    "ta 0x10",
    "retl",
    "nop",
    ".previous",
);
