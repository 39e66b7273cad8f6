//! Which pages of a memory object are there, or may come to be there without the kernel's doing.

use alloc::collections::BTreeMap;

use janua_abi::linux::Result;
use janua_abi::linux::mman::PAGE_SIZE;
use janua_port::Machine;

/// Bytes of a page, as files count.
pub const PAGE: u64 = PAGE_SIZE as u64;

/// The host holds the page.
const WRITTEN: u8 = 1;
/// It was mapped: a touch there makes the host hold it, as long as it is within the file.
const MAPPED: u8 = 2;

/// Pages of a file, and how many of them count: those the host holds, and of those that were mapped the ones within the file's size.
/// A page once mapped stays so.
#[derive(Clone, Default)]
pub struct Coverage {
    /// Runs of pages by their first: the page behind the last, and what is known of them. Runs do not overlap; those that touch differ.
    runs: BTreeMap<u64, (u64, u8)>,
}

impl Coverage {
    /// Pages of `from..to` that count in a file of `size` pages.
    fn count(&self, from: u64, to: u64, size: u64) -> u64 {
        let mut sum = 0;
        for (start, end, state) in self.within(from, to) {
            let end = if state & WRITTEN != 0 { end } else { end.min(size) };
            sum += end.saturating_sub(start);
        }
        sum
    }

    fn within(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64, u8)> {
        let first = self.runs.range(..=from).next_back().map_or(from, |(start, _)| *start);
        let clip = move |(&start, &(end, state)): (&u64, &(u64, u8))| (start.max(from), end.min(to), state);
        self.runs.range(first..to.max(first)).map(clip).filter(|(start, end, _)| start < end)
    }

    /// How many pages more count once the bytes `from..to` are written, and the file has at least that size.
    pub fn to_write(&self, from: u64, to: u64, size: u64) -> u64 {
        let (first, last, old) = (from / PAGE, to.div_ceil(PAGE), size.div_ceil(PAGE));
        let exposed = if first > old { self.count(old, first, u64::MAX) - self.count(old, first, old) } else { 0 };
        (last - first) - self.count(first, last, old) + exposed
    }

    /// The bytes `from..to` are written.
    pub fn write(&mut self, from: u64, to: u64) {
        if from < to {
            self.change(from / PAGE, to.div_ceil(PAGE), WRITTEN, 0);
        }
    }

    /// How many pages more count once the bytes `from..to` are mapped.
    pub fn to_map(&self, from: u64, to: u64, size: u64) -> u64 {
        let (first, last, size) = (from / PAGE, to.div_ceil(PAGE), size.div_ceil(PAGE));
        let last_inside = last.min(size).max(first);
        (last_inside - first) - self.count(first, last_inside, size)
    }

    /// The bytes `from..to` are mapped.
    pub fn map(&mut self, from: u64, to: u64) {
        self.change(from / PAGE, to.div_ceil(PAGE), MAPPED, 0);
    }

    /// How many pages more count when the file grows from `old` to `new` bytes.
    pub fn to_grow(&self, old: u64, new: u64) -> u64 {
        let (old, new) = (old.div_ceil(PAGE), new.div_ceil(PAGE));
        if new <= old { 0 } else { self.count(old, new, new) - self.count(old, new, old) }
    }

    /// The file is cut from `old` to `new` bytes: how many pages count no more.
    pub fn cut(&mut self, old: u64, new: u64) -> u64 {
        let (old, new) = (old.div_ceil(PAGE), new.div_ceil(PAGE));
        let before = self.count(new, u64::MAX, old);
        self.change(new, u64::MAX, 0, WRITTEN);
        before
    }

    /// The whole pages of the bytes `from..to` become a hole: how many pages count no more.
    pub fn punch(&mut self, from: u64, to: u64, size: u64) -> u64 {
        let (first, last, size) = (from.div_ceil(PAGE), to / PAGE, size.div_ceil(PAGE));
        if first >= last {
            return 0;
        }
        let before = self.count(first, last, size);
        self.change(first, last, 0, WRITTEN);
        before - self.count(first, last, size)
    }

    /// The whole pages of the bytes `from..to` are taken out of a file of `size` bytes, and what is behind moves down: how many pages count
    /// no more.
    pub fn collapse(&mut self, from: u64, to: u64, size: u64) -> u64 {
        let (first, last) = (from / PAGE, to / PAGE);
        let before = self.total(size);
        self.move_written(|start, end| {
            [(start.min(first), end.min(first)), (start.max(last) - (last - first), end.max(last) - (last - first))]
        });
        before.saturating_sub(self.total(size - (to - from)))
    }

    /// The whole pages of the bytes `from..to` are put into a file of `size` bytes as a hole, and what is behind moves up: how many pages
    /// more count.
    pub fn insert(&mut self, from: u64, to: u64, size: u64) -> u64 {
        let (first, last) = (from / PAGE, to / PAGE);
        let before = self.total(size);
        self.move_written(|start, end| {
            [(start.min(first), end.min(first)), (start.max(first) + (last - first), end.max(first) + (last - first))]
        });
        self.total(size + (to - from)).saturating_sub(before)
    }

    /// Moves what the host holds: each run of it to what `to` returns. A mapping is of the place in the file, whatever is there.
    fn move_written(&mut self, to: impl Fn(u64, u64) -> [(u64, u64); 2]) {
        for (start, (end, state)) in core::mem::take(&mut self.runs) {
            self.change(start, if state & MAPPED != 0 { end } else { start }, MAPPED, 0);
            if state & WRITTEN != 0 {
                for (start, end) in to(start, end) {
                    self.change(start, end, WRITTEN, 0);
                }
            }
        }
    }

