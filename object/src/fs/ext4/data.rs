//! What is in a regular file: pages in memory, filled from the disk when they are wanted and written back later.
//!
//! The pages are in a memory object, which reads, writes and mappings share. A page is *valid* when it holds
//! what the file holds (holes stay holes), and *dirty* when the disk does not have that yet. Everything here happens with the
//! file's own lock held, but that it is let go of while the disk is read (`fill.rs`) or written (`back.rs`). A page stays valid as long as the lock; and as long as
//! somebody has them, from [`Data::ready`] for one, who copies from it to user memory without the lock. No user memory is
//! touched with the lock: a page of it may be one of this very file, which the fault brings under the lock ([`Data::fault`]).
//! Who changes the file's contents or its size has its turn ([`super::node::Node::turn`]), so that neither is another's when it has the lock again.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use janua_abi::linux::fcntl::falloc;
use janua_abi::linux::{Errno, Result};
use janua_port::{Fill, MemoryObject};
use janua_rt::{Ending, MutexGuard};
use rsext4::{InodeNumber, PreallocationOptions, RangeOperation, ZeroRangeOptions};

use super::fill::{self, Transfer};
use super::ranges::Ranges;
use super::{BLOCK, Shared, back};
use crate::fs::objectio::Held;

pub const PAGE: u64 = BLOCK as u64;
/// Pages moved between disk and memory at a time.
pub const RUN: u64 = 32;
/// Most pages a read is given at a time.
const READ: u64 = 256;
/// Largest size of a file: what 32-bit block numbers reach.
pub const SIZE_MOST: u64 = (1 << 44) - PAGE;

/// A file's pages, locked. Functions that may use the disk take this, and let go of the lock meanwhile.
pub type Locked<'a> = MutexGuard<'a, Data>;

/// Where a file's pages are. They stay as long as somebody has this beside the file; a mapping has the object alone.
pub struct Pages {
    pub object: Held,
}

/// The pages of a regular file.
pub struct Data {
    pub(super) number: InodeNumber,
    /// Bytes, as programs see the file.
    pub(super) size: u64,
    /// Bytes, as the disk has it.
    pub(super) on_disk: u64,
    /// Where the pages are, once there are some.
    pub(super) pages: Option<Arc<Pages>>,
    /// Pages that are being brought, by whom has not the lock now. They are not valid.
    pub(super) fillings: Vec<Arc<Transfer>>,
    /// Pages that are being written back, by whom has not the lock now. They are dirty only if they were written since.
    pub(super) writing: Option<Arc<Transfer>>,
    /// Blocks are about to move: nobody else begins to bring pages, or to write them back, until this is over.
    pub(super) moving: Option<Arc<Ending>>,
    /// Who brings pages for mappings, and whether the machine asks for that. Otherwise they are brought when a mapping is made.
    fill: Weak<dyn Fill>,
    filled: bool,
    pub(super) valid: Ranges,
    pub(super) dirty: Ranges,
    /// Something was written to the disk, which stamped the inode and took its privileges.
    pub(super) rewritten: bool,
    /// Mappings, and those that are shared and may be written.
    mappings: usize,
    writable_mappings: usize,
    /// Pages such mappings may have changed, where the machine does not report which they have.
    stored: Ranges,
    /// Pages counted among those the file system keeps in memory.
    counted: u64,
}

/// Pages a number of bytes fills, the last perhaps in part.
pub fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE)
}

