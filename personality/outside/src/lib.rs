//! What the outside passes to a personality before it starts: the supervisor that encodes it needs nothing else of the kernel.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod archive;
pub mod invasive;
pub mod l4v2;
pub mod linux;
pub mod pal;
