//! SPARC v8, as the LEON3 has it: eight register windows, supervisor and user mode, reference MMU.

pub mod cpu;
pub mod frame;
pub mod switch;
pub mod usercopy;
pub mod window;
pub mod words;

pub use frame::Frame;

/// The processor's segment registers: it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments;

/// AT_HWCAP and AT_HWCAP2: multiply and divide in hardware, an FPU (HWCAP_SPARC_MULDIV and the like are Linux' and not used).
pub fn hwcap() -> [u64; 2] {
    [0, 0]
}
