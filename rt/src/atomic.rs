//! The atomics the waiting code is written on: the machine's, or loom's when it is model-checked.

#[cfg(not(loom))]
pub use core::hint::spin_loop;
#[cfg(all(not(loom), target_has_atomic = "64"))]
pub use core::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU32, AtomicUsize, fence};
#[cfg(loom)]
pub use loom::hint::spin_loop;
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence};
