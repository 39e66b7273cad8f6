//! A thread's share of a core: its run time, counted faster or slower by its nice value. Of the threads in a queue the one with the least
//! is next.
//!
//! Run times of two threads compare on one core only: each core has a floor, the run time of the thread it chose last, and a
//! thread that comes to another core keeps its distance from the floor. The distance is bounded: who slept gets at most one turn ahead of
//! the others, and who ran alone owes them at most two of its own.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use janua_port::Nanos;

use crate::sched::SLICE;

/// What counts for nice value 0: time as it is.
const ONE: u64 = 1 << 16;
/// Nice values from the lowest, and how many there are.
const LOWEST: i32 = -20;
const NICES: usize = 40;
/// How much faster than [`ONE`] run time counts: a step is a quarter (sched(7)).
const RATES: [u32; NICES] = rates();

const fn rates() -> [u32; NICES] {
    let zero = LOWEST.unsigned_abs() as usize;
    let mut rates = [ONE as u32; NICES];
    let mut step = 1;
    while step <= zero {
        rates[zero - step] = (rates[zero - step + 1] as u64 * 4 / 5) as u32;
        if zero + step < NICES {
            rates[zero + step] = (rates[zero + step - 1] as u64 * 5 / 4) as u32;
        }
        step += 1;
    }
    rates
}

/// Run time at a time beyond this counts no more: a thread that ran so long owes the most there is anyway.
const LONGEST: Nanos = 1 << 36;

/// A thread's run time. Written where the thread begins and ends to run, or is put into a queue.
pub struct Share {
    time: AtomicU64,
    rate: AtomicU32,
}

impl Share {
    #[allow(clippy::new_without_default, reason = "used in statics")]
    pub const fn new() -> Share {
        Share { time: AtomicU64::new(0), rate: AtomicU32::new(ONE as u32) }
    }

    /// As another's, which is on a core whose floor the new one's core had too.
    pub fn inherit(&self, from: &Share) {
        self.time.store(from.time.load(Ordering::Relaxed), Ordering::Relaxed);
        self.rate.store(from.rate.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Sets how fast its time counts from its next run on.
    pub fn set_nice(&self, nice: i32) {
        let index = usize::try_from(nice - LOWEST).unwrap_or(0).min(NICES - 1);
        self.rate.store(RATES[index], Ordering::Relaxed);
    }

    fn scaled(&self, time: Nanos) -> u64 {
        time.min(LONGEST).saturating_mul(self.rate.load(Ordering::Relaxed).into()) / ONE
    }

    /// It has run.
    pub fn add(&self, time: Nanos) {
        self.time.fetch_add(self.scaled(time), Ordering::Relaxed);
    }

    /// Its run time, with what it has run and is not yet counted there.
    pub fn with(&self, time: Nanos) -> u64 {
        self.time.load(Ordering::Relaxed) + self.scaled(time)
    }

    /// It comes from a core with the first floor to one with the second; the same when it stays. Returns its run time there.
    pub fn move_to(&self, from: u64, to: u64) -> u64 {
        let time = self.time.load(Ordering::Relaxed);
        let time = if time >= from {
            to + (time - from).min(2 * self.scaled(SLICE))
        } else {
            to.saturating_sub((from - time).min(SLICE))
        };
        self.time.store(time, Ordering::Relaxed);
        time
    }
}
