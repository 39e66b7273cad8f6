//! The LEON3: the trap table, the entry of everything that does not take the fast path of a call, and its exit. The fast path is the gate's
//! (`gate/src/ta/entry.rs`).
//!
//! Every trap takes four instructions in the table and has its PSR, PC and nPC in %l0, %l1 and %l2. Traps are off; the kernel
//! turns them on again as soon as the trap window is free ([`janua_arch::sparc::window`]), because it calls functions, and those need
//! windows. Interrupts stay out (level 15).
//!
//! **The slow path** saves a [`Frame`] and calls `janua_trapped(frame, type)`; when that returns the frame is taken back.
//!
//! **The exit.** The user's window may have been spilled meanwhile. `restore` followed by `save` enters it and comes back:
//! traps are on, so the underflow handler fills it. PSR is written last, since that restores the condition codes.
//!
//! **Without protection**, to measure what it costs, applications run as supervisor too, with interrupts let in. What
//! distinguishes them from the kernel then is where they are: below the kernel.
//!
//! A thread that waits in the kernel goes on in the window it left ([`janua_arch::sparc::switch`]), so the window number in PSR holds.

use ::core::arch::global_asm;

use janua_arch::Frame;
use janua_arch::sparc::window::BAD_STACK;

pub mod core;

/// What `janua_trapped` gets instead of a trap type, joined with the verdict: a call on the fast path has left work behind or has a
/// verdict.
pub const WORK: u32 = 0x107;
/// The bits of a verdict, which a call's function returns in its second register. The thread's work has none of them.
pub const VERDICT: u32 = janua_port::guest::Verdict::BITS;
/// The seventh word of a call cannot be read.
pub const BAD_SEVENTH: u32 = 0x108;
/// Where a caller leaves that word, from its stack pointer on: behind the window's save area, the word for a structure's address and the
/// places of six arguments.
pub const SEVENTH: usize = 92;

unsafe extern "C" {
    /// The trap table, for TBR.
    pub safe static janua_traps: u8;
    /// Leaves for user code with these registers, with nothing kept of the kernel stack. The frame must be where an entry
    /// from user code would put it: 96 bytes above [`core::Core::stack`].
    pub fn janua_enter_user(frame: *const Frame) -> !;
}

/// Set in [`Frame::psr`] when the frame is one of an application without protection: it goes on as supervisor.
pub const SUPERVISOR: u32 = 0x40;

// `count` entries of the table that lead to the slow path, with the trap type, read from TBR, in %l4.
macro_rules! entries {
    ($count:literal) => {
        concat!(".rept ", $count, "\n rd %psr, %l0\n rd %tbr, %l4\n ba janua_trap\n srl %l4, 4, %l4\n .endr\n")
    };
}

