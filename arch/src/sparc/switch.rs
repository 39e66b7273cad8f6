//! From one kernel stack to another.

use core::arch::global_asm;

/// Where a thread that does not run goes on in the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    pub sp: u32,
    /// Address of the instruction before the last but one: what `call` leaves in %o7.
    pub pc: u32,
    pub psr: u32,
}

impl Context {
    /// A context that begins with `start` on a stack that ends at `top` (aligned to 8).
    ///
    /// # Safety
    /// The 160 bytes below `top` are the stack's, and writable.
    pub unsafe fn new(start: extern "C" fn() -> !, top: usize) -> Context {
        /// A minimal stack frame: the window's save area and room for arguments.
        const LEAST: usize = 96;
        let sp = top - LEAST;
        // SAFETY: the caller's promise.
        unsafe { core::ptr::write_bytes(sp as *mut u8, 0, LEAST) };
        // Supervisor, FPU on, level 15, traps on, window 0.
        const PSR: u32 = 0x1000 | 0xf00 | 0x80 | 0x20;
        Context { sp: sp as u32, pc: (start as usize - 8) as u32, psr: PSR }
    }
}

unsafe extern "C" {
    /// Leaves in `from` where this goes on, and goes on with `to`. The windows of `to` come back one by one as they are needed, the
    /// first into the window it was left in, so that window numbers that wait on its stack stay right.
    ///
    /// # Safety
    /// `to` was made by [`Context::new`] or filled by this function and not used since; its stack is whole. Interrupts are off.
    pub fn janua_switch(from: *mut Context, to: *const Context);
    /// All windows but the current one go to their stacks.
    pub fn janua_flush_windows();
    /// Stores the floating-point registers and their state register in 136 bytes, aligned to 8; and loads them.
    pub fn janua_fpu_save(area: *mut u64);
    pub fn janua_fpu_load(area: *const u64);
}

global_asm!(
    ".section .text.janua_switch, \"ax\"",
    // Six saves meet every other window in use: eight windows, of which one is invalid and one current.
    ".globl janua_flush_windows",
    "janua_flush_windows:",
    ".rept 6",
    "save %sp, -96, %sp",
    ".endr",
    ".rept 6",
    "restore %g0, %g0, %g0",
    ".endr",
    "retl",
    "nop",
    ".globl janua_switch",
    "janua_switch:",
    "st %o7, [%o0 + 4]",
    "mov %o0, %g2",
    "mov %o1, %g3",
    "call janua_flush_windows",
    "nop",
    "st %sp, [%g2]",
    "rd %psr, %g4",
    "st %g4, [%g2 + 8]",
    "std %l0, [%sp]",
    "std %l2, [%sp + 8]",
    "std %l4, [%sp + 16]",
    "std %l6, [%sp + 24]",
    "std %i0, [%sp + 32]",
    "std %i2, [%sp + 40]",
    "std %i4, [%sp + 48]",
    "std %i6, [%sp + 56]",
    // From here on in the window of the other, with traps off until its registers are there.
    "ld [%g3 + 8], %g4",
    "andn %g4, 0x20, %g4",
    "wr %g4, 0, %psr",
    "nop",
    "nop",
    "nop",
    "ld [%g3], %sp",
    "ld [%g3 + 4], %o7",
    // Only this window is valid: the invalid one is the next older.
    "add %g4, 1, %l0",
    "and %l0, 7, %l0",
    "mov 1, %l1",
    "sll %l1, %l0, %l1",
    "wr %l1, 0, %wim",
    "mov -1, %l0",
    "st %l0, [%g0 - 4096 + 8]",
    "nop",
    "ldd [%sp], %l0",
    "ldd [%sp + 8], %l2",
    "ldd [%sp + 16], %l4",
    "ldd [%sp + 24], %l6",
    "ldd [%sp + 32], %i0",
    "ldd [%sp + 40], %i2",
    "ldd [%sp + 48], %i4",
    "ldd [%sp + 56], %i6",
    "wr %g4, 0x20, %psr",
    "nop",
    "nop",
    "nop",
    "retl",
    "nop",
    ".globl janua_fpu_save",
    "janua_fpu_save:",
    "std %f0, [%o0]",
    "std %f2, [%o0 + 8]",
    "std %f4, [%o0 + 16]",
    "std %f6, [%o0 + 24]",
    "std %f8, [%o0 + 32]",
    "std %f10, [%o0 + 40]",
    "std %f12, [%o0 + 48]",
    "std %f14, [%o0 + 56]",
    "std %f16, [%o0 + 64]",
    "std %f18, [%o0 + 72]",
    "std %f20, [%o0 + 80]",
    "std %f22, [%o0 + 88]",
    "std %f24, [%o0 + 96]",
    "std %f26, [%o0 + 104]",
    "std %f28, [%o0 + 112]",
    "std %f30, [%o0 + 120]",
    "retl",
    "st %fsr, [%o0 + 128]",
    ".globl janua_fpu_load",
    "janua_fpu_load:",
    "ldd [%o0], %f0",
    "ldd [%o0 + 8], %f2",
    "ldd [%o0 + 16], %f4",
    "ldd [%o0 + 24], %f6",
    "ldd [%o0 + 32], %f8",
    "ldd [%o0 + 40], %f10",
    "ldd [%o0 + 48], %f12",
    "ldd [%o0 + 56], %f14",
    "ldd [%o0 + 64], %f16",
    "ldd [%o0 + 72], %f18",
    "ldd [%o0 + 80], %f20",
    "ldd [%o0 + 88], %f22",
    "ldd [%o0 + 96], %f24",
    "ldd [%o0 + 104], %f26",
    "ldd [%o0 + 112], %f28",
    "ldd [%o0 + 120], %f30",
    "retl",
    "ld [%o0 + 128], %fsr",
    ".previous",
);
