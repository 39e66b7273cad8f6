//! Vector and floating-point registers. The kernel uses none, so they are the running guest's until another guest runs.
//!
//! They are kept by XSAVE, or where the processor lacks it by FXSAVE, whose form is the beginning of the other's.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_arch::x86_64::cpu;

/// The largest area there may be, bytes.
const MOST: usize = 4096;

/// Bytes of FXSAVE's form.
const LEGACY: usize = 512;

/// An XSAVE area in the standard form, or one of FXSAVE's.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Area([u8; MOST]);

/// The components that are kept; none without XSAVE.
static MASK: AtomicU64 = AtomicU64::new(0);
static SIZE: AtomicU64 = AtomicU64::new(LEGACY as u64);

/// The components of the calling core. After XCR0 is set.
fn components() -> u64 {
    const OSXSAVE: u32 = 1 << 27;
    if cpu::cpuid(1, 0)[2] & OSXSAVE != 0 { cpu::xcr0() } else { 0 }
}

/// Finds out how large the state is. After XCR0 is set.
pub fn init() {
    let mask = components();
    if mask == 0 {
        return;
    }
    let end = (2..63).filter(|bit| mask & (1 << bit) != 0).map(|bit| {
        let [size, offset, ..] = cpu::cpuid(0xd, bit);
        u64::from(size + offset)
    });
    let size = end.fold(576, u64::max);
    assert!(size <= MOST as u64, "the processor's extended state is larger than the kernel's area for it");
    MASK.store(mask, Ordering::Relaxed);
    SIZE.store(size, Ordering::Relaxed);
}

/// Whether the calling core has the components that were found at start.
pub fn is_alike() -> bool {
    components() == MASK.load(Ordering::Relaxed)
}

/// The components that are kept: without XSAVE those of FXSAVE.
pub fn features() -> u64 {
    MASK.load(Ordering::Relaxed).max(3)
}

/// Bytes of the state.
pub fn size() -> usize {
    SIZE.load(Ordering::Relaxed) as usize
}

impl Area {
    /// The state programs start with.
    pub const fn initial() -> Area {
        let mut bytes = [0; MOST];
        // MXCSR's start value; it is loaded even where the header states "initial". And the x87 control word's.
        bytes[24] = 0x80;
        bytes[25] = 0x1f;
        bytes[0] = 0x7f;
        bytes[1] = 0x03;
        Area(bytes)
    }

    /// Stores the processor's registers. A function of its own, as the next, for `cargo xtask scan` to know.
    #[inline(never)]
    pub fn store(&mut self) {
        let mask = MASK.load(Ordering::Relaxed);
        // SAFETY: aligned, and as large as the components of the mask need; the header is XSAVE's own or zero.
        unsafe {
            if mask == 0 {
                return asm!("fxsave64 [{}]", in(reg) self.0.as_mut_ptr(), options(nostack, preserves_flags));
            }
            asm!("xsave64 [{}]", in(reg) self.0.as_mut_ptr(), in("eax") mask as u32, in("edx") (mask >> 32) as u32, options(nostack));
        }
    }

    /// Loads the processor's registers.
    #[inline(never)]
    pub fn load(&self) {
        let mask = MASK.load(Ordering::Relaxed);
        // SAFETY: aligned, large enough, and the header is one that XSAVE made or `restore` cleaned.
        unsafe {
            if mask == 0 {
                return asm!("fxrstor64 [{}]", in(reg) self.0.as_ptr(), options(nostack, preserves_flags));
            }
            asm!("xrstor64 [{}]", in(reg) self.0.as_ptr(), in("eax") mask as u32, in("edx") (mask >> 32) as u32, options(nostack));
        }
    }
}

/// [`janua_port::Registers::fpu_save`].
pub fn save(out: &mut [u8]) {
    let mut area = Area([0; MOST]);
    area.store();
    let len = out.len().min(size());
    out[..len].copy_from_slice(&area.0[..len]);
}

/// [`janua_port::Registers::fpu_restore`].
pub fn restore(from: &[u8]) -> Result<()> {
    if from.len() < LEGACY {
        return Err(Errno::EINVAL);
    }
    let mut area = Area([0; MOST]);
    let len = from.len().min(size());
    area.0[..len].copy_from_slice(&from[..len]);
    // MXCSR: reserved bits would fault.
    area.0[26..28].fill(0);
    let mask = if len < 576 { 3 } else { MASK.load(Ordering::Relaxed) };
    let present = if len < 576 { 3 } else { u64::from_le_bytes(area.0[512..520].try_into().unwrap_or_default()) };
    area.0[512..520].copy_from_slice(&(present & mask).to_le_bytes());
    area.0[520..576].fill(0);
    area.load();
    Ok(())
}

/// The vector unit's status and control register: which exceptions are pending and which are masked.
pub fn mxcsr() -> u32 {
    let mut value = 0u32;
    // SAFETY: stores to our own word.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
    value
}

/// The x87 unit's status and control words.
#[inline(never)]
pub fn x87() -> (u16, u16) {
    let (mut status, mut control) = (0u16, 0u16);
    // SAFETY: stores to our own words.
    unsafe {
        asm!("fnstsw [{}]", "fnstcw [{}]", in(reg) &raw mut status, in(reg) &raw mut control, options(nostack));
    }
    (status, control)
}
