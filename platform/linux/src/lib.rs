//! The linux platform: the kernel as part of ordinary host processes.
//!
//! One kernel serves all guest processes of a sandbox. Its memory is one shared file mapped at the same address in each of
//! them; guest threads are host threads and guest processes are host processes that share one descriptor table. A call is a
//! jump into the kernel on the thread's own kernel stack. The supervisor, outside, has the same memory mapped but runs none
//! of this code: it started the first process and waits.
#![no_std]

extern crate alloc;

pub mod area;
pub mod boot;
pub mod call;
pub mod channel;
pub mod clock;
mod compat;
pub mod context;
mod copying;
pub mod descriptors;
pub mod exception;
mod faults;
pub mod guard;
pub mod heap;
pub mod host;
pub mod identity;
pub mod idle;
mod kept;
pub mod lock;
pub mod machine;
mod random;
pub mod reactor;
pub mod registers;
pub mod signal;
pub mod space;
mod spare;
pub mod spawn;
pub mod sys;
mod text;
mod threads;
pub mod tiles;
pub mod usage;
pub mod user;
pub mod vdso;
pub mod wall;
mod window;

pub use boot::{BootInfo, Control};
pub use machine::LinuxMachine;