impl Data {
    pub fn new(number: InodeNumber, size: u64, fill: Weak<dyn Fill>) -> Data {
        Data {
            number,
            size,
            on_disk: size,
            pages: None,
            fillings: Vec::new(),
            writing: None,
            moving: None,
            fill,
            filled: false,
            valid: Ranges::new(),
            dirty: Ranges::new(),
            rewritten: false,
            mappings: 0,
            writable_mappings: 0,
            stored: Ranges::new(),
            counted: 0,
        }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Whether the inode on the disk needs its times and mode back after pages were written.
    pub fn take_rewritten(&mut self) -> bool {
        core::mem::take(&mut self.rewritten)
    }

    /// Pages behind the end the disk knows: they have no block there yet.
    pub fn unplaced(&self) -> u64 {
        let behind = pages(self.size).saturating_sub(pages(self.on_disk));
        let writing = self.writing.as_ref().map_or(0, |writing| writing.pages.end - writing.pages.start);
        behind.min(self.dirty.count() + writing)
    }

    /// Where the pages are. ENODEV on a machine without memory objects.
    pub(super) fn pages(&mut self, shared: &Shared) -> Result<Arc<Pages>> {
        if let Some(pages) = &self.pages {
            return Ok(pages.clone());
        }
        let object = shared.machine.memory_object("janua-ext4")?;
        object.truncate(self.size)?;
        self.filled = object.set_fill(self.fill.clone()).is_ok();
        let pages = Arc::new(Pages { object: Held::new(object) });
        self.pages = Some(pages.clone());
        Ok(pages)
    }

    /// Counts what is in memory anew.
    fn recount(&mut self, shared: &Shared) {
        let now = self.pages.as_ref().map_or(0, |pages| pages.object.resident() / PAGE);
        shared.cached.fetch_add(now.wrapping_sub(self.counted), Ordering::Relaxed);
        self.counted = now;
    }

    pub(super) fn clean(&mut self, shared: &Shared, range: Range<u64>) {
        let before = self.dirty.count();
        self.dirty.remove(range);
        shared.dirty_pages.fetch_sub(before - self.dirty.count(), Ordering::Relaxed);
    }

    pub(super) fn mark_dirty(&mut self, shared: &Shared, range: Range<u64>) {
        let before = self.dirty.count();
        self.dirty.insert(range);
        shared.dirty_pages.fetch_add(self.dirty.count() - before, Ordering::Relaxed);
    }

    /// Makes pages valid; others may have to go for them. A truncation or a hole may have taken some when this returns, as
    /// the lock may have been let go of last.
    fn load(data: &mut Locked<'_>, shared: &Shared, wanted: Range<u64>) -> Result<()> {
        if data.lacks(wanted.clone()).is_some() {
            fill::bring(data, shared, wanted.clone(), false)?;
            data.recount(shared);
            Data::spare(data, shared, wanted);
        }
        Ok(())
    }

    /// The first of some pages that are not valid, as far as the file reaches.
    pub(super) fn lacks(&self, wanted: Range<u64>) -> Option<Range<u64>> {
        self.valid.first_gap(wanted.start..wanted.end.min(pages(self.size)))
    }

    /// When files take too much of the memory, lets pages go: other files', then this one's, without those in `keep`; at last those of
    /// other files that are mapped.
    fn spare(data: &mut Locked<'_>, shared: &Shared, keep: Range<u64>) {
        shared.shrink(false);
        if !shared.is_tight() {
            return;
        }
        // The pages stay meanwhile. What cannot be written stays dirty, and the next call that flushes it returns the error.
        let held = data.pages.clone();
        let _ = back::flush(data, shared, false, false);
        drop(held);
        if data.may_go()
            && (data.mappings == 0 || shared.is_short())
            && let Some(here) = data.pages.clone()
        {
            let end = pages(data.size);
            data.forget(&here, 0..keep.start);
            data.forget(&here, keep.end..end);
            data.recount(shared);
        }
        shared.shrink(true);
    }

    /// Whether the pages can be had again, for who reads and for mappings, and nobody is copying from them.
    fn may_go(&self) -> bool {
        let again = self.mappings == 0 || self.filled && self.writable_mappings == 0;
        again && !self.is_dirty() && self.pages.as_ref().is_some_and(|pages| Arc::strong_count(pages) == 1)
    }

    /// Puts what the disk has of `bytes` into the pages: `found` of them, whose contents are in `read`. The rest stays holes.
    pub(super) fn put(&mut self, to: &Pages, bytes: Range<u64>, read: &[u8], mut found: Ranges) -> Result<()> {
        // Page by page as a whole: a mapping sees a page as soon as there is one.
        while let Some(run) = found.first_in(0..u64::MAX) {
            let (start, end) = (run.start * PAGE, (run.end * PAGE).min(bytes.end));
            let read = &read[(start - bytes.start) as usize..(end - bytes.start) as usize];
            let mut done = 0;
            while done < read.len() {
                let moved = match to.object.write(start + done as u64, &read[done..]) {
                    Ok(0) => Err(Errno::ENOMEM),
                    other => other.map_err(no_memory),
                };
                // Even if the rest fails: what a mapping stores into a page that is there must not be filled over.
                done += moved?;
                let whole = if done == read.len() { run.end } else { (start + done as u64) / PAGE };
                self.valid.insert(run.start..whole);
            }
            found.remove(run);
        }
        Ok(())
    }

    /// Makes the pages of a range of bytes valid, and the next ones with them when the file is read from front to back.
    fn want(data: &mut Locked<'_>, shared: &Shared, offset: u64, len: u64) -> Result<()> {
        let (first, end) = (offset / PAGE, pages(offset.saturating_add(len)));
        while data.lacks(first..end).is_some() {
            // What was not asked for need not be readable.
            Data::load(data, shared, first..end.max(first + RUN)).or_else(|_| Data::load(data, shared, first..end))?;
        }
        Ok(())
    }

    /// The pages with up to `len` bytes from `offset` on in them, and how many; `None` at the end of the file. They stay as long as the
    /// caller has them.
    pub fn ready(data: &mut Locked<'_>, shared: &Shared, offset: u64, len: usize) -> Result<Option<(Arc<Pages>, usize)>> {
        let left = |data: &Data| data.size.checked_sub(offset).filter(|left| *left > 0);
        let Some(len) = left(data).map(|left| left.min(len as u64).min(READ * PAGE - offset % PAGE)) else { return Ok(None) };
        Data::want(data, shared, offset, len)?;
        // The file may have been cut meanwhile.
        let Some(left) = left(data) else { return Ok(None) };
        Ok(Some((data.pages(shared)?, len.min(left) as usize)))
    }

    /// A mapping lacks a page: makes it present, with those around it that the disk has.
    pub fn fault(data: &mut Locked<'_>, shared: &Shared, number: u64) -> Result<()> {
        let around = number / RUN * RUN;
        let _ = Data::load(data, shared, around..around + RUN);
        // One page may still have room, or be readable.
        while data.lacks(number..number + 1).is_some() {
            Data::load(data, shared, number..number + 1)?;
        }
        if number >= pages(data.size) {
            return Ok(());
        }
        // What is a hole for those who read is a page of zeroes for a mapping.
        data.pages(shared)?.object.allocate(falloc::KEEP_SIZE, number * PAGE, PAGE).map_err(no_memory)?;
        data.recount(shared);
        Data::spare(data, shared, around..around + RUN);
        Ok(())
    }

    /// Writes into the pages: bytes written. With `through`, to the disk at once; ENOSPC when there is no room. For whose turn it is.
    pub fn write(data: &mut Locked<'_>, shared: &Shared, bytes: &[u8], offset: u64, through: bool) -> Result<usize> {
        let room = SIZE_MOST.checked_sub(offset).filter(|room| *room > 0).ok_or(Errno::EFBIG)?;
        let bytes = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        let end = offset + bytes.len() as u64;
        if through {
            // What others have been promised comes first.
            back::flush(data, shared, false, false)?;
        }
        let old_size = data.size;
        // Pages written in part need what was there, and so does the last one when the file grows beyond it.
        let grown = (offset > old_size && !old_size.is_multiple_of(PAGE)).then_some(old_size / PAGE);
        let head = (!offset.is_multiple_of(PAGE)).then_some(offset / PAGE);
        let tail = (!end.is_multiple_of(PAGE)).then_some(end / PAGE);
        let here = data.pages(shared)?;
        fill::prepare(data, shared, &[grown, head, tail], offset / PAGE..pages(end))?;
        // From here on the lock is kept until all is in the pages.
        if grown.is_some() {
            data.keep_tail(shared)?;
        }
        Data::store(data, shared, here, bytes, offset, through)
    }

    /// [`Data::write`], when all that must be there is.
    fn store(
        data: &mut Locked<'_>,
        shared: &Shared,
        here: Arc<Pages>,
        bytes: &[u8],
        offset: u64,
        through: bool,
    ) -> Result<usize> {
        let old_size = data.size;
        // Short where memory is, and then between two pages.
        let mut moved = match here.object.write(offset, bytes) {
            Ok(moved) => moved,
            Err(errno) => {
                here.object.truncate(old_size)?;
                return Err(no_memory(errno));
            }
        };
        data.grow(&here, offset + moved as u64)?;
        let written = offset / PAGE..pages(offset + moved as u64);
        data.valid.insert(written.clone());
        data.mark_dirty(shared, written.clone());
        if through && let Err(errno) = back::flush(data, shared, false, false) {
            moved = Data::give_up(data, shared, &here, offset, written.clone(), old_size)?;
            if moved == 0 {
                return Err(errno);
            }
        }
        // The pages may go only when nobody else has them.
        drop(here);
        data.recount(shared);
        Data::spare(data, shared, written);
        Ok(moved)
    }

    /// After a flush that failed in the middle: writes page by page what still fits, and takes back the rest: bytes kept of a
    /// write at `offset`.
    fn give_up(
        data: &mut Locked<'_>,
        shared: &Shared,
        here: &Pages,
        offset: u64,
        written: Range<u64>,
        old_size: u64,
    ) -> Result<usize> {
        loop {
            back::settle(data, shared, false);
            let Some(run) = data.dirty.first_in(written.clone()) else { break };
            if back::write(data, shared, run.start..run.start + 1).is_err() {
                data.clean(shared, run.start..written.end);
                data.forget(here, run.start..written.end);
                data.size = old_size.max((run.start * PAGE).min(data.size));
                here.object.truncate(data.size)?;
                return Ok((run.start * PAGE).saturating_sub(offset) as usize);
            }
        }
        Ok((data.size.min(written.end * PAGE) - offset) as usize)
    }

    /// Pages are not valid any more.
    fn forget(&mut self, here: &Pages, range: Range<u64>) {
        const PUNCH: u32 = falloc::PUNCH_HOLE | falloc::KEEP_SIZE;
        if range.is_empty() {
            return;
        }
        self.valid.remove(range.clone());
        let _ = here.object.allocate(PUNCH, range.start * PAGE, (range.end - range.start) * PAGE);
    }

    /// The file becomes longer, by a hole.
    fn grow(&mut self, here: &Pages, size: u64) -> Result<()> {
        if size > self.size {
            here.object.truncate(size)?;
            self.valid.insert(pages(self.size)..pages(size));
            self.size = size;
        }
        Ok(())
    }

    /// Before the file grows beyond its last page, which is valid: what follows the old end in that page is zero, on the disk too.
    fn keep_tail(&mut self, shared: &Shared) -> Result<()> {
        if !self.size.is_multiple_of(PAGE) {
            let tail = self.size / PAGE..self.size / PAGE + 1;
            let here = self.pages(shared)?;
            // A hole is zero anyway.
            if here.object.seek(tail.start * PAGE, false).is_ok_and(|data| data < tail.end * PAGE) {
                self.mark_dirty(shared, tail);
            }
        }
        Ok(())
    }

    /// Makes pages dirty that shared mappings have stored into; where the machine does not report these, with `all`, those that exist under
    /// such as may.
    pub(super) fn collect_stored(&mut self, shared: &Shared, all: bool) {
        let Some(here) = self.pages.clone() else { return };
        if self.filled {
            // It was asked for when the pages were made, so there is no error.
            let _ = here.object.take_stored(&mut |pages| self.mark_dirty(shared, pages));
            return;
        }
        if !all {
            return;
        }
        let mut at = 0;
        while let Some(run) = self.stored.first_in(at..pages(self.size)) {
            let Ok(data) = here.object.seek(run.start * PAGE, false) else { return };
            let hole = here.object.seek(data, true).unwrap_or(self.size);
            let found = (data / PAGE).max(run.start)..pages(hole).min(run.end);
            at = found.end.max(run.start + 1);
            if !found.is_empty() {
                self.mark_dirty(shared, found);
            }
        }
    }

    /// Cuts or extends the file (with a hole), on the disk at once. For whose turn it is.
    pub fn truncate(data: &mut Locked<'_>, shared: &Shared, size: u64) -> Result<()> {
        if size > SIZE_MOST {
            return Err(Errno::EFBIG);
        }
        if size == data.size && size == data.on_disk {
            return Ok(());
        }
        fill::alone(data, shared, |data| {
            if size > data.size {
                let last = data.size / PAGE;
                fill::bring(data, shared, last..last + 1, true)?;
                data.keep_tail(shared)?;
            }
            shared.change_data(data.number, |core| core.fs.truncate_inode(data.number, size))?;
            data.on_disk = size;
            data.resized(shared, size)
        })
    }

    /// The disk has the file with another size.
    fn resized(&mut self, shared: &Shared, size: u64) -> Result<()> {
        let old = core::mem::replace(&mut self.size, size);
        if let Some(here) = &self.pages {
            here.object.truncate(size)?;
        }
        if size < old {
            self.clean(shared, pages(size)..u64::MAX);
            self.valid.remove(pages(size)..u64::MAX);
        } else {
            self.valid.insert(pages(old)..pages(size));
        }
        self.recount(shared);
        Ok(())
    }

    /// fallocate(2). EOPNOTSUPP for modes beyond keep-size, punch-hole and zero-range. For whose turn it is.
    pub fn allocate(data: &mut Locked<'_>, shared: &Shared, mode: u32, offset: u64, len: u64) -> Result<()> {
        let end = offset.checked_add(len).filter(|end| *end <= SIZE_MOST).ok_or(Errno::EFBIG)?;
        let keep_size = mode & falloc::KEEP_SIZE != 0;
        let operation = match mode & !falloc::KEEP_SIZE {
            0 => RangeOperation::Allocate(PreallocationOptions { keep_size }),
            falloc::PUNCH_HOLE if keep_size => RangeOperation::PunchHole,
            falloc::ZERO_RANGE => RangeOperation::Zero(ZeroRangeOptions { keep_size }),
            _ => return Err(Errno::EOPNOTSUPP),
        };
        fill::alone(data, shared, |data| {
            back::flush(data, shared, true, true)?;
            if !keep_size && end > data.size {
                let last = data.size / PAGE;
                fill::bring(data, shared, last..last + 1, true)?;
                data.keep_tail(shared)?;
                back::flush(data, shared, false, true)?;
            }
            let operate = |operation| {
                shared.change_data(data.number, |core| core.fs.operate_inode_range(data.number, offset, len, operation))
            };
            match operate(operation) {
                // The crate (0.9.2) refuses to punch a hole into the middle of an extent where the node has no room for one more. Zeroing
                // makes the room, and what is zeroed is an extent of its own.
                Err(Errno::EUCLEAN) if matches!(operation, RangeOperation::PunchHole) => {
                    operate(RangeOperation::Zero(ZeroRangeOptions { keep_size })).and_then(|()| operate(operation))?;
                }
                result => result?,
            }
            let within = end.min(pages(data.size) * PAGE).saturating_sub(offset);
            if mode & !falloc::KEEP_SIZE != 0
                && within > 0
                && let Some(here) = data.pages.clone()
            {
                // The disk has zeros there now: whole pages are holes, parts are zeroed.
                here.object.allocate(falloc::PUNCH_HOLE | falloc::KEEP_SIZE, offset, within)?;
                // What others have stored there meanwhile is gone with it.
                let (first, last) = (offset.div_ceil(PAGE), (offset + within) / PAGE);
                if first < last {
                    data.clean(shared, first..last);
                }
            }
            if !keep_size && end > data.size {
                data.on_disk = end;
                data.resized(shared, end)?;
            }
            data.recount(shared);
            Ok(())
        })
    }

    /// SEEK_DATA, or SEEK_HOLE when `hole`. ENXIO beyond the end, or when no data follows.
    pub fn seek(data: &mut Locked<'_>, shared: &Shared, offset: u64, hole: bool) -> Result<u64> {
        if offset >= data.size {
            return Err(Errno::ENXIO);
        }
        back::flush(data, shared, true, false)?;
        let (number, size) = (data.number, data.size);
        let mut at = offset;
        loop {
            let found = shared.look(|core| fill::written(core, number, at..size))?;
            match found.map(|(found, _)| found) {
                Some(found) if hole && found.start <= at => at = found.end,
                _ if hole => return Ok(at.min(size)),
                Some(found) => return Ok(found.start),
                None => return Err(Errno::ENXIO),
            }
            if at >= size {
                return Ok(size);
            }
        }
    }

    /// The object to map a range of. Where faults do not bring the range's pages they are in it.
    pub fn map(
        data: &mut Locked<'_>,
        shared: &Shared,
        offset: u64,
        len: usize,
        writable: bool,
    ) -> Result<Arc<dyn MemoryObject>> {
        let range = offset / PAGE..pages(offset.saturating_add(len as u64));
        let here = data.pages(shared)?;
        if !data.filled {
            Data::load(data, shared, range.clone())?;
        }
        if writable && !data.filled {
            data.stored.insert(range);
        }
        Ok(here.object.object())
    }

    pub fn mapping_made(&mut self, writable: bool) {
        self.mappings += 1;
        self.writable_mappings += usize::from(writable);
    }

    /// A mapping is gone. Returns whether there may be something to write back.
    pub fn mapping_gone(&mut self, shared: &Shared, writable: bool) -> bool {
        self.mappings -= 1;
        if !writable {
            return false;
        }
        self.writable_mappings -= 1;
        if self.writable_mappings == 0 {
            self.collect_stored(shared, true);
            self.stored = Ranges::new();
        }
        true
    }

    /// Whether shared mappings may change pages unnoticed.
    pub fn is_stored_to(&self) -> bool {
        self.writable_mappings > 0
    }

    /// Lets the pages go, when they can be had again; with `mapped` also those of a file that is mapped.
    pub fn let_go(&mut self, shared: &Shared, mapped: bool) {
        if !self.may_go() || self.mappings > 0 && !mapped {
            return;
        }
        match self.pages.clone() {
            Some(here) if self.mappings > 0 => self.forget(&here, 0..pages(self.size)),
            _ => {
                self.pages = None;
                self.valid = Ranges::new();
            }
        }
        self.recount(shared);
    }

    /// The file goes, and with it what was never written back.
    pub fn discard(&mut self, shared: &Shared) {
        self.clean(shared, 0..u64::MAX);
        self.pages = None;
        self.valid = Ranges::new();
        self.recount(shared);
    }
}

/// What keeps a page from being made is memory, not room on the disk.
fn no_memory(errno: Errno) -> Errno {
    if errno == Errno::ENOSPC { Errno::ENOMEM } else { errno }
}
