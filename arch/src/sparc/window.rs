//! Register windows: overflow, underflow, and the check that every other trap makes by hand.
//!
//! A trap takes the window below the current one without asking whether it is free, and traps are off then: a save or restore
//! in the handler cannot trap. So the handlers move windows by hand. `T` is the trap's window, the bit of WIM is set for the
//! one window that must not be entered; when it is `T`, the oldest window in use is `T - 1` and has to go to its stack.
//!
//! Whose window that is decides how it may be stored. The user chooses the stack pointers of its windows, and the kernel must
//! not store where the user may not: so a user's window goes to its stack only if the MMU's probe reports that the pages there
//! are the user's to write. If they are not the window is lost; the check fails again when it is to be filled, and the
//! program is ended then. A trap from user code meets the user's windows only. In the kernel, the windows older than that of
//! the last entry (`Core::entry`) are the user's. When that one itself is spilled none is left.

use core::arch::global_asm;

/// What the entry's handlers (`gate/entry/src/leon3/mod.rs`) get instead of a trap type: a window's stack cannot be read.
pub const BAD_STACK: u32 = 0x106;

/// Windows of the processor.
pub const WINDOWS: usize = 8;

// Checks that 64 bytes at %sp are aligned to 8 and the user's to write; goes to the label given if not. %g2 and %g3 are free.
// A page table entry (type 2) with access 1 or 3 is: of its low five bits all but bit 3 are 00110.
#[rustfmt::skip]
macro_rules! check_stack {
    ($bad:literal) => {
        concat!(
            "andcc %sp, 7, %g0\n bne ", $bad, "\n sethi %hi(0xfffff000), %g2\n",
            "and %sp, %g2, %g3\n or %g3, 0x400, %g3\n lda [%g3] 3, %g3\n and %g3, 0x17, %g3\n cmp %g3, 6\n bne ", $bad, "\n",
            "add %sp, 56, %g3\n and %g3, %g2, %g3\n or %g3, 0x400, %g3\n lda [%g3] 3, %g3\n and %g3, 0x17, %g3\n cmp %g3, 6\n",
            "bne ", $bad, "\n nop\n",
        )
    };
}

