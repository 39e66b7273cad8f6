//! The list of mappings: ordered, without overlaps, neighbours that continue each other merged.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use janua_port::PAGE;

use super::free::Free;
use super::vma::{VmFlags, Vma};

/// Free space kept below a mapping that grows down.
pub const GUARD_GAP: usize = 256 * PAGE;

/// Mappings by start.
#[derive(Default)]
pub struct VmaList {
    map: BTreeMap<usize, Vma>,
    /// Bytes of those that are charged for.
    charged: usize,
    /// Bytes of all, and the most that was.
    mapped: usize,
    peak: usize,
    /// What is free between them: from the first search that passes [`MANY`] mappings on, until [`FEW`] are left.
    free: Option<Box<Free>>,
}

/// So many mappings are looked at one by one when a free range is searched for.
const MANY: usize = 64;
/// With fewer mappings than this it is not worth knowing what is free.
const FEW: usize = 32;

/// A page table of 4 KiB maps 2 MiB.
const TABLE_SHARE: usize = 512;
/// A mapping by itself needs a table of the lowest level and one of the next.
const TABLES_EACH: usize = 2 * PAGE;

/// Bytes to be charged for a mapping at `start`.
fn charge(start: usize, vma: &Vma) -> usize {
    if vma.flags.contains(VmFlags::CHARGED) { vma.end - start } else { 0 }
}

