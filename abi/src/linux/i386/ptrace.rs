//! What 32-bit tracers see (asm/user32.h, uapi asm/ptrace-abi.h).

/// Requests that only they have.
pub mod request32 {
    pub const GETFPXREGS: u32 = 18;
    pub const SETFPXREGS: u32 = 19;
    pub const GET_THREAD_AREA: u32 = 25;
}

/// Words in `struct user_regs_struct32`, which `struct user32` starts with.
pub const USER_REGS32: usize = 17;
/// Bytes of `struct user32`, and where in it the debug registers are.
pub const USER_SIZE32: usize = 284;
pub const USER_DEBUG32: core::ops::Range<usize> = 252..284;
/// Bytes of `struct user_i387_ia32_struct`.
pub const USER_I387_32: usize = 108;
/// The register set of FXSAVE's form (elf.h).
pub const NT_PRXFPREG: usize = 0x46e6_2b7f;
