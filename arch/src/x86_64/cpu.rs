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

/// Hints to the processor that this is a waiting loop.
#[inline]
pub fn relax() {
    core::hint::spin_loop();
}

/// CPUID: eax, ebx, ecx, edx for a leaf and subleaf.
pub fn cpuid(leaf: u32, subleaf: u32) -> [u32; 4] {
    let r = core::arch::x86_64::__cpuid_count(leaf, subleaf);
    [r.eax, r.ebx, r.ecx, r.edx]
}

/// The processor-state components the operating system has switched on (XCR0).
pub fn xcr0() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: XGETBV with index 0 reads a register; every machine with AVX allows it in user mode, and Janua's hosts have XSAVE.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// What AT_HWCAP and AT_HWCAP2 report to programs: the feature word of CPUID leaf 1 (edx), and bit 1 for RDFSBASE and its variants.
pub fn hwcap() -> [u64; 2] {
    let fsgsbase = cpuid(0, 0)[0] >= 7 && cpuid(7, 0)[1] & 1 != 0;
    [cpuid(1, 0)[3].into(), u64::from(fsgsbase) << 1]
}
