//! The fast path of a call on the LEON3. Everything else takes the platform's common entry, `gate/entry/src/leon3/mod.rs`, where
//! what the two have in common is explained.
//!
//! A call whose function needs nothing but the thread and its words ([`janua_entry::leon3::core::Core::calls`]) is called
//! on the trap window: the words are where the function expects its arguments, the number's place is taken by the thread, and
//! the sixth argument goes from the user's stack to the kernel's. By the convention of calls the caller expects nothing of %g1,
//! %y and the condition codes, and the kernel is compiled not to touch %g2 to %g7, so nothing else has to be saved.

use core::arch::global_asm;

use janua_entry::leon3::{BAD_SEVENTH, SEVENTH, VERDICT, WORK};

unsafe extern "C" {
    static janua_seventh: u8;
    static janua_bad_seventh: u8;
}

/// Where a fault of the kernel's at `pc` continues, when it was reading the seventh word of a call.
pub fn fixup(pc: usize) -> Option<usize> {
    (pc == &raw const janua_seventh as usize).then_some(&raw const janua_bad_seventh as usize)
}

global_asm!(
    ".section .text.janua_call, \"ax\"",
    "janua_call_spill:",
    "sethi %hi(janua_call_free), %l7",
    "ba janua_spill",
    "or %l7, %lo(janua_call_free), %l7",
    "janua_call_long:",
    "ba janua_trap",
    "mov 0x90, %l4",
    // The call is over: go on behind it.
    "janua_call_work:",
    "mov %l2, %l1",
    "add %l2, 4, %l2",
    "sethi %hi({verdict}), %l4",
    "and %l3, %l4, %l4",
    "ba janua_save",
    "or %l4, {work}, %l4",
    ".globl janua_bad_seventh",
    "janua_bad_seventh:",
    "ba janua_save",
    "mov {bad_seventh}, %l4",
    ".globl janua_call",
    // A call. In: condition codes of number & -512, %l4 four times the number. Out: the fast path or the slow one.
    "janua_call:",
    "bne janua_call_long",
    "rd %wim, %l3",
    "ld [%g0 - 4096 + 24], %l5",
    "ld [%l5 + %l4], %l4",
    "tst %l4",
    "be janua_call_long",
    // The trap window's bit of WIM: shifts count by five bits, those of the window in PSR.
    "srl %l3, %l0, %l6",
    "btst 1, %l6",
    "bne janua_call_spill",
    "st %l0, [%g0 - 4096 + 8]",
    "janua_call_free:",
    // Not before the spill: the out registers were another window's.
    "ld [%g0 - 4096 + 0], %sp",
    // Level 15, traps on: both are clear in user code's PSR as a trap leaves it.
    "wr %l0, 0xf20, %psr",
    "mov %i1, %o1",
    "mov %i2, %o2",
    "mov %i3, %o3",
    "add %fp, {seventh}, %l6",
    ".globl janua_seventh",
    "janua_seventh:",
    "lda [%l6] 0xa, %l7",
    "st %l7, [%sp + {seventh}]",
    "mov %i4, %o4",
    "ld [%g0 - 4096 + 4], %o0",
    "jmpl %l4, %o7",
    "mov %i5, %o5",
    "ld [%g0 - 4096 + 12], %l3",
    "ld [%l3], %l3",
    // The verdict, and the thread's work.
    "orcc %l3, %o1, %l3",
    "bne janua_call_work",
    "mov %o0, %i0",
    // Ends what is here: the slow exit follows (image/leon3/link.ld), and both end with a restore in one range: see the underflow
    // handler.
    ".globl janua_exit",
    "janua_exit:",
    "restore %g0, %g0, %g0",
    "save %g0, %g0, %g0",
    "wr %l0, 0, %psr",
    "nop",
    "nop",
    "nop",
    "jmp %l2",
    "rett %l2 + 4",
    ".previous",
    work = const WORK,
    verdict = const VERDICT,
    bad_seventh = const BAD_SEVENTH,
    seventh = const SEVENTH,
);
