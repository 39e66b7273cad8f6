//! The Linux personality: the x86-64 and i386 system calls, implemented by this kernel. For other processors it is compiled without calls
//! and programs (`personality/linux/src/unported.rs`).
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
#[cfg(target_arch = "x86_64")]
mod generic;
pub mod ipc;
pub mod limits;
pub mod linux;
mod load;
pub mod misc;
pub mod mm;
pub mod net;
pub mod outside;
#[cfg_attr(not(target_has_atomic = "64"), path = "unplaced.rs")]
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
#[cfg(target_arch = "x86_64")]
mod shared;
pub mod signal;
pub mod start;
pub mod system;
#[cfg(target_arch = "x86_64")]
pub mod table;
pub mod task;
pub mod thread;
#[cfg_attr(not(target_has_atomic = "64"), path = "alone.rs")]
pub mod tiles;
pub mod time;
pub mod trace;
#[cfg(not(target_arch = "x86_64"))]
pub mod unported;
pub mod uring;
pub mod usage;
pub mod user;
#[cfg(target_arch = "x86_64")]
pub mod x86;

pub use linux::Linux;

/// What the processor this is built for has of its own.
#[cfg(not(target_arch = "x86_64"))]
use unported as processor;
#[cfg(target_arch = "x86_64")]
use x86 as processor;

/// A kernel, task, thread and seat of this personality.
pub type Kernel = janua_kernel::Kernel<Linux>;
pub type Task = janua_kernel::Task<Linux>;
pub type Thread = janua_kernel::Thread<Linux>;
pub type Seat = janua_kernel::Seat<Linux>;
