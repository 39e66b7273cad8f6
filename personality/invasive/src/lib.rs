//! The invasive personality: claims, i-lets and tiles, as OctoPOS applications know them.
//!
//! A tile is a task (a protection domain with memory of its own), a core a thread of it. An i-let is a user frame on a stack of the
//! tile's pool: a core runs it until it ends or waits inside a call, and only there another takes its place. Tiles share nothing;
//! they exchange [`message::Message`]s. Nothing here knows a machine.
//!
//! Lock order: a tile's state, then its mailbox. No lock is held while a message is posted to another tile.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub use janua_personality_outside::invasive as config;

pub mod handler;
pub mod load;
pub mod memory;
pub mod message;
pub mod personality;
pub mod switch;
pub mod system;
pub mod table;
pub mod tile;

pub use personality::Invasive;

/// A kernel, task, thread and seat of this personality.
pub type Kernel = janua_kernel::Kernel<Invasive>;
pub type Task = janua_kernel::Task<Invasive>;
pub type Thread = janua_kernel::Thread<Invasive>;
pub type Seat = janua_kernel::Seat<Invasive>;
