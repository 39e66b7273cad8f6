//! The LEON3 platform: the kernel on a SPARC v8 machine with the reference MMU.
//!
//! The kernel runs as supervisor in the machine's own memory, which is mapped where it is; programs run as users in the address
//! space below. One core; interrupts stay out while the kernel runs, so a thread in the kernel goes on until it waits. A thread has
//! a kernel stack of its own. A trap calls `trap::janua_trapped` on it, and that returns when user code is to go on.
#![no_std]
// The crate is empty on other processors: a check of the whole workspace, for the host, meets it too.
#![cfg(target_arch = "sparc")]
#![feature(asm_experimental_arch)]

extern crate alloc;

pub mod boot;
pub mod clock;
mod context;
pub mod frames;
pub mod heap;
pub mod lock;
pub mod machine;
pub mod report;
pub mod sched;
pub mod space;
pub mod tables;
pub mod thread;
pub mod trap;
pub mod uart;
mod unprotected;
pub mod user;

pub use machine::Leon3;
