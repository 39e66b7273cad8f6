//! Scheduling as programs see it (sched(7)): the host or the machine schedules; policies and priorities are remembered and
//! their rules kept.

use core::sync::atomic::AtomicU32;

/// A thread's policy and static priority.
#[derive(Default)]
pub struct Sched {
    /// SCHED_*.
    pub policy: AtomicU32,
    /// 1..=99 for the real-time policies, else 0.
    pub priority: AtomicU32,
}
