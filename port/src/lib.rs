//! What a machine must offer the kernel: one documented trait a file.
//!
//! A platform implements [`Machine`] and hands it to the kernel as a value; the kernel, the objects and the personalities
//! reach the machine through it and through nothing else. `platform/skeleton` is this contract with every method "not implemented".
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod accounts;
pub mod block;
pub mod clock;
pub mod compat;
pub mod console;
pub mod context;
pub mod drive;
pub mod gate;
pub mod guest;
pub mod host;
pub mod jail;
pub mod machine;
pub mod object;
pub mod outside;
pub mod park;
pub mod space;
#[cfg(target_has_atomic = "64")]
pub mod tiles;
pub mod trap;
pub mod user;

/// The saved user registers of the machine this image is built for, how functions have the words of calls there, and what the 32-bit programs of one have.
pub use janua_arch::{Frame, Segments, Vdso32, words, words_fn};

pub use accounts::{Account, Accounts, Payer};
pub use block::BlockDevice;
pub use clock::{Clock, Nanos};
pub use compat::Compat;
pub use console::Console;
pub use context::{Context, Registers};
pub use drive::{Carrier, Next, drive};
pub use gate::{Entry, GateId, HostSignal, HostedGate, QueueGate, RingGate, TrapGate, Way};
pub use guest::{Flow, Guest, Plain};
pub use host::{Host, HostFd, HostFiles, HostSockets, OwnedFd};
pub use machine::{Machine, NewSpace, Spawn, SpawnKind};
pub use object::{Fill, MemoryObject};
pub use outside::{Answer, Asked, Request};
pub use park::{Park, Spun};
pub use space::{Backing, PAGE, Prot, Space};
#[cfg(target_has_atomic = "64")]
pub use tiles::{Link, Tiles};
pub use trap::Trap;
pub use user::{Fault, Reach, UserMemory};
