//! What happens once a call has got in: table, threads, user memory, trace.
//!
//! The kernel names no gate, platform or personality: they arrive as the type parameter `P: Personality` and as
//! `&'static dyn Machine`. One kernel instance is a value, [`Kernel`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod call;
pub mod chore;
mod cores;
mod errand;
pub mod iobuf;
pub mod module;
pub mod offload;
pub mod place;
pub mod queue;
pub mod stats;
pub mod table;
pub mod task;
pub mod thread;
#[cfg(target_has_atomic = "64")]
pub mod tiles;
pub mod trace;
pub mod user;
pub mod view;
pub mod wait;

pub use iobuf::{ReadBuf, WriteBuf};
pub use place::{Place, Places};
pub use queue::Queue;
pub use table::{Row, Run, Support, Table};
pub use task::{Before, Kernel, Personality, Task, Trapped};
pub use thread::{Seat, Thread};
pub use user::{PathRoom, UserPtr, UserSlice, UserStr};

pub use janua_abi::linux::{Errno, Result};
