//! What comes with a page that is touched: pages around it or behind it that will be wanted next, where that is cheaper than a fault for each.

use alloc::vec::Vec;

use janua_port::Prot;

use super::{Inner, rights};
use crate::{Behind, Entry, Frames, Object, PAGE, PageFrame, Table};

/// Pages of a file around one that is touched which get entries with it when they are in memory: an aligned group of this many.
const AROUND: usize = 16;
/// The same where faults are dear.
const FAR_AROUND: usize = 64;
/// Pages that are copied with one that is written, when as many before it were.
const MOST_COPIED: usize = 32;
/// Pages of a file's data that are copied together with one that is written: an aligned group of this many, where the mapping is not larger.
const DATA: usize = 4;
/// The largest mapping of data for which that is done.
pub(super) const MOST_DATA: usize = 4096;
/// Pages of a mapping of code that are given their entries before anybody runs them, where faults are dear, and of one that is only read.
const MOST_CODE: usize = 512;
const MOST_READ: usize = 64;

/// Pages of zeroes are touched one after another when so many before a page are there: as many again come with it, up to the most.
const IN_A_ROW: usize = 16;
const MOST_IN_A_ROW: usize = 128;
/// Pages that come together in spaces that are large, and in those that are very large; and from how many pages on they are.
const TOGETHER: [(usize, usize); 2] = [(1 << 18, 64), (1 << 10, 16)];

impl<F: Frames, T: Table> Inner<F, T> {
    /// A frame of zeroes for a page that has none; where faults are dear, pages that will be wanted next get theirs with it.
    pub(super) fn zeroes(&mut self, frames: &F, page: usize, region: core::ops::Range<usize>, prot: Prot) -> Option<PageFrame> {
        if !T::FAULTS_ARE_DEAR || !prot.write {
            return frames.take();
        }
        let wanted = self.together(page, region);
        let mut at = wanted.start;
        let mut found = None;
        while wanted.len() > PAGE && at < wanted.end {
            let (first, count) = frames.take_row((wanted.end - at) / PAGE);
            if count == 0 {
                break;
            }
            for number in 0..count {
                let (frame, here) = (PageFrame(first.0 + number), at + number * PAGE);
                if here == page {
                    found = Some(frame);
                } else {
                    // Without memory for the table it has no entry, and the frame was released.
                    let _ = self.install(frames, here, Entry { frame, prot: rights(prot, true) });
                }
            }
            at += count * PAGE;
        }
        found.or_else(|| frames.take())
    }

    /// A page of a private mapping may be written now: those around it that nobody else has may be as well, and where pages are written one after another
    /// the next ones are copied. Frames that are to be released once processors have forgotten them come to `left`; returns where the copies end.
    pub(super) fn write_around(
        &mut self,
        frames: &F,
        page: usize,
        region: core::ops::Range<usize>,
        prot: Prot,
        left: &mut Vec<PageFrame>,
    ) -> usize {
        let group = page & !(AROUND * PAGE - 1);
        for at in (group.max(region.start)..(group + AROUND * PAGE).min(region.end)).step_by(PAGE) {
            if let Some(entry) = self.table.get(at).filter(|entry| !entry.prot.write && !frames.is_shared(entry.frame)) {
                // Replaces an entry, which needs no memory.
                let _ = self.table.set(at, Entry { prot: rights(prot, true), ..entry });
            }
        }
        let is_written = |at: usize| region.contains(&at) && self.table.get(at).is_some_and(|entry| entry.prot.write);
        let before = |pages: usize| page.checked_sub(pages * PAGE).is_some_and(is_written);
        let (mut row, mut next) = (0, 2);
        while next <= MOST_COPIED && before(next / 2) && before(next) {
            (row, next) = (next, next * 2);
        }
        let end = (page + PAGE + row * PAGE).min(region.end);
        for at in (page + PAGE..end).step_by(PAGE) {
            let Some(entry) = self.table.get(at).filter(|entry| !entry.prot.write) else { return at };
            let Some(frame) = frames.take_copy(entry.frame) else { return at };
            // As above.
            let _ = self.table.set(at, Entry { frame, prot: rights(prot, true) });
            left.push(entry.frame);
            self.brought += 1;
        }
        end
    }

