//! An address space: its regions, and the pages of them that are in memory.

mod around;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use janua_abi::linux::mman::*;
use janua_abi::linux::{Errno, Result};
use janua_port::Prot;
use janua_rt::Mutex;

use crate::object::{Mapper, Missing};
use crate::region::Region;
use crate::report::{PageKind, Report};
use crate::table::NoMemory;
use crate::{AtFork, Behind, Entry, Frames, Object, PAGE, PageFrame, Table};

/// What an access wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    Execute,
}

/// Why an access cannot be made possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Nothing is mapped there.
    Unmapped,
    /// The mapping does not grant it.
    Denied,
    /// Behind the end of the object that is mapped.
    BeyondEnd,
    NoMemory,
    /// The object's page could not be brought.
    Failed,
}

/// Why an access cannot be made possible at once.
enum Stop<F: Frames> {
    Refused(Refused),
    /// This page of the object must be brought first, without the space's lock.
    Absent(Arc<Object<F>>, u64),
}

impl<F: Frames> From<Refused> for Stop<F> {
    fn from(refused: Refused) -> Self {
        Stop::Refused(refused)
    }
}

/// Pages let go of at a time: without memory of the heap's, which may be short when a space goes.
const BATCH: usize = 256;

/// Most pages that MADV_WILLNEED brings at a time.
const AHEAD: usize = 512;

/// An address space. Ranges are page aligned and non-empty, as [`janua_port::Space`] promises.
pub struct Space<F: Frames, T: Table> {
    frames: &'static F,
    inner: Mutex<Inner<F, T>>,
    /// The same space, as objects know it.
    this: Weak<Space<F, T>>,
}

struct Inner<F: Frames, T: Table> {
    table: T,
    regions: BTreeMap<usize, Region<F>>,
    /// Entries in the table.
    resident: usize,
    most_resident: usize,
    /// Entries that have been made, and pages that have been copied.
    brought: u64,
}

impl<F: Frames, T: Table> Space<F, T> {
    /// An empty space over an empty table.
    pub fn new(frames: &'static F, table: T) -> Arc<Space<F, T>> {
        let inner = Inner { table, regions: BTreeMap::new(), resident: 0, most_resident: 0, brought: 0 };
        Arc::new_cyclic(|this| Space { frames, inner: Mutex::new(inner), this: this.clone() })
    }

