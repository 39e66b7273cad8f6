//! What bare machines share: physical memory, and what they have agreed on with the command that boots them.
#![no_std]

pub mod frames;
pub mod outside;
mod slicing;
#[cfg(test)]
mod tests;

pub use frames::Physical;
pub use slicing::Slicing;
