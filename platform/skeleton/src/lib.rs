//! The porting guide as code: every trait a platform implements, every method with what it must do, nothing behind it.
//!
//! Copy the crate, rename it, and fill in one file after the other; the workspace builds it at every step, because this crate
//! is always built with it and so follows each change of `port`. An order that shows something early:
//!
//! 1. [`console`] and [`Machine::notify_outside`](janua_port::Machine::notify_outside): the machine can report why it stopped.
//! 2. [`clock`], then [`park`]: time and waiting; the kernel's locks sleep by them too (`janua_rt::sync::set_sleep`).
//! 3. [`space`] and [`user`]: a program can be loaded and its arguments read.
//! 4. [`machine`]: threads that enter and leave user code. From here on a static program prints a line.
//! 5. [`host`], only where a host's files and sockets are at hand; [`gate`], only where a host has to be asked to hand calls
//!    over. On bare metal the entry code is the gate, and it calls [`Guest`](janua_port::Guest) itself.
//!
//! What the skeleton returns is honest, and there are three kinds of it:
//! - where the signature has an error, [`Errno::ENOSYS`](janua_abi::linux::Errno::ENOSYS) or, for user memory, a
//!   [`Fault`](janua_port::Fault);
//! - where "there is none" is a result (no host, no vDSO, no user memory, no resident page), that;
//! - otherwise nothing true can be returned, and [`missing`] ends the run with the name of what lacks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod clock;
pub mod console;
pub mod context;
pub mod gate;
pub mod host;
pub mod machine;
pub mod park;
pub mod space;
pub mod user;

pub use machine::SkeletonMachine;

/// Ends the run: `what` has no result on this platform, and any value returned would be a lie the kernel goes on with.
///
/// The report is the image's panic handler's, which has a console and [`Machine::notify_outside`](janua_port::Machine::notify_outside)
/// at hand.
///
/// # Panics
/// Always: that is the report.
pub fn missing(what: &str) -> ! {
    panic!("the skeleton platform does not implement {what}")
}

#[cfg(test)]
mod tests;
