//! The vsyscall page: three calls at fixed addresses in the kernel's half. Source: asm/vsyscall.h.

/// Its address.
pub const START: u64 = 0xffff_ffff_ff60_0000;
/// Bytes from one call's entry to the next.
pub const STEP: u64 = 0x400;
/// The numbers of its calls, in the order of their entries: gettimeofday, time, getcpu.
pub const CALLS: [u16; 3] = [96, 201, 309];
