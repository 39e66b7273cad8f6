//! How the kernel's thread waits for its guest's next call: it spins for a while, then sleeps.
//!
//! As [`janua_platform_linux::idle`], with which it shares how success decides. Here who looks and whom it looks at run at the same time, so it is done
//! only while each of the two has a processor: there are never more guests that run and threads that look than there are processors.

use core::sync::atomic::{AtomicU32, Ordering};

use janua_platform_linux::clock::HostClock;
use janua_platform_linux::idle::Record;
use janua_platform_linux::machine;
use janua_port::{Clock, Nanos};

/// Longest look, nanoseconds: about what it costs when the guest stops and the kernel's thread is woken.
const MOST: Nanos = 50_000;
/// The same once the guest has been moved to another processor, which has to be woken for it.
const MOST_APART: Nanos = 250_000;
/// Stops that are slept through after the first of those in vain, twice as many with each that follows, and how many at most.
const FIRST_REST: u16 = 31;
const MOST_REST: u16 = 1023;
/// What a guest's other stops cost while it is on another processor, which sleeps meanwhile, in calls that a look has saved a stop; with how many of those
/// in debt it begins, and how much is remembered either way.
const STOP: i16 = 12;
const DEBT: i16 = 16;
const MEMORY: i16 = 64;
/// Looks between two readings of the clock.
const TURNS: u32 = 64;

/// Host threads of guests that run user code or look for an answer, and threads of the kernel's that serve them without sleeping.
static RUNNING: AtomicU32 = AtomicU32::new(0);
static LOOKING: AtomicU32 = AtomicU32::new(0);

/// What a thread of the kernel's knows of its spinning.
pub struct Looks {
    record: Record,
    /// It is among [`RUNNING`] and [`LOOKING`].
    runs: bool,
    looks: bool,
    /// The guest has been moved for the look that is under way.
    apart: bool,
    /// Stops that were slept through after the last of those, if it was in vain.
    rest: u16,
    /// How many more calls than other stops there have been, by their weight: below 0 looks do not pay.
    worth: i16,
    /// Since when it runs, and when the look that is under way ends at the latest; 0 before that is known.
    since: Nanos,
    end: Nanos,
}

impl Looks {
    pub const NEW: Looks =
        Looks { record: Record::DOUBTED, runs: false, looks: false, apart: false, rest: 0, worth: -DEBT, since: 0, end: 0 };

    /// The guest runs from now on.
    pub fn begins(&mut self) {
        (self.runs, self.since) = (true, HostClock.monotonic());
        RUNNING.fetch_add(1, Ordering::Relaxed);
    }

    /// It begins on another processor than the caller's.
    pub fn moves(&mut self) {
        self.apart = true;
    }

    /// The guest has stopped.
    pub fn ends(&mut self) {
        if core::mem::take(&mut self.runs) {
            RUNNING.fetch_sub(1, Ordering::Relaxed);
        }
        self.apart = false;
        self.stop();
    }

    fn is_crowded(cores: usize) -> bool {
        RUNNING.load(Ordering::Relaxed) + LOOKING.load(Ordering::Relaxed) > cores as u32
    }

    /// Whether the next [`Looks::begin`] most likely has the thread spin.
    pub fn is_likely(&self) -> bool {
        let cores = machine::get().cores();
        cores > 1 && self.worth >= 0 && !self.record.will_rest() && !Looks::is_crowded(cores)
    }

    /// Whether the thread is to spin; if it does so already, whether it may go on.
    pub fn begin(&mut self) -> bool {
        let cores = machine::get().cores();
        self.end = 0;
        if cores == 1 {
            return false;
        }
        if !self.looks {
            if self.record.rests() || self.worth < 0 {
                return false;
            }
            self.looks = true;
            LOOKING.fetch_add(1, Ordering::Relaxed);
        }
        if Looks::is_crowded(cores) {
            self.stop();
        }
        self.looks
    }

    /// The guest has stopped for a call that nobody has looked for.
    pub fn missed(&mut self) {
        self.worth = (self.worth + 1).min(MEMORY);
        // The stop is part of that time.
        if self.rest == 0 && HostClock.monotonic().saturating_sub(self.since) < 2 * MOST {
            self.record = self.record.hopeful();
        }
    }

    /// The guest has stopped for something else, which no look would have found: a fault most likely.
    pub fn disturbed(&mut self) {
        self.worth = (self.worth - STOP).max(-MEMORY);
    }

    /// It does not look any more.
    pub fn stop(&mut self) {
        if core::mem::take(&mut self.looks) {
            LOOKING.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Spins for a moment: whether there is what was to come.
    #[inline]
    pub fn turns(&mut self, has_come: impl Fn() -> bool) -> bool {
        for _ in 0..TURNS {
            if has_come() {
                self.record = Record::PROVEN;
                self.worth = (self.worth + 1).min(MEMORY);
                (self.apart, self.rest) = (false, 0);
                return true;
            }
            core::hint::spin_loop();
        }
        false
    }

    /// Whether it has looked for long enough, or is in the way.
    pub fn is_over(&mut self) -> bool {
        let now = HostClock.monotonic();
        if self.end == 0 {
            self.end = now + if self.apart { MOST_APART } else { MOST };
        }
        let crowded = Looks::is_crowded(machine::get().cores());
        if !crowded && now < self.end {
            return false;
        }
        if core::mem::take(&mut self.apart) {
            // The other processors have something else to do, it seems: the next try is far off.
            self.rest = (2 * self.rest + 1).clamp(FIRST_REST, MOST_REST);
            self.record = Record::resting(self.rest);
        } else if !crowded {
            // What has spun in vain once calls no longer for a while, most likely.
            self.record = if self.record == Record::PROVEN { Record::DOUBTED } else { self.record.failed() };
        }
        self.stop();
        true
    }
}
