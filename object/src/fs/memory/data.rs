//! What is in a regular file of the memory file system.
//!
//! Small files are pages of the kernel's heap. A file that is mapped or grows large moves, once and for good, to a memory
//! object, so that mappings and reads see the same pages and large data stays out of the kernel's heap. A file of
//! the layer below is read there until it is changed.

mod ranges;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::sync::Arc;
use alloc::vec;

use janua_abi::linux::fcntl::falloc;
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_port::MemoryObject;
pub use janua_port::PAGE;

use crate::coverage::Coverage;
use crate::fs::hostfs::HostInode;
use crate::fs::memory::Space;
use crate::fs::objectio::{self, Held};

/// A file larger than this moves to an object.
const HEAP_MOST: u64 = 256 * 1024;
/// Largest size of a file.
pub const SIZE_MOST: u64 = i64::MAX as u64;

/// Where the bytes are.
enum Place {
    /// Pages by number; a missing one is a hole.
    Heap(BTreeMap<u64, Box<[u8]>>),
    /// A memory object, and which of its pages count.
    Object(Held, Coverage),
    /// Unchanged in the layer below.
    Lower(Arc<HostInode>),
}

/// The bytes of a regular file.
pub struct Data {
    size: u64,
    place: Place,
    /// Pages counted against the file system's limit.
    charged: u64,
    /// Changes so far, and mappings that may make more.
    changes: u64,
    mappings: u32,
}

/// A source of bytes that may be read without holding the file's lock.
pub enum Source {
    Object(Held),
    Done(usize),
}

impl Data {
    pub fn new() -> Data {
        Data { size: 0, place: Place::Heap(BTreeMap::new()), charged: 0, changes: 0, mappings: 0 }
    }