    /// Where its frames come from.
    pub fn frames(&self) -> &'static F {
        self.frames
    }

    /// Makes a range a mapping of `behind`, replacing what was there.
    pub fn map(&self, start: usize, end: usize, prot: Prot, behind: Behind<F>) -> Result<()> {
        if let Behind::Object { object, .. } = &behind {
            let mapper: Weak<dyn Mapper> = self.this.clone();
            object.add_mapper(mapper);
        }
        let mut inner = self.inner.lock();
        inner.cut(self.frames, start, end);
        let expected = match &behind {
            // What may be written is copied with what is written beside it as long as it has no entries.
            Behind::Object { object, page, shared: false } if T::FAULTS_ARE_DEAR && prot != Prot::default() && !prot.write => {
                Some((object.clone(), *page))
            }
            _ => None,
        };
        inner.insert(start, Region { end, prot, at_fork: AtFork::Copied, behind });
        if let Some((object, first)) = expected {
            inner.expect(self.frames, start..end, (&object, first), rights(prot, false));
        }
        Ok(())
    }

    /// Removes what is mapped in the range.
    pub fn unmap(&self, start: usize, end: usize) {
        self.inner.lock().cut(self.frames, start, end);
    }

    /// Changes the rights of what is mapped in the range.
    pub fn protect(&self, start: usize, end: usize, prot: Prot) -> Result<()> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        inner.split(start);
        inner.split(end);
        for (_, region) in inner.regions.range_mut(start..end) {
            region.prot = prot;
        }
        let mut at = start;
        let mut changed = None;
        while let Some((page, entry)) = inner.table.next(at, end) {
            // What may be somebody else's page becomes writable by the fault that copies it.
            let prot = rights(prot, entry.prot.write);
            // Replaces an entry, which needs no memory.
            let _ = inner.table.set(page, Entry { prot, ..entry });
            at = page + PAGE;
            changed = changed.or(Some(page));
        }
        if let Some(first) = changed {
            inner.table.flush(first, at);
        }
        Ok(())
    }

    /// Moves `old..old+old_len` to `new` and makes it `new_len` long; what is in the new range is replaced. `keep` leaves the
    /// old range mapped and empty. An `old_len` of 0 maps the object behind `old` once more. EFAULT when nothing is mapped; ENOMEM when
    /// the table has no room: then the old range is as it was, and nothing is mapped in the new one.
    pub fn remap(&self, old: usize, old_len: usize, new: usize, new_len: usize, keep: bool) -> Result<()> {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        if old_len == 0 {
            let (start, region) = inner.find(old).ok_or(Errno::EFAULT)?;
            let (prot, behind) = (region.prot, region.behind.advanced(old - start));
            inner.cut(self.frames, new, new + new_len);
            inner.insert(new, Region { end: new + new_len, prot, at_fork: AtFork::Copied, behind });
            return Ok(());
        }
        let kept = old_len.min(new_len);
        inner.split(old);
        inner.split(old + kept);
        let pieces: Vec<(usize, Region<F>)> =
            inner.regions.range(old..old + kept).map(|(start, region)| (*start, region.clone())).collect();
        let Some((last_start, last)) = pieces.last().cloned() else { return Err(Errno::EFAULT) };
        if old_len > new_len {
            inner.cut(self.frames, old + new_len, old + old_len);
        }
        if new != old {
            inner.cut(self.frames, new, new + new_len);
            inner.move_entries(old, kept, new)?;
            if !keep {
                // All of them before the first is inserted, which may be joined to the last.
                pieces.iter().for_each(|(start, _)| drop(inner.regions.remove(start)));
            }
            for (start, region) in pieces {
                let (start, end) = (start - old + new, region.end - old + new);
                inner.insert(start, Region { end, ..region });
            }
        }
        if new_len > kept {
            let behind = last.behind.advanced(old + kept - last_start);
            inner.cut(self.frames, new + kept, new + new_len);
            inner.insert(new + kept, Region { end: new + new_len, behind, ..last });
        }
        Ok(())
    }

    /// Sets what a fork's child is to find in the range.
    pub fn set_at_fork(&self, start: usize, end: usize, at_fork: AtFork) {
        let mut inner = self.inner.lock();
        inner.split(start);
        inner.split(end);
        for (_, region) in inner.regions.range_mut(start..end) {
            region.at_fork = at_fork;
        }
    }

    /// What is in memory of each region, in order.
    pub fn report(&self) -> Vec<(core::ops::Range<usize>, Report)> {
        let inner = self.inner.lock();
        let one = |(start, region): (&usize, &Region<F>)| {
            let mut report = Report::default();
            let mut at = *start;
            while let Some((page, entry)) = inner.table.next(at, region.end) {
                report.count(self.frames, &region.behind, (page - start) / PAGE, entry);
                at = page + PAGE;
            }
            (*start..region.end, report)
        };
        inner.regions.iter().map(one).collect()
    }

    /// Shows the pages of a range that are in memory, in order.
    pub fn each_present(&self, start: usize, end: usize, mut see: impl FnMut(usize, PageKind)) {
        let inner = self.inner.lock();
        let mut at = start;
        while let Some((page, entry)) = inner.table.next(at, end) {
            if let Some((from, region)) = inner.find(page) {
                see(page, PageKind::of(self.frames, &region.behind, (page - from) / PAGE, entry));
            }
            at = page + PAGE;
        }
    }

    /// Makes an access possible.
    pub fn fault(&self, addr: usize, access: Access) -> core::result::Result<(), Refused> {
        self.with_frame(addr & !(PAGE - 1), access, &mut |_| ())
    }

    /// Makes an access to a page possible and acts on its frame, which stays mapped meanwhile. Sleeps where the page must be brought;
    /// acts under the space's lock.
    fn with_frame<R>(
        &self,
        page: usize,
        access: Access,
        act: &mut dyn FnMut(PageFrame) -> R,
    ) -> core::result::Result<R, Refused> {
        loop {
            let (object, number) = {
                let mut guard = self.inner.lock();
                match guard.resolve(self.frames, page, access) {
                    Ok(frame) => return Ok(act(frame)),
                    Err(Stop::Refused(refused)) => return Err(refused),
                    Err(Stop::Absent(object, number)) => (object, number),
                }
            };
            object.fill(number).map_err(|errno| match errno {
                Errno::ENOMEM => Refused::NoMemory,
                _ => Refused::Failed,
            })?;
        }
    }

    /// madvise(2) for whole pages; what is only a hint is nothing here. ENOMEM, EFAULT.
    pub fn advise(&self, start: usize, end: usize, advice: u32) -> Result<()> {
        match advice {
            MADV_DONTNEED | MADV_FREE => self.discard(start, end),
            MADV_DONTFORK => self.set_at_fork(start, end, AtFork::Absent),
            MADV_WIPEONFORK => self.set_at_fork(start, end, AtFork::Wiped),
            MADV_DOFORK | MADV_KEEPONFORK => self.set_at_fork(start, end, AtFork::Copied),
            MADV_REMOVE => self.remove(start, end)?,
            MADV_WILLNEED => self.bring(start, end),
            MADV_POPULATE_READ => self.populate(start, end, Access::Read)?,
            MADV_POPULATE_WRITE => self.populate(start, end, Access::Write)?,
            _ => {}
        }
        Ok(())
    }

    fn populate(&self, start: usize, end: usize, access: Access) -> Result<()> {
        for page in (start..end).step_by(PAGE) {
            self.fault(page, access).map_err(|refused| match refused {
                Refused::Unmapped | Refused::NoMemory => Errno::ENOMEM,
                Refused::Denied | Refused::BeyondEnd | Refused::Failed => Errno::EFAULT,
            })?;
        }
        Ok(())
    }

    /// Makes all accesses to a range possible that its mappings grant, for machines where user code cannot wait for a page. ENOMEM, EFAULT.
    pub fn bring_all(&self, start: usize, end: usize) -> Result<()> {
        self.bring_where(start, end, |prot| prot != Prot::default())
    }

    /// [`Space::bring_all`] of those mappings alone that may be written.
    pub fn bring_writable(&self, start: usize, end: usize) -> Result<()> {
        self.bring_where(start, end, |prot| prot.write)
    }

    fn bring_where(&self, start: usize, end: usize, wanted: impl Fn(Prot) -> bool) -> Result<()> {
        let regions: Vec<_> = {
            let inner = self.inner.lock();
            let within = inner.overlapping(start, end);
            within.map(|(from, region)| (from.max(start), region.end.min(end), region.prot)).collect()
        };
        for (from, to, prot) in regions {
            let access = if prot.write { Access::Write } else { Access::Read };
            if wanted(prot) {
                self.populate(from, to, access)?;
            }
        }
        Ok(())
    }

    /// Brings pages of files that will be wanted, the first [`AHEAD`] of the range; it is only a hint.
    fn bring(&self, start: usize, end: usize) {
        let end = end.min(start + AHEAD * PAGE);
        let mut wanted = Vec::new();
        for (from, region) in self.inner.lock().overlapping(start, end) {
            if let Behind::Object { object, page, .. } = &region.behind
                && object.is_filled()
            {
                let number = |addr: usize| page + ((addr - from) / PAGE) as u64;
                wanted.push((object.clone(), number(from.max(start))..number(region.end.min(end))));
            }
        }
        for (object, pages) in wanted {
            let end = pages.end.min(object.size().div_ceil(PAGE as u64));
            for page in pages.start..end {
                if !object.resident(page) && object.fill(page).is_err() {
                    return;
                }
            }
        }
    }

    /// Drops the pages of a range; they come anew from what is behind them.
    pub fn discard(&self, start: usize, end: usize) {
        self.inner.lock().drop_entries(self.frames, start, end);
    }

    /// Punches the range out of the shared objects it maps. EINVAL where it maps anything else.
    pub fn remove(&self, start: usize, end: usize) -> Result<()> {
        let mut holes = Vec::new();
        {
            let inner = self.inner.lock();
            for (from, region) in inner.overlapping(start, end) {
                let Behind::Object { object, page, shared: true } = &region.behind else { return Err(Errno::EINVAL) };
                let (first, last) = (from.max(start), region.end.min(end));
                holes.push((object.clone(), *page * PAGE as u64 + (first - from) as u64, (last - first) as u64));
            }
        }
        for (object, at, len) in holes {
            object.punch(at, len);
        }
        Ok(())
    }

    /// Whether each page of the range is in memory: bit 0 of a byte each.
    pub fn residence(&self, start: usize, end: usize, out: &mut [u8]) {
        let inner = self.inner.lock();
        for (page, byte) in (start..end).step_by(PAGE).zip(out) {
            let behind = || match inner.find(page) {
                Some((from, Region { behind: Behind::Object { object, page: first, .. }, .. })) => {
                    object.resident(first + ((page - from) / PAGE) as u64)
                }
                _ => false,
            };
            *byte = u8::from(inner.table.get(page).is_some() || behind());
        }
    }

    /// Pages in memory now, and the most there have been.
    pub fn pages(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.resident, inner.most_resident)
    }

    /// Pages that faults and copies have brought so far.
    pub fn brought(&self) -> u64 {
        self.inner.lock().brought
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut inner = self.inner.lock();
        inner.cut(self.frames, 0, usize::MAX & !(PAGE - 1));
        inner.most_resident = 0;
    }

    /// Copies the space into the empty `child`: private pages are shared until one side writes, pages of objects come by faults.
    pub fn fork_into(&self, child: &Space<F, T>) -> Result<()> {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let mut other = child.inner.lock();
        for region in inner.regions.values() {
            if let Behind::Object { object, .. } = &region.behind {
                let mapper: Weak<dyn Mapper> = child.this.clone();
                object.add_mapper(mapper);
            }
        }
        let stays = |region: &Region<F>| region.at_fork != AtFork::Absent;
        other.regions =
            inner.regions.iter().filter(|(_, region)| stays(region)).map(|(at, region)| (*at, region.clone())).collect();
        let copied = |region: &Region<F>| region.at_fork == AtFork::Copied && !region.behind.is_shared();
        // What has lost the right to be written.
        let mut changed: Option<(usize, usize)> = None;
        let mut failed = Ok(());
        let mut eager = inner.table.copies_at_fork();
        'regions: for (start, region) in inner.regions.iter().filter(|(_, region)| copied(region)) {
            let mut at = *start;
            while let Some((page, was)) = inner.table.next(at, region.end) {
                at = page + PAGE;
                if was.prot.write
                    && eager > 0
                    && let Some(frame) = self.frames.take_copy(was.frame)
                {
                    eager -= 1;
                    failed = other.install(self.frames, page, Entry { frame, ..was });
                    if failed.is_err() {
                        break 'regions;
                    }
                    continue;
                }
                let entry = Entry { prot: Prot { write: false, ..was.prot }, ..was };
                self.frames.share(entry.frame);
                if let Err(errno) = other.install(self.frames, page, entry) {
                    // The child goes with what it has; the parent's pages become writable again by faults.
                    failed = Err(errno);
                    break 'regions;
                }
                if was.prot.write {
                    // Replaces an entry, which needs no memory.
                    let _ = inner.table.set(page, entry);
                    changed = Some((changed.map_or(page, |(first, _)| first), page + PAGE));
                }
            }
        }
        if let Some((first, end)) = changed {
            inner.table.flush(first, end);
        }
        failed
    }

    /// Looks at the table, locked: for tests and fuzz targets.
    pub fn with_table<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut self.inner.lock().table)
    }

    /// Copies from the space, whichever space the core has in use: bytes before the first that cannot be read.
    pub fn read(&self, addr: usize, out: &mut [u8]) -> usize {
        self.each_page(addr, out.len(), Access::Read, |frame, inside, range| {
            self.frames.read(frame, inside, &mut out[range]);
        })
    }

    /// Copies into the space, whichever space the core has in use: bytes before the first that cannot be written.
    pub fn write(&self, addr: usize, data: &[u8]) -> usize {
        self.each_page(addr, data.len(), Access::Write, |frame, inside, range| {
            self.frames.write(frame, inside, &data[range]);
        })
    }

    /// Atomically reads an aligned 32-bit word, whichever space the core has in use.
    pub fn load_u32(&self, addr: usize) -> core::result::Result<u32, Refused> {
        let inside = addr % PAGE;
        self.with_frame(addr - inside, Access::Read, &mut |frame| self.frames.load_u32(frame, inside))
    }

    /// Atomic compare-and-exchange on an aligned 32-bit word, whichever space the core has in use: the value found.
    pub fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> core::result::Result<u32, Refused> {
        let inside = addr % PAGE;
        self.with_frame(addr - inside, Access::Write, &mut |frame| self.frames.cmpxchg_u32(frame, inside, old, new))
    }

    fn each_page(
        &self,
        addr: usize,
        len: usize,
        access: Access,
        mut act: impl FnMut(PageFrame, usize, core::ops::Range<usize>),
    ) -> usize {
        let mut done = 0;
        while done < len {
            let at = addr + done;
            let inside = at % PAGE;
            let part = (PAGE - inside).min(len - done);
            if self.with_frame(at - inside, access, &mut |frame| act(frame, inside, done..done + part)).is_err() {
                break;
            }
            done += part;
        }
        done
    }
}

