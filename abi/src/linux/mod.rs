//! The Linux x86-64 interface as data (source: the kernel's uapi headers and the man pages, section 2).

pub mod aio;
pub mod auxv;
pub mod capability;
pub mod errno;
pub mod fcntl;
pub mod futex;
pub mod i386;
pub mod ipc;
pub mod layout;
pub mod mman;
pub mod poll;
pub mod prctl;
pub mod process;
pub mod ptrace;
pub mod seccomp;
pub mod signal;
pub mod stat;
pub mod time;
pub mod uring;
pub mod vsyscall;

pub mod termios;

pub use errno::{Errno, Result};

pub mod net;
