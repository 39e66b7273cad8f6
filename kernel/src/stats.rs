//! `--stats`: calls by number, with time, errors and gate.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters of one call.
#[derive(Default)]
pub struct Counter {
    pub calls: AtomicU64,
    pub errors: AtomicU64,
    /// Nanoseconds between entry and result, waiting included.
    pub nanos: AtomicU64,
}

/// Gates that can be told apart.
pub const GATES: usize = 16;

/// The counters of a kernel.
pub struct Stats {
    on: AtomicBool,
    calls: Box<[Counter]>,
    gates: [AtomicU64; GATES],
}

impl Stats {
    /// Counters for numbers below `numbers`, off.
    pub fn new(numbers: usize) -> Stats {
        Stats {
            on: AtomicBool::new(false),
            calls: (0..numbers).map(|_| Counter::default()).collect(),
            gates: Default::default(),
        }
    }

    pub fn turn_on(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, number: usize, gate: u8, nanos: u64, result: isize) {
        let Some(counter) = self.calls.get(number) else { return };
        counter.calls.fetch_add(1, Ordering::Relaxed);
        counter.nanos.fetch_add(nanos, Ordering::Relaxed);
        if (-4095..0).contains(&result) {
            counter.errors.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(gate) = self.gates.get(usize::from(gate)) {
            gate.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn call(&self, number: usize) -> Option<&Counter> {
        self.calls.get(number)
    }

    /// Calls that came by each gate.
    pub fn gate(&self, gate: usize) -> u64 {
        self.gates.get(gate).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}
