//! x86-64.

pub mod cpu;
pub mod frame;
pub mod hostcall;
pub mod hosted;
pub mod usercopy;

pub use frame::Frame;
