//! The personality `pal`: the Platform Adaptation Layer of Graphene, as calls.
//!
//! A picoprocess is a process of the personality `linux`, with its memory, its descriptors, its signals and its threads, and with a table of calls of its
//! own. A handle is a descriptor; what Linux has no object for (events, semaphores, streams that carry handles, channels for pages) is a file of this
//! crate's. docs/pal.md is the page about it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod bulk;
mod exception;
mod handle;
mod memory;
mod misc;
mod process;
mod sandbox;
mod signal;
pub mod start;
mod state;
mod stream;
mod sync;
pub mod table;
mod thread;
mod uri;

pub use janua_personality_linux::{Kernel, Linux, Thread};
pub use janua_personality_outside::pal as config;
pub use state::System;