impl<F: Frames, T: Table> Inner<F, T> {
    /// The region that holds an address.
    fn find(&self, addr: usize) -> Option<(usize, &Region<F>)> {
        let (start, region) = self.regions.range(..=addr).next_back()?;
        (addr < region.end).then_some((*start, region))
    }

    fn overlapping(&self, start: usize, end: usize) -> impl Iterator<Item = (usize, &Region<F>)> {
        let first = self.find(start).map_or(start, |(from, _)| from);
        self.regions.range(first..end).map(|(from, region)| (*from, region))
    }

    /// Makes `at` a border between regions.
    fn split(&mut self, at: usize) {
        let Some((start, region)) = self.find(at) else { return };
        if start == at {
            return;
        }
        let rest = Region { behind: region.behind.advanced(at - start), ..region.clone() };
        if let Some(region) = self.regions.get_mut(&start) {
            region.end = at;
        }
        self.regions.insert(at, rest);
    }

    /// Removes regions and entries of a range. Its cost is that of what is there; the regions outside stay where they are in the tree.
    fn cut(&mut self, frames: &F, start: usize, end: usize) {
        self.split(start);
        self.split(end);
        let mut within = self.regions.range(start..end);
        let Some((first, region)) = within.next() else { return };
        let (first, last_end) = (*first, within.next_back().map_or(region.end, |(_, last)| last.end));
        self.drop_entries(frames, first, last_end);
        let mut next = Some(first);
        while let Some(at) = next {
            self.regions.remove(&at);
            next = self.regions.range(at..end).next().map(|(start, _)| *start);
        }
    }