impl VmaList {
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Vma)> {
        self.map.iter().map(|(&start, vma)| (start, vma))
    }

    /// Bytes of mappings that are charged for.
    pub fn charged(&self) -> usize {
        self.charged
    }

    /// Bytes of page tables that the mappings may need, about. What cannot be accessed now counts too: tables stay when rights go.
    pub fn tables(&self) -> usize {
        self.mapped / TABLE_SHARE + self.map.len() * TABLES_EACH
    }

    /// The most bytes that were mapped at once.
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// The mapping that holds `addr`.
    pub fn find(&self, addr: usize) -> Option<(usize, &Vma)> {
        let (&start, vma) = self.map.range(..=addr).next_back()?;
        (addr < vma.end).then_some((start, vma))
    }

    /// The first mapping that starts at or above `addr`.
    pub fn above(&self, addr: usize) -> Option<(usize, &Vma)> {
        self.map.range(addr..).next().map(|(&start, vma)| (start, vma))
    }

    /// Mappings that touch `start..end`, in order.
    pub fn touching(&self, start: usize, end: usize) -> impl Iterator<Item = (usize, &Vma)> {
        let first = self.find(start).map_or(start, |(first, _)| first);
        self.map.range(first..end.max(first)).map(|(&start, vma)| (start, vma))
    }

    /// Whether nothing is mapped in `start..end`.
    pub fn is_free(&self, start: usize, end: usize) -> bool {
        self.touching(start, end).next().is_none()
    }

    /// Whether every page of `start..end` is mapped.
    pub fn is_covered(&self, start: usize, end: usize) -> bool {
        let mut at = start;
        for (begin, vma) in self.touching(start, end) {
            if begin > at {
                return false;
            }
            at = vma.end;
        }
        at >= end
    }

    /// Bytes of `start..end` in mappings that `which` picks.
    pub fn bytes(&self, start: usize, end: usize, which: impl Fn(&Vma) -> bool) -> usize {
        self.touching(start, end).filter(|(_, vma)| which(vma)).map(|(begin, vma)| vma.end.min(end) - begin.max(start)).sum()
    }

    /// Adds a mapping in free space.
    pub fn insert(&mut self, start: usize, vma: Vma) {
        let end = vma.end;
        self.charged += charge(start, &vma);
        self.mapped += end - start;
        self.peak = self.peak.max(self.mapped);
        let before = self.map.range_mut(..start).next_back();
        let at = match before {
            Some((&before, below)) if below.end == start && below.continues(before, &vma) => {
                below.end = end;
                before
            }
            _ => {
                self.map.insert(start, vma);
                start
            }
        };
        self.join(at, end);
        self.freed(start, end);
    }

    /// Takes out `start..end`, splitting what crosses the ends: the pieces.
    pub fn remove(&mut self, start: usize, end: usize) -> Vec<(usize, Vma)> {
        let removed = match self.remove_last(start, end) {
            Some(piece) => vec![(start, piece)],
            None => self.remove_all(start, end),
        };
        for (start, vma) in &removed {
            self.charged -= charge(*start, vma);
            self.mapped -= vma.end - start;
        }
        if self.map.len() < FEW {
            self.free = None;
        }
        self.freed(start, end);
        removed
    }

    /// Takes out `start..end` if that is the end of one mapping or all of it.
    fn remove_last(&mut self, start: usize, end: usize) -> Option<Vma> {
        let (&begin, vma) = self.map.range_mut(..=start).next_back().filter(|(_, vma)| start < end && vma.end == end)?;
        if begin == start {
            return self.map.remove(&start);
        }
        let upper = vma.upper(begin, start);
        vma.end = start;
        Some(upper)
    }

    fn remove_all(&mut self, start: usize, end: usize) -> Vec<(usize, Vma)> {
        self.split(start);
        self.split(end);
        let mut removed = Vec::new();
        while let Some((&key, _)) = self.map.range(start..end.max(start)).next() {
            removed.extend(self.map.remove(&key).map(|vma| (key, vma)));
        }
        removed
    }

    /// Joins the mapping at `at`, which ends at `end`, with the one behind it if that continues it.
    fn join(&mut self, at: usize, end: usize) {
        let next_end = match (self.map.get(&end), self.map.get(&at)) {
            (Some(next), Some(vma)) if vma.continues(at, next) => next.end,
            _ => return,
        };
        self.map.remove(&end);
        if let Some(vma) = self.map.get_mut(&at) {
            vma.end = next_end;
        }
    }

    /// What is mapped in `start..end` has changed: enters the free ranges from the mapping below to the one above.
    fn freed(&mut self, start: usize, end: usize) {
        let Some(free) = &mut self.free else { return };
        let below = self.map.range(..start).next_back().map_or(0, |(_, vma)| vma.end);
        let above = self.map.range(end.max(start)..).next();
        let (top, ceiling) = above.map_or((usize::MAX, usize::MAX), |(&start, vma)| (start, guarded(start, vma)));
        free.forget(below.min(start), top);
        let mut floor = below;
        for (&at, vma) in self.map.range(start..end.max(start)) {
            free.add(floor, guarded(at, vma));
            floor = vma.end;
        }
        free.add(floor, ceiling);
    }

    /// Changes the mappings of `start..end`, splitting what crosses the ends.
    pub fn change(&mut self, start: usize, end: usize, mut change: impl FnMut(&mut Vma)) {
        self.split(start);
        self.split(end);
        for (&at, vma) in self.map.range_mut(start..end) {
            let before = charge(at, vma);
            change(vma);
            self.charged = self.charged + charge(at, vma) - before;
        }
        self.merge(start, end);
    }

    /// How many mappings more there are after cutting at the ends of `start..end`.
    pub fn cuts(&self, start: usize, end: usize) -> usize {
        let crosses = |addr: usize| self.find(addr).is_some_and(|(begin, _)| begin < addr);
        usize::from(crosses(start)) + usize::from(crosses(end))
    }

    fn split(&mut self, addr: usize) {
        let Some((start, vma)) = self.find(addr) else { return };
        if start == addr {
            return;
        }
        let upper = vma.upper(start, addr);
        if let Some(lower) = self.map.get_mut(&start) {
            lower.end = addr;
        }
        self.map.insert(addr, upper);
    }

    /// Joins neighbours from the one before `start` to the one behind `end`.
    fn merge(&mut self, start: usize, end: usize) {
        let mut at = self.map.range(..start).next_back().map_or(start, |(&before, _)| before);
        while at <= end {
            let Some(vma) = self.map.get(&at) else { return };
            let next_at = vma.end;
            match self.map.get(&next_at) {
                Some(next) if vma.continues(at, next) => {
                    let next_end = next.end;
                    self.map.remove(&next_at);
                    if let Some(vma) = self.map.get_mut(&at) {
                        vma.end = next_end;
                    }
                }
                Some(_) => at = next_at,
                None => match self.map.range(next_at..).next() {
                    Some((&next, _)) => at = next,
                    None => return,
                },
            }
        }
    }

    /// The free ranges, for a search among many mappings.
    fn index(&mut self) -> &Free {
        self.free.get_or_insert_with(|| {
            let mut free = Box::new(Free::default());
            let mut floor = 0;
            for (&start, vma) in &self.map {
                free.add(floor, guarded(start, vma));
                floor = vma.end;
            }
            free.add(floor, usize::MAX);
            free
        })
    }

    /// The highest free range of `len` bytes in `low..high`, aligned.
    pub fn highest_gap(&mut self, low: usize, high: usize, len: usize, align: usize) -> Option<usize> {
        let fit = |floor: usize, ceiling: usize| {
            let at = ceiling.checked_sub(len)? & !(align - 1);
            (at >= floor).then_some(at)
        };
        if self.free.is_none() {
            let mut ceiling = high;
            for (&start, vma) in self.map.range(..high).rev().take(MANY) {
                if vma.end < ceiling
                    && let Some(at) = fit(vma.end.max(low), ceiling)
                {
                    return Some(at);
                }
                ceiling = ceiling.min(guarded(start, vma));
                if ceiling <= low {
                    return None;
                }
            }
            if self.map.len() < MANY {
                return fit(low, ceiling);
            }
        }
        self.index().highest(low, high, len, fit)
    }

    /// The lowest free range of `len` bytes in `low..high`, aligned.
    pub fn lowest_gap(&mut self, low: usize, high: usize, len: usize, align: usize) -> Option<usize> {
        let fit = |floor: usize, ceiling: usize| {
            let at = floor.checked_add(align - 1)? & !(align - 1);
            (at.checked_add(len)? <= ceiling).then_some(at)
        };
        if self.free.is_none() {
            let mut floor = self.find(low).map_or(low, |(_, vma)| vma.end);
            for (&start, vma) in self.map.range(low..high).take(MANY) {
                if let Some(at) = fit(floor, guarded(start, vma).min(high)) {
                    return Some(at);
                }
                floor = floor.max(vma.end);
            }
            if self.map.len() < MANY {
                return fit(floor, high);
            }
        }
        self.index().lowest(low, high, len, fit)
    }
}

