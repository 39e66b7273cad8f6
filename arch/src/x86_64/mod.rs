//! x86-64.

pub mod cpu;
pub mod frame;
pub mod usercopy;

pub use frame::Frame;
