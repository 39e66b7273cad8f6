//! Memory objects: pages by number, shared between files and mappings.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;

use janua_abi::linux::fcntl::falloc::{KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE};
use janua_abi::linux::{Errno, Result};
use janua_port::{Fill, MemoryObject};
use janua_rt::Mutex;

use crate::{Frames, PAGE, PageFrame};

/// A space that maps an object.
pub trait Mapper: Send + Sync {
    /// Takes out the entries of this object's pages from `page` on (before `end`): all of them, private copies too, or those of the
    /// frames alone that the object had there.
    fn forget(&self, object: *const (), page: u64, end: u64, frames: Option<&BTreeMap<u64, PageFrame>>);

    /// Takes the right to write from the entries that shared mappings have for these pages of the object: the next store there faults.
    fn protect(&self, object: *const (), pages: &BTreeSet<u64>);
}

/// Why there is no page for a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Behind the end of the object.
    BeyondEnd,
    NoMemory,
    /// [`Object::fill`] brings it.
    Absent,
}

/// An anonymous file in memory. Missing pages are holes that read as zero; those of a file whose contents are elsewhere are brought when
/// a mapping wants them.
pub struct Object<F: Frames> {
    frames: &'static F,
    inner: Mutex<Inner>,
    mappers: Mutex<Vec<Weak<dyn Mapper>>>,
}

struct Inner {
    pages: BTreeMap<u64, PageFrame>,
    /// Bytes.
    size: u64,
    /// Who brings missing pages for mappings; without, they are holes for those too.
    fill: Option<Weak<dyn Fill>>,
    /// Pages that shared mappings may write, or could since these were last taken; kept where [`Inner::fill`] is there.
    stored: BTreeSet<u64>,
}

impl<F: Frames> Object<F> {
    pub fn new(frames: &'static F, size: u64) -> Arc<Object<F>> {
        let inner = Mutex::new(Inner { pages: BTreeMap::new(), size, fill: None, stored: BTreeSet::new() });
        Arc::new(Object { frames, inner, mappers: Mutex::new(Vec::new()) })
    }