fn guarded(start: usize, vma: &Vma) -> usize {
    if vma.flags.contains(VmFlags::GROWSDOWN) { start.saturating_sub(GUARD_GAP) } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::vma::Source;

    fn anon(end: usize) -> Vma {
        Vma {
            end,
            flags: VmFlags::READ | VmFlags::MAY_ALL,
            source: Source::Anon(None),
            offset: 0,
            dev: 0,
            ino: 0,
            charge: None,
        }
    }

    fn spans(list: &VmaList) -> Vec<(usize, usize)> {
        list.iter().map(|(start, vma)| (start, vma.end)).collect()
    }

    #[test]
    fn neighbours_merge_and_split() {
        let mut list = VmaList::default();
        list.insert(0x1000, anon(0x2000));
        list.insert(0x3000, anon(0x4000));
        list.insert(0x2000, anon(0x3000));
        assert_eq!(spans(&list), [(0x1000, 0x4000)]);
        list.change(0x2000, 0x3000, |vma| vma.flags |= VmFlags::WRITE);
        assert_eq!(spans(&list), [(0x1000, 0x2000), (0x2000, 0x3000), (0x3000, 0x4000)]);
        list.change(0x2000, 0x3000, |vma| vma.flags -= VmFlags::WRITE);
        assert_eq!(spans(&list), [(0x1000, 0x4000)]);
        assert_eq!(list.remove(0x1800, 0x2800).len(), 1);
        assert_eq!(spans(&list), [(0x1000, 0x1800), (0x2800, 0x4000)]);
        assert!(list.is_free(0x1800, 0x2800) && !list.is_free(0x1800, 0x2801));
        assert!(list.is_covered(0x2800, 0x4000) && !list.is_covered(0x2700, 0x4000));
    }

    #[test]
    fn page_tables_of_what_is_mapped() {
        let mut list = VmaList::default();
        list.insert(0x1000_0000, anon(0x9000_0000));
        assert_eq!(list.tables(), (0x8000_0000 / 512) + 8192);
        list.remove(0x2000_0000, 0x3000_0000);
        assert_eq!(list.tables(), (0x7000_0000 / 512) + 2 * 8192);
        list.change(0x4000_0000, 0x5000_0000, |vma| vma.flags = VmFlags::MAY_ALL);
        assert_eq!(list.tables(), (0x7000_0000 / 512) + 4 * 8192);
        list.remove(0, 0x9000_0000);
        assert_eq!(list.tables(), 0);
    }

    #[test]
    fn shared_offsets_follow_a_split() {
        let mut list = VmaList::default();
        let shared = Vma { flags: VmFlags::SHARED | VmFlags::READ, dev: 1, ino: 7, offset: 0x5000, ..anon(0x9000) };
        list.insert(0x4000, shared);
        list.remove(0x5000, 0x6000);
        assert_eq!(list.find(0x6000).map(|(start, vma)| vma.offset_of(start, 0x6800)), Some(0x7800));
        list.insert(0x5000, Vma { flags: VmFlags::SHARED | VmFlags::READ, dev: 1, ino: 7, offset: 0x6000, ..anon(0x6000) });
        assert_eq!(spans(&list), [(0x4000, 0x9000)]);
    }

    /// What the index finds is what a look at every address finds, among mappings made and removed at random.
    #[test]
    fn gaps_among_many_mappings() {
        let mut list = VmaList::default();
        let mut seed = 11u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        let mut compared = 0;
        for step in 0..4000 {
            let (start, pages) = ((1 + random(2000)) * PAGE, 1 + random(6));
            let end = start + pages * PAGE;
            let emptying = step % 1000 > 800;
            if !emptying && random(3) > 0 && list.is_free(start, end) {
                let flags = VmFlags::READ | if random(8) == 0 { VmFlags::GROWSDOWN } else { VmFlags::empty() };
                // Neighbours differ, or the list would not grow long.
                let flags = flags | if random(2) == 0 { VmFlags::WRITE } else { VmFlags::empty() };
                list.insert(start, Vma { flags, ..anon(end) });
            } else {
                list.remove(start, end);
            }
            let (low, high) = (random(1000) * PAGE, (1000 + random(1500)) * PAGE);
            let (len, align) = ((1 + random(5)) * PAGE, PAGE << random(3));
            if list.len() < FEW || step % 8 != 0 {
                continue;
            }
            list.index();
            compared += 1;
            let fits = |at: &usize| {
                let clear = |(start, vma)| at + len <= guarded(start, vma);
                at.is_multiple_of(align) && list.is_free(*at, at + len) && list.above(*at).is_none_or(clear)
            };
            let all: Vec<usize> = (low..=high - len).step_by(PAGE).filter(fits).collect();
            assert_eq!(list.highest_gap(low, high, len, align), all.last().copied(), "step {step}");
            assert_eq!(list.lowest_gap(low, high, len, align), all.first().copied(), "step {step}");
        }
        assert!(compared > 200, "{compared}");
    }

    #[test]
    fn gaps() {
        let mut list = VmaList::default();
        list.insert(0x8000, anon(0x9000));
        list.insert(0xc000, anon(0xd000));
        assert_eq!(list.highest_gap(0x1000, 0x10000, 0x3000, 0x1000), Some(0xd000));
        assert_eq!(list.highest_gap(0x1000, 0xd000, 0x3000, 0x1000), Some(0x9000));
        assert_eq!(list.highest_gap(0x1000, 0xd000, 0x4000, 0x1000), Some(0x4000));
        assert_eq!(list.highest_gap(0x1000, 0xd000, 0x3000, 0x4000), Some(0x4000));
        assert_eq!(list.highest_gap(0x5000, 0xd000, 0x4000, 0x1000), None);
        assert_eq!(list.lowest_gap(0x1000, 0x10000, 0x7000, 0x1000), Some(0x1000));
        assert_eq!(list.lowest_gap(0x2000, 0x10000, 0x7000, 0x1000), None);
        assert_eq!(list.lowest_gap(0x8000, 0x10000, 0x3000, 0x1000), Some(0x9000));
    }
}
