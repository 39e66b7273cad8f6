//! x86-64.

pub mod cpu;
pub mod exception;
pub mod fpu;
pub mod frame;
pub mod memory;
pub mod search;
pub mod segments;
pub mod usercalls;
pub mod usercopy;
pub mod vdso;
pub mod vdso32;
pub mod words;

pub use frame::Frame;