global_asm!(
    ".section .text.janua_window, \"ax\"",
    // The oldest window goes to its stack, so that the trap window is free.
    // In: T is the invalid window; %l0 PSR; %l7 where to go on. Keeps %l0-%l2, %l4 and the globals. Uses %l3, %l5, %l6.
    ".globl janua_spill",
    "janua_spill:",
    "ld [%g0 - 4096 + 16], %l3",
    "inc %l3",
    "st %l3, [%g0 - 4096 + 16]",
    "mov %g1, %l5",
    "mov %g2, %l6",
    // The new WIM: the bit one to the right.
    "rd %wim, %l3",
    "srl %l3, 1, %g1",
    "sll %l3, 7, %l3",
    "or %g1, %l3, %g1",
    "and %g1, 0xff, %g1",
    // Whose is it?
    "andcc %l0, 0x40, %g0",
    "be janua_spill_user",
    "mov %g3, %l3",
    "ld [%g0 - 4096 + 8], %g2",
    "cmp %g2, -1",
    "be janua_spill_kernel",
    "sub %l0, %g2, %g2",
    "sub %g2, 1, %g2",
    "andcc %g2, 7, %g0",
    "bne janua_spill_user",
    "mov -1, %g2",
    "st %g2, [%g0 - 4096 + 8]",
    "janua_spill_kernel:",
    "ba janua_spill_store",
    "save %g0, %g0, %g0",
    "janua_spill_user:",
    "save %g0, %g0, %g0",
    check_stack!("janua_spill_done"),
    "janua_spill_store:",
    "std %l0, [%sp]",
    "std %l2, [%sp + 8]",
    "std %l4, [%sp + 16]",
    "std %l6, [%sp + 24]",
    "std %i0, [%sp + 32]",
    "std %i2, [%sp + 40]",
    "std %i4, [%sp + 48]",
    "std %i6, [%sp + 56]",
    "janua_spill_done:",
    "wr %g1, 0, %wim",
    "nop",
    "nop",
    "nop",
    "restore %g0, %g0, %g0",
    "mov %l5, %g1",
    "mov %l6, %g2",
    "jmp %l7",
    "mov %l3, %g3",

    // A save into the invalid window: make room, and do it again.
    // In: %l0 PSR, %l1 PC, %l2 nPC of the trap.
    ".globl janua_overflow",
    "janua_overflow:",
    "sethi %hi(janua_overflow_done), %l7",
    "ba janua_spill",
    "or %l7, %lo(janua_overflow_done), %l7",
    "janua_overflow_done:",
    "wr %l0, 0, %psr",
    "nop",
    "nop",
    "nop",
    "jmp %l1",
    "rett %l2",

    // A restore into the invalid window, T + 2: fill it, and do it again.
    // In: %l0 PSR, %l1 PC, %l2 nPC of the trap.
    ".globl janua_underflow",
    "janua_underflow:",
    "ld [%g0 - 4096 + 20], %l3",
    "inc %l3",
    "st %l3, [%g0 - 4096 + 20]",
    "mov %g1, %l5",
    "mov %g2, %l6",
    "mov %g3, %l7",
    // The new WIM: the bit one to the left.
    "rd %wim, %l3",
    "sll %l3, 1, %l4",
    "srl %l3, 7, %g1",
    "or %l4, %g1, %l4",
    "and %l4, 0xff, %l4",
    // %g1: whether the window is the user's. From the kernel it is when the restore is one of the exit.
    "andcc %l0, 0x40, %g0",
    "be 1f",
    "mov 1, %g1",
    "sethi %hi(janua_exit), %g2",
    "or %g2, %lo(janua_exit), %g2",
    "sethi %hi(janua_exit_end), %g1",
    "or %g1, %lo(janua_exit_end), %g1",
    "sub %g1, %g2, %g1",
    "sub %l1, %g2, %g2",
    "cmp %g2, %g1",
    "blu 1f",
    "mov 1, %g1",
    "mov 0, %g1",
    "1:",
    "wr %g0, 0, %wim",
    "nop",
    "nop",
    "nop",
    "restore %g0, %g0, %g0",
    "restore %g0, %g0, %g0",
    "tst %g1",
    "be 2f",
    "nop",
    check_stack!("janua_fill_bad"),
    "2:",
    "ldd [%sp], %l0",
    "ldd [%sp + 8], %l2",
    "ldd [%sp + 16], %l4",
    "ldd [%sp + 24], %l6",
    "ldd [%sp + 32], %i0",
    "ldd [%sp + 40], %i2",
    "ldd [%sp + 48], %i4",
    "ldd [%sp + 56], %i6",
    "save %g0, %g0, %g0",
    "save %g0, %g0, %g0",
    "wr %l4, 0, %wim",
    "mov %l5, %g1",
    "mov %l6, %g2",
    "mov %l7, %g3",
    "wr %l0, 0, %psr",
    "nop",
    "nop",
    "nop",
    "jmp %l1",
    "rett %l2",
    // The stack is not the user's to read: a trap of its own kind, or the end of the exit.
    "janua_fill_bad:",
    "save %g0, %g0, %g0",
    "save %g0, %g0, %g0",
    "wr %l3, 0, %wim",
    "mov %l5, %g1",
    "mov %l6, %g2",
    "mov %l7, %g3",
    "andcc %l0, 0x40, %g0",
    "be janua_trap",
    "mov {bad_stack}, %l4",
    "sethi %hi(janua_bad_stack), %l1",
    "or %l1, %lo(janua_bad_stack), %l1",
    "wr %l0, 0, %psr",
    "nop",
    "nop",
    "nop",
    "jmp %l1",
    "rett %l1 + 4",
    ".previous",
    bad_stack = const BAD_STACK,
);