    fn drop_entries(&mut self, frames: &F, start: usize, end: usize) {
        let mut at = start;
        let mut gone = [PageFrame(0); BATCH];
        loop {
            let (mut first, mut count) = (at, 0);
            while count < BATCH
                && let Some((page, entry)) = self.table.take(at, end)
            {
                if count == 0 {
                    first = page;
                }
                gone[count] = entry.frame;
                count += 1;
                at = page + PAGE;
            }
            if count == 0 {
                return;
            }
            self.resident -= count;
            // No processor may still write a frame that somebody else gets.
            self.table.flush(first, at);
            for frame in &gone[..count] {
                frames.release(*frame);
            }
        }
    }

    /// Moves the entries of a range to where there are none. ENOMEM when the table has no room, and then nothing has moved.
    fn move_entries(&mut self, old: usize, len: usize, new: usize) -> Result<()> {
        let mut at = old;
        while let Some((page, entry)) = self.table.next(at, old + len) {
            if self.table.set(page - old + new, entry).is_err() {
                // The frames are still the old entries'.
                while self.table.take(new, new + len).is_some() {}
                self.table.flush(new, new + len);
                return Err(Errno::ENOMEM);
            }
            at = page + PAGE;
        }
        let mut at = old;
        while let Some((page, _)) = self.table.take(at, old + len) {
            at = page + PAGE;
        }
        self.table.flush(old, old + len);
        Ok(())
    }

