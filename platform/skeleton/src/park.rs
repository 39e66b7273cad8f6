//! Waiting for a word of kernel memory.

use core::sync::atomic::AtomicU32;

use janua_port::{Nanos, Park};

use crate::missing;

/// A place where nobody sleeps.
pub struct SkeletonPark;

impl Park for SkeletonPark {
    /// Compares and goes to sleep as one step against [`Park::unpark`]: a wake-up between the two must not be lost. The host's
    /// futex(2) does that; on bare metal the compare and the entry in a list of sleepers are under one lock, which `unpark`
    /// takes too. Spurious wake-ups are allowed, so a machine that just halts until the next interrupt is right, if slow. The
    /// deadline is absolute.
    fn park(&self, _word: &AtomicU32, _expected: u32, _deadline: Option<Nanos>) {
        missing("Park::park")
    }

    /// Wakes sleepers on the word's address; with kernel memory shared between host processes, in all of them.
    fn unpark(&self, _word: &AtomicU32, _count: u32) {
        missing("Park::unpark")
    }

    /// sched_yield(2). Where there is one thread a processor this may return at once.
    fn yield_now(&self) {
        missing("Park::yield_now")
    }
}