    pub fn of_lower(lower: Arc<HostInode>, size: u64) -> Data {
        Data { size, place: Place::Lower(lower), charged: 0, changes: 0, mappings: 0 }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// How often the bytes were changed; `None` while a mapping may change them unseen.
    pub fn changes(&self) -> Option<u64> {
        (self.mappings == 0).then_some(self.changes)
    }

    /// A shared mapping that may be written has been made (or is about to be).
    pub fn mapping_made(&mut self) {
        self.mappings += 1;
    }

    /// It is gone.
    pub fn mapping_gone(&mut self) {
        self.mappings = self.mappings.saturating_sub(1);
        self.changes += 1;
    }

    pub fn is_lower(&self) -> bool {
        matches!(self.place, Place::Lower(_))
    }

    /// The file goes, and what it was charged for with it.
    pub fn release(&mut self, space: &Space) {
        space.release(core::mem::take(&mut self.charged), self.is_firm());
    }

    fn is_firm(&self) -> bool {
        matches!(self.place, Place::Object(..))
    }

    /// Units of 512 bytes in use; `lower` is what the layer below reported.
    pub fn blocks(&self, lower: u64) -> u64 {
        match &self.place {
            Place::Heap(pages) => pages.len() as u64 * (PAGE as u64 / 512),
            Place::Object(object, _) => object.resident() / 512,
            Place::Lower(_) => lower,
        }
    }

    /// [`Data::blocks`] if the machine need not be asked.
    pub fn known_blocks(&self, lower: u64) -> Option<u64> {
        (!self.is_firm()).then(|| self.blocks(lower))
    }

    /// Reads at `offset`. Heap pages are copied at once; an object comes back, to be read from after the lock is
    /// gone, with the buffer cut to the size.
    pub fn read(&self, buf: &mut ReadBuf<'_>, offset: u64) -> Result<Source> {
        let pages = match &self.place {
            Place::Heap(pages) => pages,
            Place::Object(object, _) => {
                buf.limit(usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX));
                return Ok(Source::Object(object.clone()));
            }
            Place::Lower(lower) => return Ok(Source::Object(Held::File(lower.reader()?))),
        };
        let mut at = offset;
        let mut moved = 0;
        while at < self.size && buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
            let inside = (at % PAGE as u64) as usize;
            let len = (PAGE - inside).min(usize::try_from(self.size - at).unwrap_or(PAGE)).min(buf.left());
            let result = match pages.get(&(at / PAGE as u64)) {
                Some(page) => buf.put(&page[inside..inside + len]),
                None => buf.put_zeros(len),
            };
            let n = match result {
                Ok(n) => n,
                Err(_) if moved > 0 => break,
                Err(errno) => return Err(errno),
            };
            moved += n;
            at += n as u64;
            if n < len {
                break;
            }
        }
        Ok(Source::Done(moved))
    }

    /// Writes at `offset`, growing the file: bytes written. ENOSPC at the limit of the file system, EFBIG.
    pub fn write(&mut self, space: &Space, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        self.own(space, self.size, &|| false)?;
        self.changes += 1;
        let room = SIZE_MOST.checked_sub(offset).filter(|room| *room > 0).ok_or(Errno::EFBIG)?;
        buf.limit(usize::try_from(room).unwrap_or(usize::MAX));
        let end = offset + buf.left() as u64;
        if end > HEAP_MOST && matches!(self.place, Place::Heap(_)) {
            // Where the host has no descriptor left the heap has to do.
            match self.move_to_object(space) {
                Err(errno) if !matches!(errno, Errno::EMFILE | Errno::ENFILE) => return Err(errno),
                _ => {}
            }
        }
        let moved = match &mut self.place {
            Place::Object(..) => self.write_object(space, buf, offset)?,
            Place::Heap(pages) => {
                let mut moved = 0;
                while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
                    let at = offset + moved as u64;
                    let inside = (at % PAGE as u64) as usize;
                    let want = (PAGE - inside).min(buf.left());
                    let number = at / PAGE as u64;
                    let fresh = !pages.contains_key(&number);
                    if fresh {
                        match space.charge(1, false) {
                            Ok(()) => self.charged += 1,
                            Err(_) if moved > 0 => break,
                            Err(errno) => return Err(errno),
                        }
                    }
                    let page = pages.entry(number).or_insert_with(|| vec![0; PAGE].into_boxed_slice());
                    match buf.get(&mut page[inside..inside + want]) {
                        Ok(n) => {
                            moved += n;
                            if n < want {
                                break;
                            }
                        }
                        Err(errno) => {
                            if fresh {
                                pages.remove(&number);
                                space.release(1, false);
                                self.charged -= 1;
                            }
                            if moved > 0 {
                                break;
                            }
                            return Err(errno);
                        }
                    }
                }
                moved
            }
            Place::Lower(_) => return Err(Errno::EIO),
        };
        self.size = self.size.max(offset + moved as u64);
        Ok(moved)
    }

    /// [`Data::write`] to an object: as much as there is room for, page by page at the end.
    fn write_object(&mut self, space: &Space, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        let end = offset + buf.left() as u64;
        let Place::Object(object, coverage) = &mut self.place else { return Err(Errno::EIO) };
        let mut more = coverage.to_write(offset, end, self.size);
        if let Err(errno) = space.charge(more, true) {
            // What is left is filled up, one page and perhaps the rest of another.
            let first_end = (offset / PAGE as u64 + 1) * PAGE as u64;
            if first_end >= end {
                return Err(errno);
            }
            buf.limit((first_end - offset) as usize);
            more = coverage.to_write(offset, first_end, self.size);
            space.charge(more, true)?;
        }
        let result = object.write_at(buf, offset);
        let end = offset + *result.as_ref().unwrap_or(&0) as u64;
        let used = if end > offset { coverage.to_write(offset, end, self.size) } else { 0 };
        coverage.write(offset, end);
        // What was not written after all goes back.
        space.release(more - used, true);
        self.charged += used;
        result
    }

    /// Cuts or extends the file (with a hole).
    pub fn truncate(&mut self, space: &Space, size: u64) -> Result<()> {
        if size > SIZE_MOST {
            return Err(Errno::EFBIG);
        }
        self.own(space, size, &|| false)?;
        self.changes += 1;
        match &mut self.place {
            Place::Heap(pages) => {
                if size < self.size {
                    let dropped = pages.split_off(&size.div_ceil(PAGE as u64));
                    let gone = dropped.len() as u64;
                    space.release(gone, false);
                    self.charged -= gone;
                    let inside = (size % PAGE as u64) as usize;
                    if inside > 0
                        && let Some(page) = pages.get_mut(&(size / PAGE as u64))
                    {
                        page[inside..].fill(0);
                    }
                }
            }
            Place::Object(object, coverage) => {
                let more = coverage.to_grow(self.size, size);
                space.charge(more, true)?;
                object.truncate(size).inspect_err(|_| space.release(more, true))?;
                self.charged += more;
                if size < self.size {
                    let gone = coverage.cut(self.size, size);
                    space.release(gone, true);
                    self.charged -= gone;
                }
            }
            Place::Lower(_) => return Err(Errno::EIO),
        }
        self.size = size;
        Ok(())
    }

    /// fallocate(2) but for what moves bytes. EOPNOTSUPP for other modes than keep-size, punch-hole and zero-range.
    pub fn allocate(&mut self, space: &Space, mode: u32, offset: u64, len: u64) -> Result<()> {
        let end = offset.checked_add(len).filter(|end| *end <= SIZE_MOST).ok_or(Errno::EFBIG)?;
        let keep = mode & falloc::KEEP_SIZE != 0;
        let kind = mode & !falloc::KEEP_SIZE;
        if !matches!(kind, 0 | falloc::PUNCH_HOLE | falloc::ZERO_RANGE) || kind == falloc::PUNCH_HOLE && !keep {
            return Err(Errno::EOPNOTSUPP);
        }
        self.own(space, self.size, &|| false)?;
        self.changes += 1;
        if kind == 0 && matches!(self.place, Place::Heap(_)) && end > HEAP_MOST {
            self.move_to_object(space)?;
        }
        match &mut self.place {
            Place::Heap(pages) => {
                if kind != 0 {
                    let before = pages.len();
                    punch(pages, offset, end);
                    let gone = (before - pages.len()) as u64;
                    space.release(gone, false);
                    self.charged -= gone;
                } else {
                    for number in offset / PAGE as u64..end.div_ceil(PAGE as u64) {
                        if let Entry::Vacant(hole) = pages.entry(number) {
                            space.charge(1, false)?;
                            self.charged += 1;
                            hole.insert(vec![0; PAGE].into_boxed_slice());
                        }
                    }
                }
            }
            Place::Object(object, coverage) => {
                if kind == 0 {
                    let more = coverage.to_write(offset, end, self.size);
                    space.charge(more, true)?;
                    if let Err(errno) = object.allocate(mode, offset, len) {
                        space.release(more, true);
                        return Err(errno);
                    }
                    coverage.write(offset, end);
                    self.charged += more;
                } else {
                    object.allocate(falloc::PUNCH_HOLE | falloc::KEEP_SIZE, offset, len)?;
                    let gone = coverage.punch(offset, end, self.size);
                    space.release(gone, true);
                    self.charged -= gone;
                    if !keep && end > self.size {
                        let more = coverage.to_grow(self.size, end);
                        space.charge(more, true)?;
                        object.truncate(end).inspect_err(|_| space.release(more, true))?;
                        self.charged += more;
                    }
                }
            }
            Place::Lower(_) => return Err(Errno::EIO),
        }
        if !keep {
            self.size = self.size.max(end);
        }
        if kind == falloc::ZERO_RANGE {
            // What is zero has its room all the same.
            return self.allocate(space, mode & falloc::KEEP_SIZE, offset, len);
        }
        Ok(())
    }

    /// SEEK_DATA, or SEEK_HOLE when `hole`. ENXIO beyond the end.
    pub fn seek(&self, offset: u64, hole: bool) -> Result<u64> {
        if offset >= self.size {
            return Err(Errno::ENXIO);
        }
        let in_object = |object: &dyn MemoryObject| Ok(object.seek(offset, hole)?.min(self.size));
        let pages = match &self.place {
            Place::Heap(pages) => pages,
            Place::Object(object, _) => return in_object(&**object),
            Place::Lower(lower) => return in_object(&*lower.reader()?),
        };
        let mut number = offset / PAGE as u64;
        if hole {
            while pages.contains_key(&number) {
                number += 1;
            }
            return Ok((number * PAGE as u64).clamp(offset, self.size));
        }
        match pages.range(number..).next() {
            Some((found, _)) => Ok((found * PAGE as u64).max(offset)),
            None => Err(Errno::ENXIO),
        }
    }

    /// The object to map, of which the bytes `from..to` count from now on: the file moves to one if it is not there yet. ENODEV on a machine
    /// without any, ENOMEM.
    pub fn map(&mut self, space: &Space, for_write: bool, from: u64, to: u64) -> Result<Arc<dyn MemoryObject>> {
        if for_write {
            self.own(space, self.size, &|| false)?;
        }
        if let Place::Lower(lower) = &self.place {
            return Ok(lower.reader()?);
        }
        self.move_to_object(space)?;
        let Place::Object(object, coverage) = &mut self.place else { return Err(Errno::ENODEV) };
        let more = coverage.to_map(from, to, self.size);
        space.charge(more, true).map_err(|_| Errno::ENOMEM)?;
        coverage.map(from, to);
        self.charged += more;
        Ok(object.object())
    }

    /// Whether what is mapped now is a lower file that nothing in the sandbox can change.
    pub fn is_frozen(&self) -> bool {
        matches!(&self.place, Place::Lower(lower) if lower.is_frozen())
    }

    /// Copies a lower file's first `keep` bytes here, so that it may be changed. EINTR, with nothing changed, once `stop` is true.
    pub fn own(&mut self, space: &Space, keep: u64, stop: &dyn Fn() -> bool) -> Result<()> {
        let Place::Lower(lower) = &self.place else { return Ok(()) };
        let keep = keep.min(self.size);
        if keep == 0 {
            self.place = Place::Heap(BTreeMap::new());
            return Ok(());
        }
        let from = lower.reader()?;
        let pages = keep.div_ceil(PAGE as u64);
        space.charge(pages, true)?;
        let copied = (|| {
            let to = anonymous(space)?;
            objectio::copy(&*from, &*to, keep, stop)?;
            to.truncate(self.size)?;
            Ok(to)
        })();
        let to = copied.inspect_err(|_| space.release(pages, true))?;
        let mut coverage = Coverage::default();
        coverage.write(0, keep);
        self.place = Place::Object(Held::new(to), coverage);
        self.charged = pages;
        Ok(())
    }

    fn move_to_object(&mut self, space: &Space) -> Result<()> {
        let Place::Heap(pages) = &self.place else { return Ok(()) };
        let to = match anonymous(space) {
            // On a machine without objects everything lives in the heap, and nothing can be mapped.
            Err(Errno::ENODEV) => return Ok(()),
            other => other?,
        };
        let moving = pages.len() as u64;
        space.harden(moving)?;
        let moved = (|| {
            let mut coverage = Coverage::default();
            for (number, page) in pages {
                let at = number * PAGE as u64;
                objectio::write_all(&*to, page, at)?;
                coverage.write(at, at + PAGE as u64);
            }
            to.truncate(self.size)?;
            Ok(coverage)
        })();
        let coverage = moved.inspect_err(|_| space.machine.accounts().give_firm(moving as usize * PAGE))?;
        self.place = Place::Object(Held::new(to), coverage);
        Ok(())
    }
}

fn anonymous(space: &Space) -> Result<Arc<dyn MemoryObject>> {
    space.machine.memory_object("janua-file")
}

/// Zeroes a range: whole pages become holes.
fn punch(pages: &mut BTreeMap<u64, Box<[u8]>>, offset: u64, end: u64) {
    let page = PAGE as u64;
    let (first, last) = (offset.div_ceil(page), end / page);
    if first < last {
        let mut tail = pages.split_off(&first);
        let mut beyond = tail.split_off(&last);
        pages.append(&mut beyond);
    }
    for number in [offset / page, end / page] {
        let start = number * page;
        let from = offset.clamp(start, start + page) - start;
        let to = end.clamp(start, start + page) - start;
        if from < to
            && let Some(bytes) = pages.get_mut(&number)
        {
            bytes[from as usize..to as usize].fill(0);
        }
    }
}
