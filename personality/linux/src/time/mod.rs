//! Time: clocks, sleeping, timers.

pub mod clock;
pub mod cpu;
pub mod interval;
pub mod posix;
pub mod service;
pub mod sleep;

pub use clock::{ClockArg, ClockId};
pub use posix::PosixTimers;
pub use service::Timers;
