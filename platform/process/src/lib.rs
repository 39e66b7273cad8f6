//! Guests in host processes of their own, run by ptrace(2) from a kernel in another: the jail `process` of the linux platform.
//!
//! The kernel's process holds the sandbox's physical memory, a file without a name that it maps whole ([`physical`]). A guest's process
//! holds what its page table maps and no more, page by page of that file, and beside it a page of code that makes host calls for the kernel and a page with
//! their words, which it can only read ([`stub`]). It never makes a host call of its own: each stops it ([`tracee`]). Page tables are the
//! kernel's (`paging`); the host's mappings follow them, as a processor's memory of translations would ([`mirror`]).
#![no_std]

extern crate alloc;

mod blocks;
pub mod context;
pub mod files;
pub mod life;
mod look;
pub mod machine;
pub mod mailbox;
pub mod mirror;
mod near;
pub mod physical;
mod registers;
pub mod space;
mod spare;
mod stray;
pub mod stub;
pub mod thread;
pub mod tracee;
mod zygote;

pub use machine::ProcessMachine;