    /// Adds a region where there is none, joining it to the one before when they are alike.
    fn insert(&mut self, start: usize, region: Region<F>) {
        if let Some((_, before)) = self.regions.range_mut(..start).next_back()
            && before.end == start
            && (before.prot, before.at_fork) == (region.prot, region.at_fork)
            && matches!((&before.behind, &region.behind), (Behind::Zero, Behind::Zero))
        {
            before.end = region.end;
            return;
        }
        self.regions.insert(start, region);
    }

    /// Puts an entry where there is none; the frame is released when that cannot be.
    fn install(&mut self, frames: &F, page: usize, entry: Entry) -> Result<()> {
        match self.table.set(page, entry) {
            Ok(()) => {
                self.resident += 1;
                self.brought += 1;
                self.most_resident = self.most_resident.max(self.resident);
                Ok(())
            }
            Err(NoMemory) => {
                frames.release(entry.frame);
                Err(Errno::ENOMEM)
            }
        }
    }

    fn resolve(&mut self, frames: &F, page: usize, access: Access) -> core::result::Result<PageFrame, Stop<F>> {
        let (start, region) = self.find(page).ok_or(Refused::Unmapped)?;
        let prot = region.prot;
        let granted = match access {
            Access::Read => prot.read || prot.write || prot.exec,
            Access::Write => prot.write,
            Access::Execute => prot.exec,
        };
        if !granted {
            return Err(Refused::Denied.into());
        }
        let (behind, offset, end) = (region.behind.clone(), page - start, region.end);
        let shared = behind.is_shared();
        let write = access == Access::Write;
        let held = match self.table.get(page) {
            Some(entry) if !write || entry.prot.write => {
                // Another thread was here first, or the processor remembers the entry of before.
                self.table.flush_here(page, page + PAGE);
                return Ok(entry.frame);
            }
            other => other,
        };
        if let Some(entry) = held {
            let own = shared || !frames.is_shared(entry.frame);
            let frame = if own { entry.frame } else { frames.take_copy(entry.frame).ok_or(Refused::NoMemory)? };
            if let Behind::Object { object, page: first, shared: true } = &behind {
                object.note_store(first + (offset / PAGE) as u64);
            }
            // Replaces an entry, which needs no memory.
            let _ = self.table.set(page, Entry { frame, prot: rights(prot, true) });
            self.brought += 1;
            let mut left = Vec::new();
            let mut end_of_all = page + PAGE;
            if T::FAULTS_ARE_DEAR && !shared {
                end_of_all = self.write_around(frames, page, start..end, prot, &mut left);
            }
            if own && left.is_empty() {
                self.table.flush_here(page, page + PAGE);
            } else {
                self.table.flush(page, end_of_all);
            }
            if !own {
                frames.release(entry.frame);
            }
            left.into_iter().for_each(|frame| frames.release(frame));
            return Ok(frame);
        }
        let (frame, writable) = match &behind {
            Behind::Zero => (self.zeroes(frames, page, start..end, prot).ok_or(Refused::NoMemory)?, true),
            Behind::Object { object, page: first, shared } => {
                let number = first + (offset / PAGE) as u64;
                let (frame, writable) = object.page(number, write && *shared).map_err(|missing| match missing {
                    Missing::BeyondEnd => Refused::BeyondEnd.into(),
                    Missing::NoMemory => Refused::NoMemory.into(),
                    Missing::Absent => Stop::Absent(object.clone(), number),
                })?;
                if write && !shared {
                    let own = frames.take_copy(frame);
                    frames.release(frame);
                    (own.ok_or(Refused::NoMemory)?, true)
                } else {
                    (frame, *shared && writable)
                }
            }
        };
        let entry = Entry { frame, prot: rights(prot, writable) };
        self.install(frames, page, entry).map_err(|_| Refused::NoMemory)?;
        if T::FAULTS_ARE_DEAR && write && !shared && end - start <= around::MOST_DATA * PAGE {
            self.copy_around(frames, page, start..end, &behind, prot);
        }
        if let Behind::Object { object, page: first, .. } = &behind
            && !write
        {
            self.install_around(frames, page, start..end, (object, *first), rights(prot, false));
        }
        Ok(frame)
    }
}

