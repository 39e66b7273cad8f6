//! Timers that make something happen: what is due, and when the next will be.
//!
//! The machine's service loop calls [`Timers::run`] and sleeps until the time it returns; a timer set to an earlier time wakes it
//! ([`janua_port::Machine::wake_service`]). A target keeps its own truth: a notice too early or too often changes nothing.
//!
//! Lock order: a target's own lock, then `queue`; targets are notified with no lock held.

use alloc::collections::BTreeMap;
use alloc::sync::Weak;
use alloc::vec::Vec;
use core::ops::Bound;

use janua_port::Nanos;
use janua_rt::Mutex;

use super::{interval, posix};
use crate::{Kernel, Task};

/// Time between looks at the processor time of a process with a timer on it: Linux looks at each tick, mostly 250 a second.
pub const SAMPLE: Nanos = 4_000_000;

/// A timer that is set to expire this soon is not worth a sleep of the service: its wake-up takes longer. Who sets it looks at the
/// clock until its time has come, so that its signal is there when the call returns, as it practically is on Linux.
const AT_HAND: Nanos = 15_000;

/// Whether a timer that expires at `at` is waited for by who sets it, at `now`.
pub fn is_at_hand(now: Nanos, at: Nanos) -> bool {
    at.saturating_sub(now) <= AT_HAND
}

/// Waits for a time that is at hand.
pub fn wait_until(kernel: &Kernel, at: Nanos) {
    while kernel.machine.clock().monotonic() < at {
        core::hint::spin_loop();
    }
}

/// Whose timer it is.
#[derive(Clone)]
pub enum Target {
    /// ITIMER_REAL of a process.
    Real(Weak<Task>),
    /// A POSIX timer of a process, by id.
    Posix(Weak<Task>, i32),
    /// A process whose processor time is watched.
    Cpu(Weak<Task>),
    /// What a thread has under way by rings.
    Ring(Weak<crate::uring::Issuer>),
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    at: Nanos,
    number: u64,
}

#[derive(Default)]
struct Queue {
    entries: BTreeMap<Key, Target>,
    next_number: u64,
}

/// The timers of a kernel.
#[derive(Default)]
pub struct Timers {
    queue: Mutex<Queue>,
}

impl Timers {
    /// Notifies `target` at `at` (monotonic), once.
    pub fn add(&self, kernel: &Kernel, at: Nanos, target: Target) -> Key {
        let (key, earliest) = {
            let mut queue = self.queue.lock();
            let key = Key { at, number: queue.next_number };
            queue.next_number += 1;
            let earliest = queue.entries.first_key_value().is_none_or(|(first, _)| at < first.at);
            queue.entries.insert(key, target);
            (key, earliest)
        };
        if earliest {
            kernel.machine.wake_service();
        }
        key
    }

    /// All that is set, by time (monotonic), each with a number of its own and what Linux calls what it does.
    pub fn list(&self) -> Vec<(Nanos, u64, &'static str)> {
        let name = |target: &Target| match target {
            Target::Real(_) => "it_real_fn",
            Target::Posix(..) => "posix_timer_fn",
            Target::Cpu(_) => "run_posix_cpu_timers",
            Target::Ring(_) => "io_timeout_fn",
        };
        self.queue.lock().entries.iter().map(|(key, target)| (key.at, key.number, name(target))).collect()
    }

    /// Forgets an entry; its target may have been notified already.
    pub fn cancel(&self, key: Key) {
        let target = self.queue.lock().entries.remove(&key);
        drop(target);
    }

    /// Notifies the targets whose time has come, and returns when to call again; `None` is not before one is added. What is added
    /// meanwhile waits for the next call, due or not: the service has other duties than a timer that is always due.
    pub fn run(&self, kernel: &Kernel) -> Option<Nanos> {
        let now = kernel.machine.clock().monotonic();
        let end = self.queue.lock().next_number;
        let mut last = Bound::Unbounded;
        while let Some((key, due)) = self.take_due((last, Bound::Included(Key { at: now, number: end })), end) {
            last = Bound::Excluded(key);
            match due {
                Target::Real(task) => with(&task, interval::real_expired),
                Target::Posix(task, id) => with(&task, |task| posix::expired(task, id)),
                Target::Cpu(task) => with(&task, interval::sample),
                Target::Ring(issuer) => {
                    issuer.upgrade().inspect(|issuer| issuer.time_has_come());
                }
            }
        }
        self.queue.lock().entries.first_key_value().map(|(first, _)| first.at)
    }

    /// Takes the first entry within `range` that was added before the number `end` was given out.
    fn take_due(&self, range: (Bound<Key>, Bound<Key>), end: u64) -> Option<(Key, Target)> {
        let mut queue = self.queue.lock();
        let key = *queue.entries.range(range).find(|(key, _)| key.number < end)?.0;
        queue.entries.remove(&key).map(|target| (key, target))
    }
}

fn with(task: &Weak<Task>, to: impl FnOnce(&alloc::sync::Arc<Task>)) {
    if let Some(task) = task.upgrade().filter(|task| task.ended().is_none()) {
        to(&task);
    }
}
