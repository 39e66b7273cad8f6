//! What waiting is made of: locks, wait queues, the wake word, the call slot.
//!
//! Nothing here knows a machine: sleeping and waking go through the [`Sleep`] the image registers once at start.
#![no_std]

extern crate alloc;

mod atomic;
#[cfg(not(loom))]
pub mod epoch;
pub mod slot;
pub mod sync;
pub mod waitq;
pub mod wake;
#[cfg(not(loom))]
mod wide;

pub use slot::Slot;
#[cfg(not(loom))]
pub use epoch::Epoch;
#[cfg(not(loom))]
pub use sync::{RwLock, RwLockReadGuard};
pub use sync::{Mutex, MutexGuard, Sleep};
pub use waitq::{Notify, Registration, Target, WaitQueue};
#[cfg(not(loom))]
pub use wide::AtomicU64;
