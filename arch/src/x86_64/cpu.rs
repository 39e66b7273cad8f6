//! Single instructions with a Rust face.

use core::arch::asm;

/// The time-stamp counter; not ordered against other instructions.
#[inline]
pub fn rdtsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: RDTSC reads a counter and touches no memory; user mode may execute it unless the host forbids it altogether.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Tells the processor that this is a waiting loop.
#[inline]
pub fn relax() {
    core::hint::spin_loop();
}
