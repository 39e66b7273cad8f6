//! Figures for which every process is asked. What has been found out is kept for a while, so that a program that asks for them without end does not
//! have the kernel do nothing else.

use janua_port::{Machine, Nanos};
use janua_rt::Mutex;

/// How long a figure is kept for each thread there is: a process is asked in some ten microseconds.
const EACH: Nanos = 300_000;

/// How long at most. Linux' own figures of memory are that old, too.
const LONGEST: Nanos = 1_000_000_000;

/// A figure, and when it was found out.
#[derive(Default)]
pub struct Sampled<T>(Mutex<Option<(Nanos, T)>>);

impl<T: Copy> Sampled<T> {
    /// The figure, which `find` finds out unless that has been done lately; and when it was found out, monotonic.
    pub fn get(&self, machine: &dyn Machine, find: impl FnOnce() -> T) -> (Nanos, T) {
        self.get_at(machine.clock().monotonic(), machine.accounts().tasks.used(), find)
    }

    fn get_at(&self, now: Nanos, threads: usize, find: impl FnOnce() -> T) -> (Nanos, T) {
        // Held while it is found out: who asks meanwhile gets what comes of that.
        let mut kept = self.0.lock();
        let fresh = EACH.saturating_mul(threads as u64).min(LONGEST);
        let known = *kept;
        match known {
            Some((at, value)) if now.saturating_sub(at) < fresh => (at, value),
            _ => *kept.insert((now, find())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_out_as_seldom_as_there_are_many_to_ask() {
        for (threads, at_most) in [(1, 1000), (100, 34), (1_000_000, 2)] {
            let (figure, mut found) = (Sampled::default(), 0);
            for now in (0..=1_000_000_000).step_by(1_000_000) {
                let (at, value) = figure.get_at(now, threads, || {
                    found += 1;
                    now
                });
                assert!(at == value && now - at < LONGEST.min(EACH * threads as u64), "{now}");
            }
            assert!(found <= at_most + 1 && found > 1, "{found} times for {threads}");
        }
    }

    #[test]
    fn one_that_was_found_out_since_the_clock_was_read_counts() {
        let figure = Sampled::default();
        assert_eq!(figure.get_at(2_000_000, 1, || 'a'), (2_000_000, 'a'));
        assert_eq!(figure.get_at(1_000_000, 1, || 'b'), (2_000_000, 'a'));
        assert_eq!(figure.get_at(2_300_000, 1, || 'c'), (2_300_000, 'c'));
        assert_eq!(figure.get_at(2_300_000, 0, || 'd'), (2_300_000, 'd'));
    }
}
