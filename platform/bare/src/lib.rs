//! What bare machines share: physical memory.
#![no_std]

pub mod frames;
#[cfg(test)]
mod tests;

pub use frames::Physical;
