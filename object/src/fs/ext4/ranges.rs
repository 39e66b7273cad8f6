//! Sets of numbers as ranges: which pages of a file are in memory, and which of them changed.

use alloc::collections::BTreeMap;
use core::ops::Range;

/// A set of numbers. Ranges that touch are joined.
#[derive(Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub const fn new() -> Ranges {
        Ranges(BTreeMap::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many numbers are in the set.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    pub fn insert(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        while let Some((&s, &e)) = self.0.range(..=end).next_back().filter(|(_, e)| **e >= start) {
            start = start.min(s);
            end = end.max(e);
            self.0.remove(&s);
        }
        self.0.insert(start, end);
    }

    pub fn remove(&mut self, range: Range<u64>) {
        if range.start >= range.end {
            return;
        }
        while let Some((&s, &e)) = self.0.range(..range.end).next_back().filter(|(_, e)| **e > range.start) {
            self.0.remove(&s);
            if s < range.start {
                self.0.insert(s, range.start);
            }
            if e > range.end {
                self.0.insert(range.end, e);
            }
        }
    }

    /// The first run of numbers of `range` that are in the set.
    pub fn first_in(&self, range: Range<u64>) -> Option<Range<u64>> {
        let before = self.0.range(..=range.start).next_back().filter(|(_, e)| **e > range.start);
        let (&s, &e) = before.or_else(|| self.0.range(range.start..range.end).next())?;
        let found = s.max(range.start)..e.min(range.end);
        (!found.is_empty()).then_some(found)
    }

    /// The first run of numbers of `range` that are not in the set.
    pub fn first_gap(&self, range: Range<u64>) -> Option<Range<u64>> {
        let start = match self.0.range(..=range.start).next_back() {
            Some((_, &end)) => range.start.max(end),
            None => range.start,
        };
        if start >= range.end {
            return None;
        }
        let end = self.0.range(start..).next().map_or(range.end, |(&next, _)| next.min(range.end));
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::random;

    #[test]
    fn behaves_as_a_set() {
        // Against a plain table of bits.
        let mut ranges = Ranges::new();
        let mut model = [false; 64];
        let mut next = random::numbers(random::given().unwrap_or(0), 0);
        for _ in 0..random::rounds(5000) {
            let (a, b) = (next(64), next(65));
            let put = next(2) == 0;
            if put {
                ranges.insert(a..b);
            } else {
                ranges.remove(a..b);
            }
            if a < b {
                model[a as usize..b as usize].fill(put);
            }
            assert_eq!(ranges.count(), model.iter().filter(|bit| **bit).count() as u64);
            let (from, to) = (next(64), 64);
            let run = |want: bool| {
                let start = (from..to).find(|at| model[*at as usize] == want)?;
                let end = (start..to).find(|at| model[*at as usize] != want).unwrap_or(to);
                Some(start..end)
            };
            assert_eq!(ranges.first_in(from..to), run(true));
            assert_eq!(ranges.first_gap(from..to), run(false));
        }
        let joined: Vec<_> = ranges.0.iter().collect();
        assert!(joined.windows(2).all(|pair| pair[0].1 < pair[1].0), "neighbours are joined");
    }
}