global_asm!(
    ".section .text.janua_traps, \"ax\"",
    // TBR wants 4096. Twice that keeps the lowest bit of the table's address out of the nine bits that number the trap.
    ".balign 8192",
    ".globl janua_traps",
    "janua_traps:",
    // 0x00 reset: the start of the image.
    "ba janua_boot",
    "nop",
    "nop",
    "nop",
    entries!(4),
    // 0x05, 0x06 window overflow and underflow.
    "ba janua_overflow",
    "rd %psr, %l0",
    "nop",
    "nop",
    "ba janua_underflow",
    "rd %psr, %l0",
    "nop",
    "nop",
    entries!(137),
    // 0x90: ta 0x10, a call.
    "rd %psr, %l0",
    "andcc %i0, -512, %g0",
    "ba janua_call",
    "sll %i0, 2, %l4",
    entries!(111),
    ".previous",

    // Behind the gate's exit, which ends its entry: see the underflow handler (image/leon3/link.ld has the order).
    ".section .text.janua_entry, \"ax\"",
    ".globl janua_slow_exit, janua_trap, janua_save",
    // The slow path's: %l3 has the window number.
    "janua_slow_exit:",
    "restore %g0, %g0, %g0",
    "save %g0, %g0, %g0",
    "wr %l0, 0, %psr",
    "nop",
    "nop",
    "nop",
    "jmp %l1",
    "rett %l2",
    ".globl janua_exit_end",
    "janua_exit_end:",

    ".globl janua_bad_stack",
    "janua_bad_stack:",
    "ba janua_save",
    "mov {bad_stack}, %l4",

    // Any trap. In: %l0 PSR, %l1 PC, %l2 nPC, %l4 type.
    "janua_trap:",
    "and %l4, 0x1ff, %l4",
    "rd %wim, %l3",
    "srl %l3, %l0, %l6",
    "btst 1, %l6",
    "be janua_trap_free",
    "sethi %hi(janua_trap_free), %l7",
    "ba janua_spill",
    "or %l7, %lo(janua_trap_free), %l7",
    "janua_trap_free:",
    "andcc %l0, 0x40, %g0",
    "bne janua_trap_kernel",
    "nop",
    "janua_trap_user:",
    "ld [%g0 - 4096 + 0], %sp",
    "st %l0, [%g0 - 4096 + 8]",
    "janua_save:",
    "st %l0, [%sp + 96 + 0]",
    "st %l1, [%sp + 96 + 4]",
    "st %l2, [%sp + 96 + 8]",
    "rd %y, %l5",
    "st %l5, [%sp + 96 + 12]",
    "std %g0, [%sp + 96 + 16]",
    "std %g2, [%sp + 96 + 24]",
    "std %g4, [%sp + 96 + 32]",
    "std %g6, [%sp + 96 + 40]",
    "std %i0, [%sp + 96 + 48]",
    "std %i2, [%sp + 96 + 56]",
    "std %i4, [%sp + 96 + 64]",
    "std %i6, [%sp + 96 + 72]",
    "mov -1, %l5",
    "st %l5, [%sp + 96 + 80]",
    "st %g0, [%sp + 96 + 84]",
    "or %l0, 0xf00, %l5",
    "wr %l5, 0x20, %psr",
    "nop",
    "nop",
    "nop",
    "mov %l4, %o1",
    "call janua_trapped",
    "add %sp, 96, %o0",
    "janua_leave:",
    // Registers of another stack: the windows in the file are not theirs. They go to their own stacks, and the exit finds
    // the window it wants invalid.
    "ld [%sp + 96 + 72], %l3",
    "cmp %l3, %i6",
    "be janua_leave_same",
    "nop",
    "call janua_flush_windows",
    "nop",
    "janua_leave_same:",
    // Of the frame's PSR the condition codes and the mode before the trap; FPU on, supervisor, traps off.
    "ld [%sp + 96 + 0], %l0",
    "ld [%sp + 96 + 4], %l1",
    "ld [%sp + 96 + 8], %l2",
    "ld [%sp + 96 + 12], %l5",
    "wr %l5, 0, %y",
    "sethi %hi(0x00f00000), %l4",
    "or %l4, 0x40, %l4",
    "and %l0, %l4, %l0",
    "rd %psr, %l3",
    "and %l3, 0x1f, %l3",
    "or %l0, %l3, %l0",
    "sethi %hi(0x1000), %l4",
    "or %l4, 0x80, %l4",
    "or %l0, %l4, %l0",
    "ldd [%sp + 96 + 16], %g0",
    "ldd [%sp + 96 + 24], %g2",
    "ldd [%sp + 96 + 32], %g4",
    "ldd [%sp + 96 + 40], %g6",
    "ldd [%sp + 96 + 48], %i0",
    "ldd [%sp + 96 + 56], %i2",
    "ldd [%sp + 96 + 64], %i4",
    "ba janua_slow_exit",
    "ldd [%sp + 96 + 72], %i6",

    // The first exit of a thread: there is no trap window yet. All other windows of the kernel's go to its stack, where
    // they are forgotten, and this one becomes the trap window.
    ".globl janua_enter_user",
    "janua_enter_user:",
    "call janua_flush_windows",
    "nop",
    "ba janua_leave",
    "sub %o0, 96, %sp",

    // A trap in the kernel: an interrupt of the idle loop, a fault. The frame is below the stack of what was interrupted.
    "janua_trap_kernel:",
    // An application without protection, which is below the kernel.
    "srl %l1, 30, %l6",
    "tst %l6",
    "be janua_trap_user",
    // Or one that has come by `janua_dispatch`: the kernel itself makes no calls.
    "cmp %l4, 0x90",
    "be janua_trap_user",
    "nop",
    "sub %fp, 96 + 88, %sp",
    "st %l0, [%sp + 96 + 0]",
    "st %l1, [%sp + 96 + 4]",
    "st %l2, [%sp + 96 + 8]",
    "rd %y, %l5",
    "st %l5, [%sp + 96 + 12]",
    "std %g0, [%sp + 96 + 16]",
    "std %g2, [%sp + 96 + 24]",
    "std %g4, [%sp + 96 + 32]",
    "std %g6, [%sp + 96 + 40]",
    "std %i0, [%sp + 96 + 48]",
    "std %i2, [%sp + 96 + 56]",
    "std %i4, [%sp + 96 + 64]",
    "std %i6, [%sp + 96 + 72]",
    "or %l0, 0xf00, %l5",
    "wr %l5, 0x20, %psr",
    "nop",
    "nop",
    "nop",
    "mov %l4, %o1",
    "call janua_kernel_trap",
    "add %sp, 96, %o0",
    "ld [%sp + 96 + 4], %l1",
    "ld [%sp + 96 + 8], %l2",
    "ld [%sp + 96 + 12], %l5",
    "wr %l5, 0, %y",
    "ldd [%sp + 96 + 16], %g0",
    "ldd [%sp + 96 + 24], %g2",
    "ldd [%sp + 96 + 32], %g4",
    "ldd [%sp + 96 + 40], %g6",
    // What was interrupted is in a kernel window, which may have been spilled too.
    "restore %g0, %g0, %g0",
    "save %g0, %g0, %g0",
    "wr %l0, 0, %psr",
    "nop",
    "nop",
    "nop",
    "jmp %l1",
    "rett %l2",
    ".previous",
    bad_stack = const BAD_STACK,
);