/// The rights of an entry in a region with rights `prot`. Any right lets it be read: no processor grants one without that.
fn rights(prot: Prot, writable: bool) -> Prot {
    Prot { read: prot.read || prot.write || prot.exec, write: prot.write && writable, exec: prot.exec }
}

impl<F: Frames, T: Table> Mapper for Space<F, T> {
    fn forget(&self, object: *const (), first: u64, end: u64, frames: Option<&BTreeMap<u64, PageFrame>>) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let mut ranges = Vec::new();
        for (start, region) in &inner.regions {
            let Behind::Object { object: mapped, page, .. } = &region.behind else { continue };
            let pages = ((region.end - start) / PAGE) as u64;
            let (from, to) = (first.max(*page), end.min(page + pages));
            if Object::id(mapped) != object || from >= to {
                continue;
            }
            let place = |number: u64| start + (number - page) as usize * PAGE;
            match frames {
                None => ranges.push((place(from), place(to))),
                Some(frames) => ranges.extend(frames.range(from..to).filter_map(|(number, frame)| {
                    let at = place(*number);
                    inner.table.get(at).filter(|entry| entry.frame == *frame).map(|_| (at, at + PAGE))
                })),
            }
        }
        for (from, to) in ranges {
            inner.drop_entries(self.frames, from, to);
        }
    }

    fn protect(&self, object: *const (), pages: &BTreeSet<u64>) {
        let mut inner = self.inner.lock();
        let Inner { table, regions, .. } = &mut *inner;
        let mut changed: Option<(usize, usize)> = None;
        for (start, region) in regions.iter() {
            let Behind::Object { object: mapped, page: first, shared: true } = &region.behind else { continue };
            if Object::id(mapped) != object {
                continue;
            }
            let end = first + ((region.end - start) / PAGE) as u64;
            for number in pages.range(first..&end) {
                let at = start + (number - first) as usize * PAGE;
                if let Some(entry) = table.get(at).filter(|entry| entry.prot.write) {
                    // Replaces an entry, which needs no memory.
                    let _ = table.set(at, Entry { prot: Prot { write: false, ..entry.prot }, ..entry });
                    changed = Some((changed.map_or(at, |(first, _)| first), at + PAGE));
                }
            }
        }
        if let Some((first, end)) = changed {
            table.flush(first, end);
        }
    }
}

impl<F: Frames, T: Table> Drop for Space<F, T> {
    fn drop(&mut self) {
        self.clear();
    }
}
