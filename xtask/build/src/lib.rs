//! Builds Janua: the compiler for the kernel images, the Debian packages, the images, the applications, the command.
//!
//! It needs nothing but the standard library, for each first build compiles it before all else. What checks and tests is `xtask`.

#![forbid(unsafe_code)]

pub mod build;
pub mod packages;
pub mod process;
pub mod toolchain;
pub mod user;
pub mod workspace;