    /// Which object this is, for [`Mapper::forget`].
    pub fn id(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    pub fn size(&self) -> u64 {
        self.inner.lock().size
    }

    /// Pages in memory.
    pub fn pages(&self) -> usize {
        self.inner.lock().pages.len()
    }

    /// Remembers who must be notified when pages go.
    pub fn add_mapper(&self, mapper: Weak<dyn Mapper>) {
        let mut mappers = self.mappers.lock();
        if mappers.iter().any(|known| known.ptr_eq(&mapper)) {
            return;
        }
        mappers.retain(|known| known.strong_count() > 0);
        mappers.push(mapper);
    }

    /// From now on missing pages are brought for mappings, and stores through shared ones are noted. Nobody maps it yet.
    pub fn set_fill(&self, fill: Weak<dyn Fill>) {
        self.inner.lock().fill = Some(fill);
    }

    /// Makes a page present that was [`Missing::Absent`]; may sleep, so no lock may be held. Another may have taken it away again when
    /// this returns. EIO, ENOMEM.
    pub fn fill(&self, number: u64) -> Result<()> {
        let fill = self.inner.lock().fill.clone();
        fill.and_then(|fill| fill.upgrade()).ok_or(Errno::EIO)?.fill(number)
    }

    /// Whether missing pages are brought, not made.
    pub fn is_filled(&self) -> bool {
        self.inner.lock().fill.is_some()
    }

    /// A page for a mapping, with one more user, made when it is a hole; and whether a shared mapping may write it. `store`: one is about
    /// to.
    pub fn page(&self, number: u64, store: bool) -> core::result::Result<(PageFrame, bool), Missing> {
        let mut inner = self.inner.lock();
        if number >= inner.size.div_ceil(PAGE as u64) {
            return Err(Missing::BeyondEnd);
        }
        let frame = match inner.pages.get(&number) {
            Some(frame) => *frame,
            None if inner.fill.is_some() => return Err(Missing::Absent),
            None => {
                let frame = self.frames.take().ok_or(Missing::NoMemory)?;
                inner.pages.insert(number, frame);
                self.frames.belong_to_objects(1);
                frame
            }
        };
        self.frames.share(frame);
        inner.note(number, store);
        Ok((frame, store || inner.fill.is_none()))
    }

    /// A shared mapping, which had the right to read the page, gets that to write it.
    pub fn note_store(&self, number: u64) {
        self.inner.lock().note(number, true);
    }

    /// Shows, in runs, the pages that shared mappings may have stored into since this was last asked; each further store will be noted.
    pub fn take_stored(&self, each: &mut dyn FnMut(Range<u64>)) {
        let stored = core::mem::take(&mut self.inner.lock().stored);
        if stored.is_empty() {
            return;
        }
        // A fault notes its page before it gives the right, both with its space locked: either it did so before the set was
        // taken, and the right goes here, or the page is in the next set.
        self.mappers().iter().for_each(|mapper| mapper.protect(self.id(), &stored));
        let mut run = 0..0;
        for number in stored {
            if number != run.end {
                let before = core::mem::replace(&mut run, number..number);
                if !before.is_empty() {
                    each(before);
                }
            }
            run.end = number + 1;
        }
        each(run);
    }

    /// Whether shared mappings may have stored into a page since that was last asked ([`Object::take_stored`]).
    pub fn is_stored(&self, number: u64) -> bool {
        self.inner.lock().stored.contains(&number)
    }

    /// The same of any page.
    pub fn has_stored(&self) -> bool {
        !self.inner.lock().stored.is_empty()
    }

    /// Gives back up to `most` pages that are as [`Object::fill`] brings them, none that shared mappings may have stored into: how many. None of an
    /// object whose missing pages are made.
    pub fn forget_clean(&self, most: usize) -> usize {
        let chosen: BTreeMap<u64, PageFrame> = {
            let inner = self.inner.lock();
            if inner.fill.is_none() {
                return 0;
            }
            let clean = inner.pages.iter().filter(|(number, _)| !inner.stored.contains(number)).take(most);
            clean.map(|(number, frame)| (*number, *frame)).collect()
        };
        let (Some((first, _)), Some((last, _))) = (chosen.first_key_value(), chosen.last_key_value()) else { return 0 };
        // Out of the mappings first, while they are the object's still: what is stored meanwhile is noted.
        self.notify_mappers(*first, *last + 1, Some(&chosen));
        let gone: BTreeMap<u64, PageFrame> = {
            let mut guard = self.inner.lock();
            let inner = &mut *guard;
            let stays = |number: &u64, frame: &PageFrame| {
                chosen.get(number) != Some(frame) || inner.stored.contains(number) || self.frames.is_shared(*frame)
            };
            let gone: BTreeMap<u64, PageFrame> = inner
                .pages
                .iter()
                .filter(|(number, frame)| !stays(number, frame))
                .map(|(number, frame)| (*number, *frame))
                .collect();
            inner.pages.retain(|number, _| !gone.contains_key(number));
            gone
        };
        self.release(&gone);
        gone.len()
    }

    /// Pages of a range that are in memory, with one more user each: how many were put into `out`. None of an object whose missing
    /// pages are made: there a mapping has no more of them than it has touched.
    pub fn present(&self, range: Range<u64>, out: &mut [(u64, PageFrame)]) -> usize {
        if self.is_filled() { self.resident_pages(range, out) } else { 0 }
    }

    /// The same of any object.
    pub fn resident_pages(&self, range: Range<u64>, out: &mut [(u64, PageFrame)]) -> usize {
        let inner = self.inner.lock();
        let mut count = 0;
        for ((number, frame), place) in inner.pages.range(range).zip(out) {
            self.frames.share(*frame);
            *place = (*number, *frame);
            count += 1;
        }
        count
    }

    /// The frame of a page that is in memory.
    pub fn frame(&self, number: u64) -> Option<PageFrame> {
        self.inner.lock().pages.get(&number).copied()
    }

    pub fn resident(&self, number: u64) -> bool {
        self.inner.lock().pages.contains_key(&number)
    }

    /// Bytes read at `at`.
    pub fn read(&self, at: u64, out: &mut [u8]) -> usize {
        let inner = self.inner.lock();
        let len = out.len().min(usize::try_from(inner.size.saturating_sub(at)).unwrap_or(usize::MAX));
        let mut done = 0;
        while done < len {
            let (number, inside, part) = piece(at + done as u64, len - done);
            let out = &mut out[done..done + part];
            match inner.pages.get(&number) {
                Some(frame) => self.frames.read(*frame, inside, out),
                None => out.fill(0),
            }
            done += part;
        }
        len
    }

    /// Writes at `at`, growing the object: bytes written, fewer when memory runs out. ENOSPC when none could be.
    pub fn write(&self, at: u64, data: &[u8]) -> Result<usize> {
        at.checked_add(data.len() as u64).filter(|end| *end <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        let mut inner = self.inner.lock();
        let mut done = 0;
        while done < data.len() {
            let (number, inside, part) = piece(at + done as u64, data.len() - done);
            let frame = match inner.pages.get(&number) {
                Some(frame) => *frame,
                None => match self.frames.take() {
                    Some(frame) => {
                        inner.pages.insert(number, frame);
                        self.frames.belong_to_objects(1);
                        frame
                    }
                    None if done > 0 => break,
                    None => return Err(Errno::ENOSPC),
                },
            };
            self.frames.write(frame, inside, &data[done..done + part]);
            done += part;
        }
        inner.size = inner.size.max(at + done as u64);
        Ok(done)
    }

    /// Cuts or extends; what is cut off is taken out of all mappings.
    pub fn truncate(&self, size: u64) -> Result<()> {
        if size > i64::MAX as u64 {
            return Err(Errno::EFBIG);
        }
        let (first, shrunk) = {
            let mut inner = self.inner.lock();
            let shrunk = size < inner.size;
            inner.size = size;
            let first = size.div_ceil(PAGE as u64);
            if shrunk {
                self.release(&take_pages(&mut inner, first, u64::MAX));
                let inside = (size % PAGE as u64) as usize;
                if inside > 0
                    && let Some(frame) = inner.pages.get(&(size / PAGE as u64))
                {
                    self.zero(*frame, inside, PAGE);
                }
            }
            (first, shrunk)
        };
        if shrunk {
            self.notify_mappers(first, u64::MAX, None);
        }
        Ok(())
    }

    /// Makes a range read as zero; whole pages become holes. Copies that private mappings have made stay, as on Linux.
    pub fn punch(&self, at: u64, len: u64) {
        let Some(end) = at.checked_add(len) else { return };
        let page = PAGE as u64;
        let (first, last) = (at.div_ceil(page), end / page);
        let gone = {
            let mut inner = self.inner.lock();
            let gone = if first < last { take_pages(&mut inner, first, last) } else { BTreeMap::new() };
            for number in [at / page, end / page] {
                let start = number * page;
                let (from, to) = (at.clamp(start, start + page) - start, end.clamp(start, start + page) - start);
                if from < to
                    && let Some(frame) = inner.pages.get(&number)
                {
                    self.zero(*frame, from as usize, to as usize);
                }
            }
            gone
        };
        if !gone.is_empty() {
            self.notify_mappers(first, last, Some(&gone));
            // Until here the object is a user of them, so that a write to a private mapping copies.
            self.release(&gone);
        }
    }

    /// Fills the holes of a range and extends to its end unless `keep_size`. ENOSPC when memory runs out.
    pub fn allocate(&self, at: u64, len: u64, keep_size: bool) -> Result<()> {
        let end = at.checked_add(len).filter(|end| *end <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        let mut inner = self.inner.lock();
        let mut made = Vec::new();
        for number in at / PAGE as u64..end.div_ceil(PAGE as u64) {
            let Entry::Vacant(hole) = inner.pages.entry(number) else { continue };
            let Some(frame) = self.frames.take() else {
                // What was a hole is one again.
                let gone = made.iter().filter_map(|number| Some((*number, inner.pages.remove(number)?))).collect();
                drop(inner);
                self.release(&gone);
                return Err(Errno::ENOSPC);
            };
            hole.insert(frame);
            self.frames.belong_to_objects(1);
            made.push(number);
        }
        if !keep_size {
            inner.size = inner.size.max(end);
        }
        Ok(())
    }

    /// fallocate(2): fills holes, or makes some. EOPNOTSUPP for other modes, EFBIG, ENOSPC.
    pub fn fallocate(&self, mode: u32, at: u64, len: u64) -> Result<()> {
        match mode & !KEEP_SIZE {
            0 => self.allocate(at, len, mode & KEEP_SIZE != 0),
            PUNCH_HOLE | ZERO_RANGE => {
                self.punch(at, len);
                Ok(())
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// SEEK_DATA, or SEEK_HOLE when `hole`. ENXIO behind the end.
    pub fn seek(&self, at: u64, hole: bool) -> Result<u64> {
        let inner = self.inner.lock();
        if at >= inner.size {
            return Err(Errno::ENXIO);
        }
        let mut number = at / PAGE as u64;
        if hole {
            while inner.pages.contains_key(&number) {
                number += 1;
            }
            return Ok((number * PAGE as u64).clamp(at, inner.size));
        }
        match inner.pages.range(number..).next().map(|(found, _)| found * PAGE as u64) {
            Some(found) if found < inner.size => Ok(found.max(at)),
            _ => Err(Errno::ENXIO),
        }
    }

    /// The object no longer owns pages that have been taken out.
    fn release(&self, gone: &BTreeMap<u64, PageFrame>) {
        self.frames.belong_to_objects(-(gone.len() as isize));
        for frame in gone.values() {
            self.frames.release(*frame);
        }
    }

    fn zero(&self, frame: PageFrame, from: usize, to: usize) {
        const ZEROES: [u8; 512] = [0; 512];
        let mut at = from;
        while at < to {
            let part = (to - at).min(ZEROES.len());
            self.frames.write(frame, at, &ZEROES[..part]);
            at += part;
        }
    }

    fn mappers(&self) -> Vec<Arc<dyn Mapper>> {
        self.mappers.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn notify_mappers(&self, first: u64, end: u64, frames: Option<&BTreeMap<u64, PageFrame>>) {
        for mapper in self.mappers() {
            mapper.forget(self.id(), first, end, frames);
        }
    }
}

impl<F: Frames> MemoryObject for Object<F> {
    fn read(&self, at: u64, out: &mut [u8]) -> Result<usize> {
        Ok(Object::read(self, at, out))
    }

    fn write(&self, at: u64, data: &[u8]) -> Result<usize> {
        Object::write(self, at, data)
    }

    fn truncate(&self, size: u64) -> Result<()> {
        Object::truncate(self, size)
    }

    fn allocate(&self, mode: u32, at: u64, len: u64) -> Result<()> {
        self.fallocate(mode, at, len)
    }

    fn seek(&self, at: u64, hole: bool) -> Result<u64> {
        Object::seek(self, at, hole)
    }

    fn resident(&self) -> u64 {
        (self.pages() * PAGE) as u64
    }

    fn set_fill(&self, fill: Weak<dyn Fill>) -> Result<()> {
        Object::set_fill(self, fill);
        Ok(())
    }

    fn take_stored(&self, each: &mut dyn FnMut(Range<u64>)) -> Result<()> {
        Object::take_stored(self, each);
        Ok(())
    }
}

impl<F: Frames> Drop for Object<F> {
    fn drop(&mut self) {
        let pages = core::mem::take(&mut self.inner.get_mut().pages);
        self.release(&pages);
    }
}

impl Inner {
    fn note(&mut self, number: u64, store: bool) {
        if store && self.fill.is_some() && self.pages.contains_key(&number) {
            self.stored.insert(number);
        }
    }
}

/// Takes pages from `first` on (before `end`) out of an object, which stays a user of their frames. Its cost is that of what is taken.
fn take_pages(inner: &mut Inner, first: u64, end: u64) -> BTreeMap<u64, PageFrame> {
    if first == 0 && inner.pages.last_key_value().is_none_or(|(last, _)| *last < end) {
        inner.stored.clear();
        return core::mem::take(&mut inner.pages);
    }
    let mut gone = BTreeMap::new();
    while let Some((&number, &frame)) = inner.pages.range(first..end).next() {
        inner.pages.remove(&number);
        inner.stored.remove(&number);
        gone.insert(number, frame);
    }
    gone
}

/// Page number, offset in it, and bytes of the first page of a range.
fn piece(at: u64, len: usize) -> (u64, usize, usize) {
    let inside = (at % PAGE as u64) as usize;
    (at / PAGE as u64, inside, len.min(PAGE - inside))
}
