//! Machine code of guests as data: where it makes calls, and what else it holds that a kernel must know of.
//!
//! Everything here works on bytes that came from a guest: nothing is believed, nothing panics, and in doubt the answer is no.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod scan;
