//! The Linux personality: the x86-64 and i386 system calls, implemented by this kernel.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod boot;
pub mod caller;
pub mod cred;
pub mod dev;
pub mod event;
pub mod exec;
pub mod fs;
pub mod futex;
mod generic;
pub mod ipc;
pub mod limits;
pub mod linux;
mod load;
pub mod misc;
pub mod mm;
pub mod net;
pub mod outside;
pub mod place;
pub mod poll;
pub mod prctl;
pub mod process;
pub mod procfs;
pub mod ptrace;
pub mod queue;
pub mod restart;
pub mod ring;
mod sampled;
pub mod sched;
mod shared;
pub mod signal;
pub mod start;
pub mod system;
pub mod table;
pub mod task;
pub mod thread;
pub mod tiles;
pub mod time;
pub mod trace;
pub mod uring;
pub mod usage;
pub mod user;
pub mod x86;

pub use linux::Linux;

/// A kernel, task, thread and seat of this personality.
pub type Kernel = janua_kernel::Kernel<Linux>;
pub type Task = janua_kernel::Task<Linux>;
pub type Thread = janua_kernel::Thread<Linux>;
pub type Seat = janua_kernel::Seat<Linux>;