    /// Pages that count in a file of `size` bytes.
    fn total(&self, size: u64) -> u64 {
        self.count(0, u64::MAX, size.div_ceil(PAGE))
    }

    fn change(&mut self, from: u64, to: u64, set: u8, clear: u8) {
        if from >= to {
            return;
        }
        if let Some((_, (end, state))) = self.runs.range(..=from).next_back()
            && *end >= to
            && state & !clear | set == *state
        {
            return;
        }
        self.split(from);
        self.split(to);
        let mut at = from;
        let mut new = alloc::vec::Vec::new();
        for (start, end, state) in self.within(from, to) {
            if start > at {
                new.push((at, start, set));
            }
            new.push((start, end, state & !clear | set));
            at = end;
        }
        if at < to {
            new.push((at, to, set));
        }
        while let Some((&start, _)) = self.runs.range(from..to).next() {
            self.runs.remove(&start);
        }
        for (start, end, state) in new {
            if state != 0 {
                self.join(start, end, state);
            }
        }
        if let Some(&(end, state)) = self.runs.get(&to) {
            self.runs.remove(&to);
            self.join(to, end, state);
        }
    }

    /// Enters a run behind all that were entered before it, or as part of the one that ends where it begins.
    fn join(&mut self, start: u64, end: u64, state: u8) {
        if let Some((_, (last, known))) = self.runs.range_mut(..start).next_back()
            && *last == start
            && *known == state
        {
            *last = end;
        } else {
            self.runs.insert(start, (end, state));
        }
    }

    fn split(&mut self, at: u64) {
        let Some((_, run)) = self.runs.range_mut(..at).next_back() else { return };
        let (end, state) = *run;
        if end > at {
            run.0 = at;
            self.runs.insert(at, (end, state));
        }
    }
}

/// Firm memory that goes back when this goes.
pub struct Charge {
    machine: &'static dyn Machine,
    bytes: usize,
}

impl Charge {
    pub fn none(machine: &'static dyn Machine) -> Charge {
        Charge { machine, bytes: 0 }
    }

    /// ENOMEM.
    pub fn new(machine: &'static dyn Machine, bytes: usize) -> Result<Charge> {
        let mut charge = Charge::none(machine);
        charge.take(bytes as u64)?;
        Ok(charge)
    }

    /// Takes bytes more. ENOMEM.
    pub fn take(&mut self, bytes: u64) -> Result<()> {
        if bytes > 0 {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.machine.accounts().take_firm(self.machine, bytes)?;
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Gives some of them back.
    pub fn give(&mut self, bytes: u64) {
        let bytes = (bytes as usize).min(self.bytes);
        if bytes > 0 {
            self.machine.accounts().give_firm(bytes);
            self.bytes -= bytes;
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.give(self.bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = PAGE;

    #[test]
    fn what_is_written_moves() {
        let mut file = Coverage::default();
        file.write(0, 2 * K);
        file.write(6 * K, 9 * K);
        file.map(3 * K, 4 * K);
        assert_eq!(file.total(9 * K), 6);
        // Page 6 goes, pages 7 and 8 come to be 2 and 3, of which 3 counted before.
        assert_eq!(file.collapse(2 * K, 7 * K, 9 * K), 2);
        assert_eq!(file.total(4 * K), 4);
        // They are 4 and 5 now, and page 3 is still mapped.
        assert_eq!(file.insert(2 * K, 4 * K, 4 * K), 1);
        assert_eq!((file.total(6 * K), file.to_write(4 * K, 6 * K, 6 * K), file.to_write(2 * K, 4 * K, 6 * K)), (5, 0, 1));
    }

    #[test]
    fn holes_count_when_they_are_written_or_mapped() {
        let mut file = Coverage::default();
        assert_eq!(file.to_write(10 * K, 12 * K, 0), 2);
        file.write(10 * K, 12 * K);
        assert_eq!(file.to_write(11 * K + 1, 13 * K, 12 * K), 1);
        assert_eq!(file.to_map(0, 20 * K, 12 * K), 10);
        file.map(0, 20 * K);
        assert_eq!((file.total(12 * K), file.to_map(0, 20 * K, 12 * K)), (12, 0));
        // What is mapped beyond the end comes with the growth.
        assert_eq!((file.to_grow(12 * K, 15 * K), file.to_write(14 * K, 15 * K, 12 * K)), (3, 3));
        assert_eq!(file.punch(10 * K, 12 * K, 12 * K), 0);
        assert_eq!(file.cut(12 * K, 5 * K), 7);
        assert_eq!((file.total(5 * K), file.to_grow(5 * K, 12 * K)), (5, 7));
    }

    #[test]
    fn what_is_punched_or_cut_counts_no_more() {
        let mut file = Coverage::default();
        for page in 0..8 {
            file.write(page * K, page * K + 1);
        }
        assert_eq!((file.total(8 * K), file.runs.len()), (8, 1));
        assert_eq!(file.punch(K + 1, 5 * K, 8 * K), 3);
        assert_eq!((file.total(8 * K), file.to_write(0, 8 * K, 8 * K)), (5, 3));
        assert_eq!(file.cut(8 * K, 6 * K + 1), 1);
        assert_eq!(file.cut(6 * K + 1, 0), 4);
        assert_eq!((file.total(0), file.runs.len()), (0, 0));
        // Kept beyond the end (fallocate with KEEP_SIZE) it counts too.
        file.write(0, 3 * K);
        assert_eq!(file.total(0), 3);
    }
}
