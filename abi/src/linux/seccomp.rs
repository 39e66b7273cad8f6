//! What filters of system calls return, and what they look at (seccomp(2)). Source: linux/seccomp.h.

/// SECCOMP_RET_*.
pub mod verdict {
    pub const ALLOW: u32 = 0x7fff_0000;
    pub const TRAP: u32 = 0x0003_0000;
    pub const KILL_PROCESS: u32 = 0x8000_0000;
}

/// Offsets in `struct seccomp_data`. The lower half of argument n is 8 n behind [`data::ARGS`].
pub mod data {
    pub const NUMBER: u32 = 0;
    pub const ARCH: u32 = 4;
    pub const IP_LOW: u32 = 8;
    pub const IP_HIGH: u32 = 12;
    pub const ARGS: u32 = 16;
}
