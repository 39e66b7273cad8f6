//! How a thread waits in the kernel: it spins for a while, then sleeps.
//!
//! A waker that finds the thread still looking needs no host call and the thread is on its way at once, where sleeping and waking
//! cost two host calls and, most often, an idle core's wake-up: ten microseconds and more. But a thread that spins in vain has burnt
//! a core, perhaps the one its waker needs. So success decides: after a look in vain the thread sleeps at once the next few times,
//! twice as often with each failure, and one success forgives all. No more threads spin than there are cores, and on one core
//! none does: the waker could not run.

use core::sync::atomic::{AtomicU32, Ordering};

use janua_entry::hosted::Shared;
use janua_port::drive::{self, QUIET};
use janua_port::{Clock, Nanos};

use crate::clock::HostClock;
use crate::machine;
use crate::spawn::Hosted;

/// Longest look, nanoseconds: about what a sleep and a wake-up cost.
const MOST: Nanos = 15_000;
/// Looks between two readings of the clock.
const LOOKS: u32 = 16;

/// Threads that spin now.
static LOOKING: AtomicU32 = AtomicU32::new(0);

/// What a thread remembers of its looks: how many waits it still sleeps through at once, and the failures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    rest: u16,
    failures: u16,
}

impl Record {
    /// Failures after which a thread looks at one wait in 256 only.
    const MOST_FAILURES: u16 = 8;
    /// A new thread has proved nothing yet.
    pub const NEW: Record = Record { rest: 2, failures: 1 };
    /// The same where a look in vain costs more: most of those that are new end soon.
    pub const DOUBTED: Record = Record { rest: 15, failures: 4 };
    /// After a success.
    pub const PROVEN: Record = Record { rest: 0, failures: 0 };

    /// So many waits are slept through.
    pub const fn resting(rest: u16) -> Record {
        Record { rest, failures: Record::DOUBTED.failures }
    }

    /// Whether this wait is one to be slept through.
    pub fn rests(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        rests
    }

    /// Whether the next wait is one to be slept through.
    pub fn will_rest(&self) -> bool {
        self.rest > 0
    }

    /// A wait was slept through that turned out short: a look may be worth it sooner.
    #[must_use]
    pub fn hopeful(self) -> Record {
        Record { rest: self.rest - self.rest / 16, ..self }
    }

    /// After a look in vain.
    #[must_use]
    pub fn failed(self) -> Record {
        let failures = (self.failures + 1).min(Record::MOST_FAILURES);
        Record { rest: (1 << failures) - 1, failures }
    }

    fn load(word: &AtomicU32) -> Record {
        let word = word.load(Ordering::Relaxed);
        Record { rest: word as u16, failures: (word >> 16) as u16 }
    }

    fn store(self, word: &AtomicU32) {
        word.store(u32::from(self.rest) | u32::from(self.failures) << 16, Ordering::Relaxed);
    }
}

/// Prepares the area of a new thread.
pub fn start(this: &Shared) {
    Record::NEW.store(&this.idle);
}

/// Waits until the word is no longer quiet, until `deadline` (monotonic), or shorter.
pub fn wait(carrier: &mut Hosted<'_>, word: &AtomicU32, deadline: Option<Nanos>) {
    let idle = carrier.idle;
    if word.load(Ordering::Relaxed) != QUIET {
        return;
    }
    let cores = machine::get().cores() as u32;
    let record = Record::load(idle);
    if cores == 1 || record.rest > 0 {
        Record { rest: record.rest.saturating_sub(1), ..record }.store(idle);
    } else {
        let woken = look(word, cores, deadline);
        if woken { Record::PROVEN } else { record.failed() }.store(idle);
        if woken {
            return;
        }
    }
    drive::park(carrier, word, deadline);
}

/// [`janua_port::Park::spin`]: whether the word changed.
pub fn spin(word: &AtomicU32, expected: u32, limit: Nanos) -> bool {
    let cores = machine::get().cores() as u32;
    cores > 1 && look_for(word, expected, cores, limit, None)
}

/// Spins: whether the word changed.
fn look(word: &AtomicU32, cores: u32, deadline: Option<Nanos>) -> bool {
    look_for(word, QUIET, cores, MOST, deadline)
}

fn look_for(word: &AtomicU32, expected: u32, cores: u32, limit: Nanos, deadline: Option<Nanos>) -> bool {
    let mut end = None;
    let mut woken = LOOKING.fetch_add(1, Ordering::Relaxed) < cores;
    while woken {
        if (0..LOOKS).any(|_| {
            core::hint::spin_loop();
            word.load(Ordering::Relaxed) != expected
        }) {
            break;
        }
        // The first few looks need no clock.
        let now = HostClock.monotonic();
        woken = now < *end.get_or_insert((now + limit).min(deadline.unwrap_or(Nanos::MAX)));
    }
    LOOKING.fetch_sub(1, Ordering::Relaxed);
    woken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_make_looks_rare() {
        let mut record = Record::NEW;
        for _ in 0..20 {
            record = record.failed();
        }
        assert_eq!(record, Record { rest: 255, failures: 8 });
        let word = AtomicU32::new(0);
        record.store(&word);
        assert_eq!(Record::load(&word), record);
    }
}
