//! L4, Version 2, on x86: numbers and layouts of its interface, as the kernels of that time have them (Liedtke's, Hazelnut's second
//! interface, Fiasco's). A call is a software interrupt from [`FIRST_VECTOR`] on; what goes in and out is in the processor's registers.

pub mod boot;
pub mod fpage;
pub mod id;
pub mod message;
pub mod timeout;

/// The vector of `ipc`, and how many calls there are.
pub const FIRST_VECTOR: u8 = 0x30;
pub const CALLS: u8 = 7;

/// Bytes of a page.
pub const PAGE: u32 = 4096;
/// Where a task's address space ends: the rest of the 4 GiB is the kernel's.
pub const USER_END: u32 = 0xc000_0000;

/// Words of `lthread_ex_regs` that leave a register as it is.
pub const KEEP: u32 = u32::MAX;

/// What `int3` asks the kernel for, by the instruction `cmp al, NUMBER` behind it.
pub mod debug {
    /// Write the character in al.
    pub const CHARACTER: u8 = 0;
    /// Write the ebx characters at eax.
    pub const CHARACTERS: u8 = 1;
    /// Write the characters at eax up to a zero.
    pub const STRING: u8 = 2;
    /// Write eax as a hexadecimal number of 8, 5, 4, 3 and 2 digits.
    pub const HEX: [(u8, usize); 5] = [(5, 8), (6, 5), (7, 4), (8, 3), (9, 2)];
    /// Write eax as a signed decimal number.
    pub const DECIMAL: u8 = 11;
    /// Read a character into al.
    pub const READ: u8 = 13;
}
