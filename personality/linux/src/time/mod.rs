//! Time: clocks, sleeping, timers.

pub mod clock;
pub mod cpu;
pub mod interval;
pub mod posix;
pub mod service;
pub mod sleep;

use crate::Task;

/// Forgets the timers of a process that ends.
pub fn forget(task: &Task) {
    posix::delete_all(task);
    interval::disarm(task);
}

pub use clock::{ClockArg, ClockId};
pub use posix::PosixTimers;
pub use service::Timers;
