//! What waiting is made of: locks, wait queues, the wake word, the call slot, the executor of calls that are away, the workers for what blocks, the run queue of a core.
//!
//! Nothing here knows a machine: sleeping and waking go through the [`Sleep`] the image registers once at start.
#![no_std]

extern crate alloc;

pub mod atomic;
#[cfg(target_has_atomic = "64")]
pub mod channel;
pub mod ending;
#[cfg(not(loom))]
pub mod epoch;
#[cfg(not(loom))]
pub mod executor;
pub mod hold;
pub mod offload;
#[cfg(not(loom))]
pub mod once;
#[cfg(not(loom))]
pub mod policy;
#[cfg(not(loom))]
pub mod rbed;
pub mod slot;
pub mod sync;
pub mod waitq;
pub mod wake;
#[cfg(not(loom))]
mod wide;

pub use ending::Ending;
#[cfg(not(loom))]
pub use epoch::Epoch;
#[cfg(not(loom))]
pub use hold::{Held, Hold};
#[cfg(not(loom))]
pub use once::OnceArc;
pub use slot::Slot;
pub use sync::{Mutex, MutexGuard, Sleep};
#[cfg(not(loom))]
pub use sync::{RwLock, RwLockReadGuard};
pub use waitq::{Notify, Registration, Target, WaitQueue};
#[cfg(not(loom))]
pub use wide::{AtomicI64, AtomicU64};
