//! The free ranges between many mappings, by size, so that a place for a new mapping is found without a walk over the others.
//!
//! A list of mappings has this only while it is long ([`super::list::VmaList`]). Ranges are in classes by size; whatever is
//! in a class above that of a length holds it. Within the length's own class the ranges differ by less than an eighth of their size, or
//! not at all below [`EXACT`] pages, so few that are too small are passed over.

use alloc::collections::BTreeMap;

use janua_abi::linux::mman::PAGE_SIZE;

/// Ranges of fewer pages have a class for each number of pages.
const EXACT: usize = 16;
/// Classes between one power of two and the next.
const STEPS: u32 = 8;

/// Free ranges: none is empty, and none touches another.
#[derive(Default)]
pub(super) struct Free {
    /// First address behind the range, by its start.
    by_start: BTreeMap<usize, usize>,
    /// The same, by class and start.
    by_size: BTreeMap<(u32, usize), usize>,
}

/// The class of a range of `len` bytes. It never falls as `len` grows.
fn class(len: usize) -> u32 {
    let pages = len / PAGE_SIZE;
    if pages < EXACT {
        return pages as u32;
    }
    let power = pages.ilog2();
    let step = (pages >> (power - STEPS.ilog2())) as u32 % STEPS;
    EXACT as u32 + (power - EXACT.ilog2()) * STEPS + step
}

impl Free {
    pub(super) fn add(&mut self, start: usize, end: usize) {
        if start < end {
            self.by_start.insert(start, end);
            self.by_size.insert((class(end - start), start), end);
        }
    }

    /// Forgets the ranges that start in `from..to`.
    pub(super) fn forget(&mut self, from: usize, to: usize) {
        while let Some((&start, &end)) = self.by_start.range(from..to).next() {
            self.by_start.remove(&start);
            self.by_size.remove(&(class(end - start), start));
        }
    }

    /// The highest place in `low..high` that `fit` finds for `len` bytes in a free range, of which it is given start and end.
    pub(super) fn highest(
        &self,
        low: usize,
        high: usize,
        len: usize,
        fit: impl Fn(usize, usize) -> Option<usize>,
    ) -> Option<usize> {
        let mut best = None;
        let mut next = class(len);
        while let Some((&(class, _), _)) = self.by_size.range((next, 0)..).next() {
            for (&(_, start), &end) in self.by_size.range((class, 0)..(class, high)).rev() {
                if end <= best.unwrap_or(low) {
                    break;
                }
                let place = fit(start.max(low), end.min(high));
                best = best.max(place);
                if place.is_some() {
                    break;
                }
            }
            next = class + 1;
        }
        best
    }

    /// The lowest such place.
    pub(super) fn lowest(
        &self,
        low: usize,
        high: usize,
        len: usize,
        fit: impl Fn(usize, usize) -> Option<usize>,
    ) -> Option<usize> {
        let across = self.by_start.range(..low).next_back();
        if let Some(place) = across.and_then(|(_, &end)| fit(low, end.min(high))) {
            return Some(place);
        }
        let mut best: Option<usize> = None;
        let mut next = class(len);
        while let Some((&(class, _), _)) = self.by_size.range((next, 0)..).next() {
            let below = best.unwrap_or(high).max(low);
            let mut places =
                self.by_size.range((class, low)..(class, below)).filter_map(|(&(_, start), &end)| fit(start, end.min(high)));
            best = places.next().into_iter().chain(best).min();
            next = class + 1;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_rise() {
        let lens = (1..5000).map(|pages| pages * PAGE_SIZE).chain((26..47).map(|bits| 1 << bits));
        let classes: alloc::vec::Vec<u32> = lens.map(class).collect();
        assert!(classes.is_sorted(), "{classes:?}");
        assert_eq!(class(15 * PAGE_SIZE) + 1, class(16 * PAGE_SIZE));
        assert_eq!(class(31 * PAGE_SIZE) + 1, class(32 * PAGE_SIZE));
    }
}
