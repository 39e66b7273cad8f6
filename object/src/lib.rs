//! What calls act on: files of every kind, sockets, timers, events, address spaces.
//!
//! Objects never block: an operation that cannot go on returns EAGAIN, and [`file::File::poll`] reports when to try again. Waiting
//! is done in one place, the call.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod anon;
pub mod caller;
mod coverage;
pub mod dev;
pub mod dnotify;
pub mod epoll;
pub mod eventfd;
pub mod fdtable;
pub mod file;
pub mod fs;
pub mod hostfile;
pub mod inotify;
pub mod lease;
pub mod lock;
pub mod memfd;
pub mod mm;
pub mod mqueue;
pub mod net;
pub mod pipe;
#[cfg(test)]
#[path = "../../test/random.rs"]
mod random;
pub mod sysv;
pub mod timerfd;
pub mod tty;
pub mod vfs;

pub use caller::{Caller, Cred};
pub use file::{Events, File, OpenFile};
