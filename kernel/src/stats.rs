//! `--stats`: calls by number, with time, errors and gate.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_port::GateId;
use janua_port::outside::Calls;
use janua_rt::AtomicU64;

use crate::table::Row;
use crate::task::Personality;

/// Counters of one call.
#[derive(Default)]
pub struct Counter {
    pub calls: AtomicU64,
    pub errors: AtomicU64,
    /// Nanoseconds between entry and result, waiting included.
    pub nanos: AtomicU64,
}

/// The counters of a kernel.
pub struct Stats {
    on: AtomicBool,
    calls: Box<[Counter]>,
    /// Those of the second ABI.
    compat: Box<[Counter]>,
    /// By the gates' numbers; 0 is for calls that came by none.
    gates: [AtomicU64; GateId::ALL.len() + 1],
}

impl Stats {
    /// Counters for numbers below `numbers`, and below `compat` in the second ABI; off.
    pub fn new(numbers: usize, compat: usize) -> Stats {
        let counters = |count| (0..count).map(|_| Counter::default()).collect();
        Stats { on: AtomicBool::new(false), calls: counters(numbers), compat: counters(compat), gates: Default::default() }
    }

    pub fn turn_on(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, compat: bool, number: usize, gate: u8, nanos: u64, result: isize) {
        let calls = if compat { &self.compat } else { &self.calls };
        let Some(counter) = calls.get(number) else { return };
        counter.calls.fetch_add(1, Ordering::Relaxed);
        counter.nanos.fetch_add(nanos, Ordering::Relaxed);
        if (-4095..0).contains(&result) {
            counter.errors.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(gate) = self.gates.get(usize::from(gate)) {
            gate.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All calls so far, the failed ones, and the nanoseconds they took. `None` while they are not counted.
    pub fn totals(&self) -> Option<Calls> {
        let add = |sum: Calls, counter: &Counter| Calls {
            made: sum.made + counter.calls.load(Ordering::Relaxed),
            failed: sum.failed + counter.errors.load(Ordering::Relaxed),
            nanos: sum.nanos + counter.nanos.load(Ordering::Relaxed),
        };
        self.is_on().then(|| self.calls.iter().chain(&self.compat).fold(Calls::default(), add))
    }

    /// The table printed at the end, most time first.
    pub fn report<P: Personality>(&self, rows: &[Row<P>], compat: &[Row<P>]) -> String {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let mut counted: Vec<(&str, u64, u64, u64)> = rows
            .iter()
            .zip(&self.calls)
            .chain(compat.iter().zip(&self.compat))
            .map(|(row, counter)| (row.name, read(&counter.nanos), read(&counter.calls), read(&counter.errors)))
            .filter(|(_, _, calls, _)| *calls > 0)
            .collect();
        counted.sort_by_key(|(name, nanos, ..)| (core::cmp::Reverse(*nanos), *name));
        let (nanos, calls, errors) =
            counted.iter().fold((0, 0, 0), |(n, c, e), (_, nanos, calls, errors)| (n + nanos, c + calls, e + errors));
        let mut text = String::from("% time     seconds  usecs/call     calls    errors  call\n");
        for (name, nanos, calls, errors) in counted.iter().copied().chain([("total", nanos, calls, errors)]) {
            let part = (nanos * 1000).checked_div(counted.iter().map(|row| row.1).sum()).unwrap_or(0);
            let each = nanos.checked_div(calls).unwrap_or(0);
            let _ = writeln!(
                text,
                "{:>4}.{} {:>4}.{:06} {:>7}.{:03} {calls:>9} {errors:>9}  {name}",
                part / 10,
                part % 10,
                nanos / 1_000_000_000,
                nanos / 1000 % 1_000_000,
                each / 1000,
                each % 1000,
            );
        }
        self.report_gates(&mut text);
        text
    }

    /// A line for each gate by which calls have come.
    fn report_gates(&self, text: &mut String) {
        for (gate, count) in self.gates.iter().enumerate().map(|(gate, count)| (gate as u8, count.load(Ordering::Relaxed))) {
            if count > 0 {
                let _ = writeln!(text, "{count} calls by the gate {}", GateId::from_number(gate).map_or("none", GateId::name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_is_counted() {
        let stats = Stats::new(1, 0);
        for gate in GateId::ALL {
            (0..=gate.number()).for_each(|_| stats.count(false, 0, gate.number(), 1, 0));
        }
        let mut text = String::new();
        stats.report_gates(&mut text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), GateId::ALL.len());
        for gate in GateId::ALL {
            let line = alloc::format!("{} calls by the gate {}", gate.number() + 1, gate.name());
            assert!(lines.contains(&line.as_str()), "{line}: {text}");
        }
    }
}
