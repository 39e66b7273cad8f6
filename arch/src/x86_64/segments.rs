//! Segment registers, for guests that run 32-bit code.
//!
//! The kernel uses none of DS, ES, FS and GS, so that while it runs they hold what user code left there, like the vector
//! registers; the host keeps them for each thread. In 64-bit code they have no bearing on the exit, which loads CS and SS only.

use core::arch::asm;

use super::frame::USER_SS;

/// The four data segment registers of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    pub ds: u16,
    pub es: u16,
    pub fs: u16,
    pub gs: u16,
}

impl Segments {
    /// What 32-bit code starts with: flat data, no thread pointer.
    pub const FLAT: Segments = Segments { ds: USER_SS as u16, es: USER_SS as u16, fs: 0, gs: 0 };

    /// The registers as they are.
    pub fn current() -> Segments {
        let (ds, es, fs, gs): (u16, u16, u16, u16);
        // SAFETY: reads registers.
        unsafe {
            asm!(
                "mov {0:x}, ds", "mov {1:x}, es", "mov {2:x}, fs", "mov {3:x}, gs",
                out(reg) ds, out(reg) es, out(reg) fs, out(reg) gs,
                options(nomem, nostack, preserves_flags),
            );
        }
        Segments { ds, es, fs, gs }
    }

    /// Loads the registers. A selector that cannot be loaded is taken as 0, as Linux does on the return from a handler.
    pub fn load(self) {
        let [ds, es, fs, gs] = [self.ds, self.es, self.fs, self.gs].map(loadable);
        // SAFETY: each selector is null or names a segment that `loadable` has found good; the kernel uses none of them.
        unsafe {
            asm!(
                "mov ds, {0:x}", "mov es, {1:x}", "mov fs, {2:x}", "mov gs, {3:x}",
                in(reg) ds, in(reg) es, in(reg) fs, in(reg) gs,
                options(nomem, nostack, preserves_flags),
            );
        }
    }
}

/// The base of FS.
///
/// # Safety
/// The operating system lets user code have the instruction (bit 1 of AT_HWCAP2).
pub unsafe fn fs_base() -> usize {
    let base;
    // SAFETY: the caller's word that it is there; it reads a register.
    unsafe { asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// Sets the base of FS, which the kernel does not use.
///
/// # Safety
/// As [`fs_base`].
pub unsafe fn set_fs_base(base: usize) {
    // SAFETY: the caller's word that it is there; the base may be any that user code can have.
    unsafe { asm!("wrfsbase {}", in(reg) base, options(nomem, nostack, preserves_flags)) };
}

/// The base of GS.
///
/// # Safety
/// As [`fs_base`].
pub unsafe fn gs_base() -> usize {
    let base;
    // SAFETY: as in `fs_base`.
    unsafe { asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// Sets the base of GS, which the kernel does not use.
///
/// # Safety
/// As [`fs_base`].
pub unsafe fn set_gs_base(base: usize) {
    // SAFETY: as in `set_fs_base`.
    unsafe { asm!("wrgsbase {}", in(reg) base, options(nomem, nostack, preserves_flags)) };
}

/// The selector with user privilege if a data segment register may be loaded with it, otherwise 0.
fn loadable(selector: u16) -> u16 {
    const PRESENT: u32 = 1 << 15;
    // All four null selectors can be loaded.
    let selector = if selector & !3 == 0 { return selector } else { selector | 3 };
    let (rights, found, readable): (u32, u8, u8);
    // SAFETY: LAR and VERR ask about a descriptor and fault for none.
    unsafe {
        asm!(
            "xor {rights:e}, {rights:e}",
            "lar {rights:e}, {selector:e}",
            "setz {found}",
            "verr {selector:x}",
            "setz {readable}",
            selector = in(reg) u32::from(selector),
            rights = out(reg) rights,
            found = out(reg_byte) found,
            readable = out(reg_byte) readable,
            options(nomem, nostack),
        );
    }
    if found != 0 && readable != 0 && rights & PRESENT != 0 { selector } else { 0 }
}
