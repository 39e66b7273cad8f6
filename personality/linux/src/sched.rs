//! Scheduling as programs see it (sched(7)): the host or the machine schedules; policies and priorities are remembered and
//! their rules kept.

use core::sync::atomic::{AtomicU32, Ordering};

/// A thread's policy and static priority.
#[derive(Default)]
pub struct Sched {
    /// SCHED_*.
    pub policy: AtomicU32,
    /// 1..=99 for the real-time policies, else 0.
    pub priority: AtomicU32,
}

impl Sched {
    /// Takes another thread's policy over (a child from its parent).
    pub fn copy_from(&self, other: &Sched) {
        self.policy.store(other.policy.load(Ordering::Relaxed), Ordering::Relaxed);
        self.priority.store(other.priority.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
