//! Register frame, entry and exit assembly, FPU, thread bases: what depends on the processor and on nothing else.
#![no_std]

#[cfg(target_arch = "x86_64")]
pub mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{Frame, cpu::hwcap, segments::Segments};
