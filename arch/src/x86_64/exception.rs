//! The processor's exceptions by vector, and the error code of a page fault (Intel's manual, volume 3, "Interrupt and exception handling").

pub const DEBUG: u8 = 1;
pub const NMI: u8 = 2;
pub const INVALID_OPCODE: u8 = 6;
pub const DOUBLE_FAULT: u8 = 8;
pub const PROTECTION: u8 = 13;
pub const PAGE_FAULT: u8 = 14;
pub const MACHINE_CHECK: u8 = 18;
/// First vector that is no exception.
pub const FIRST_INTERRUPT: u8 = 32;

/// A page fault's error code: the access was a store.
pub const ERROR_STORE: u64 = 1 << 1;
/// It was an instruction fetch. Processors without the no-execute bit leave it clear.
pub const ERROR_FETCH: u64 = 1 << 4;
