//! Machine code of guests as data: where it makes calls, and what else it holds that a kernel must know of.
//!
//! Everything here works on bytes that came from a guest: nothing is believed, nothing panics, and in doubt the answer is no.
//!
//! A *call site* is a `syscall` instruction together with the bytes that are overwritten to reach the kernel by a jump
//! instead ([`sites`]). The jump leads to a *trampoline* ([`trampoline`]), which records where to go on and enters the kernel.
//! [`rewrite`] does both for the executable segments of a file.
//!
//! Where a protection key locks the kernel, [`scan`] finds what could open it, [`patch_out`] overwrites what a file holds of that, and
//! [`step`] does the work of an instruction that cannot run where it is.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod access;
pub mod decode;
pub mod elf;
pub mod frames;
pub mod patch_out;
#[cfg(test)]
#[path = "../../test/random.rs"]
mod random;
#[cfg(test)]
mod random_tests;
pub mod restore;
pub mod rewrite;
pub mod scan;
pub mod sites;
pub mod step;
#[cfg(test)]
mod tests;
pub mod trampoline;
