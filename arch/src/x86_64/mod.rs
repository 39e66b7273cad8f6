//! x86-64.

#[cfg(test)]
mod claims;
pub mod cpu;
pub mod entry;
pub mod frame;
mod hooks;
pub mod hostcall;
pub mod hosted;
pub mod memory;
mod pieces;
pub mod search;
pub mod segments;
pub mod usercopy;
pub mod vdso;
pub mod vdso32;

pub use frame::Frame;