    /// Pages without entries, this one among them, that are to have theirs at a time.
    fn together(&self, page: usize, region: core::ops::Range<usize>) -> core::ops::Range<usize> {
        let is_there = |at: usize| region.contains(&at) && self.table.get(at).is_some();
        let before = |pages: usize| page.checked_sub(pages * PAGE).is_some_and(is_there);
        let (mut from, mut to) = (page, page + PAGE);
        if let Some((_, group)) = TOGETHER.iter().find(|(least, _)| self.resident >= *least) {
            let first = page & !(group * PAGE - 1);
            (from, to) = (first.max(region.start), (first + group * PAGE).min(region.end));
        }
        if before(1) {
            let mut row = 0;
            let mut next = IN_A_ROW;
            while next <= MOST_IN_A_ROW && before(next / 2) && before(next) {
                (row, next) = (next, next * 2);
            }
            to = to.max((page + row * PAGE).min(region.end));
        }
        // Between those that are there already.
        while from < page && (from..page).step_by(PAGE).any(is_there) {
            from += PAGE;
        }
        let end = (page + PAGE..to).step_by(PAGE).find(|at| is_there(*at)).unwrap_or(to);
        from..end
    }

    /// A page of a program's data was written: so will those around it be, as they are made what they are to be when the program begins. Those in memory that have
    /// no entries yet get their copies.
    pub(super) fn copy_around(
        &mut self,
        frames: &F,
        page: usize,
        region: core::ops::Range<usize>,
        behind: &Behind<F>,
        prot: Prot,
    ) {
        let Behind::Object { object, page: first, .. } = behind else { return };
        let group = page & !(DATA * PAGE - 1);
        let (from, to) = (group.max(region.start), (group + DATA * PAGE).min(region.end));
        let number = |addr: usize| first + ((addr - region.start) / PAGE) as u64;
        let mut found = [(0, PageFrame(0)); DATA];
        let count = object.resident_pages(number(from)..number(to), &mut found);
        for (at, frame) in &found[..count] {
            let at = region.start + (at - first) as usize * PAGE;
            if self.table.get(at).is_none()
                && let Some(own) = frames.take_copy(*frame)
            {
                // Without memory for the table it has no entry, and the frame was released.
                let _ = self.install(frames, at, Entry { frame: own, prot: rights(prot, true) });
            }
            frames.release(*frame);
        }
    }

    /// What is mapped of a file will be used: pages of it that are in memory get their entries at once, of the first [`MOST_CODE`] or [`MOST_READ`].
    pub(super) fn expect(
        &mut self,
        frames: &F,
        range: core::ops::Range<usize>,
        (object, first): (&Object<F>, u64),
        prot: Prot,
    ) {
        let most = if prot.exec { MOST_CODE } else { MOST_READ };
        let end = range.end.min(range.start + most * PAGE);
        for page in (range.start..end).step_by(AROUND * PAGE) {
            // By groups of its own, which begin where the range does.
            let mut found = [(0, PageFrame(0)); AROUND];
            let number = first + ((page - range.start) / PAGE) as u64;
            let count = object.resident_pages(number..number + ((end - page) / PAGE).min(AROUND) as u64, &mut found);
            for (at, frame) in &found[..count] {
                let at = range.start + (at - first) as usize * PAGE;
                // Without memory for the table it has no entry, and the frame was released.
                let _ = self.install(frames, at, Entry { frame: *frame, prot });
            }
        }
        self.table.expect(range.start, end);
    }

    /// Gives pages around one that was touched their entries, those that are in memory: they will be wanted next. `page` is in
    /// `region`, which has the object behind it from its page `first` on.
    pub(super) fn install_around(
        &mut self,
        frames: &F,
        page: usize,
        region: core::ops::Range<usize>,
        (object, first): (&Object<F>, u64),
        prot: Prot,
    ) {
        let pages = if T::FAULTS_ARE_DEAR { FAR_AROUND } else { AROUND };
        let group = page & !(pages * PAGE - 1);
        let (from, to) = (group.max(region.start), (group + pages * PAGE).min(region.end));
        let number = |addr: usize| first + ((addr - region.start) / PAGE) as u64;
        let mut found = [(0, PageFrame(0)); FAR_AROUND];
        let count = object.present(number(from)..number(to), &mut found);
        for (at, frame) in &found[..count] {
            let at = region.start + (at - first) as usize * PAGE;
            if self.table.get(at).is_some() {
                frames.release(*frame);
            } else {
                // Without memory for the table it has no entry, and the frame was released.
                let _ = self.install(frames, at, Entry { frame: *frame, prot });
            }
        }
    }
}
