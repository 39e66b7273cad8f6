//! User memory: the lower half of the space in use. Copies that fault are resolved or ended by [`crate::trap::kernel_trap`].

use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_arch::x86_64::usercopy;
use janua_port::{Fault, UserMemory};

use crate::vdso;

/// End of what guests may map: the last page below the hole is left out, as on Linux (a `syscall` at its very end would return
/// to an address that is not canonical).
pub const END: usize = 0x7fff_ffff_f000;

/// Whether the processor keeps the kernel from user memory (SMAP), so that each copy must open it.
static GUARDED: AtomicBool = AtomicBool::new(false);

/// At start, when SMAP is on.
pub fn set_guarded() {
    GUARDED.store(true, Ordering::Relaxed);
}

/// Whether a range is the guests'.
pub fn is_user(addr: usize, len: usize) -> bool {
    addr.checked_add(len).is_some_and(|end| end <= END)
}

/// Runs one routine of `usercopy` with user memory open.
fn open<R>(copy: impl FnOnce() -> R) -> R {
    let guarded = GUARDED.load(Ordering::Relaxed);
    if guarded {
        // SAFETY: the processor has SMAP; closed again below, and on every entry into the kernel.
        unsafe { asm!("stac", options(nostack)) };
    }
    let result = copy();
    if guarded {
        // SAFETY: as above.
        unsafe { asm!("clac", options(nostack)) };
    }
    result
}

/// The memory of the space in use.
pub struct BareUser;

impl UserMemory for BareUser {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        is_user(addr, len)
    }

    fn is_direct(&self, addr: usize, len: usize) -> bool {
        // What would have to be opened for it stays closed.
        !GUARDED.load(Ordering::Relaxed) && is_user(addr, len)
    }

    fn is_code(&self, addr: usize) -> bool {
        is_user(addr, 1) || vdso::contains(addr)
    }

    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        if !is_user(src, dst.len()) {
            return 0;
        }
        // SAFETY: the destination is a slice of ours; the source is guest memory, and a fault there ends the copy (fixup).
        dst.len() - open(|| unsafe { usercopy::usercopy_bytes(dst.as_mut_ptr(), src as *const u8, dst.len()) })
    }

    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        if !is_user(dst, src.len()) {
            return 0;
        }
        // SAFETY: the source is a slice of ours; the destination is guest memory, which no Rust object is in.
        src.len() - open(|| unsafe { usercopy::usercopy_bytes(dst as *mut u8, src.as_ptr(), src.len()) })
    }

    fn zero(&self, dst: usize, len: usize) -> Result<(), Fault> {
        if !is_user(dst, len) {
            return Err(Fault);
        }
        // SAFETY: guest memory, which no Rust object is in; a fault ends the loop.
        if open(|| unsafe { usercopy::usercopy_zero(dst as *mut u8, len) }) == 0 { Ok(()) } else { Err(Fault) }
    }

    fn copy_str(&self, dst: &mut [u8], src: usize) -> Result<Option<usize>, Fault> {
        // A string may end just before the border, so the range is cut rather than refused.
        let most = dst.len().min(END.saturating_sub(src));
        if most == 0 {
            return Err(Fault);
        }
        // SAFETY: at most `most` bytes are written to the slice and read from guest memory.
        let len = open(|| unsafe { usercopy::usercopy_string(dst.as_mut_ptr(), src as *const u8, most) });
        match usize::try_from(len) {
            Err(_) => Err(Fault),
            Ok(len) if len < most => Ok(Some(len)),
            Ok(_) if most < dst.len() => Err(Fault),
            Ok(_) => Ok(None),
        }
    }

    fn load_u32(&self, addr: usize) -> Result<u32, Fault> {
        if !is_user(addr, 4) || !addr.is_multiple_of(4) {
            return Err(Fault);
        }
        let mut value = 0;
        // SAFETY: guest memory read, our own word written.
        if open(|| unsafe { usercopy::usercopy_load32(addr, &raw mut value) }) == 0 { Ok(value) } else { Err(Fault) }
    }

    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> Result<u32, Fault> {
        if !is_user(addr, 4) || !addr.is_multiple_of(4) {
            return Err(Fault);
        }
        let mut found = 0;
        // SAFETY: an atomic access to guest memory, which no Rust object is in; our own word is written.
        if open(|| unsafe { usercopy::usercopy_cmpxchg32(addr, old, new, 0, &raw mut found) }) == 0 {
            Ok(found)
        } else {
            Err(Fault)
        }
    }
}
