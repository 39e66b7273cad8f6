//! Register frame, entry and exit assembly, FPU, thread bases: what depends on the processor and on nothing else.
#![no_std]
// The compiler counts inline assembly for SPARC among its experiments.
#![cfg_attr(target_arch = "sparc", feature(asm_experimental_arch))]

#[cfg(test)]
#[path = "../../test/random.rs"]
mod random;
#[cfg(target_arch = "sparc")]
pub mod sparc;
#[cfg(target_arch = "x86_64")]
pub mod x86_64;

#[cfg(target_arch = "sparc")]
pub use sparc::{Frame, Segments, hwcap, words};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{Frame, cpu::hwcap, segments::Segments, words};

/// Offsets that the kernel itself uses in the shared object that every 32-bit program finds mapped (vdso(7)).
#[derive(Clone, Copy, Debug)]
pub struct Vdso32 {
    /// `__kernel_vsyscall`, `__kernel_sigreturn`, `__kernel_rt_sigreturn`.
    pub vsyscall: u32,
    pub sigreturn: u32,
    pub rt_sigreturn: u32,
    /// Where calls go on that are made by an instruction which saves no address.
    pub landing: u32,
}
