//! Ranges taken out of a file and put into one (fallocate(2)): what is behind them moves.

use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::fcntl::falloc::{KEEP_SIZE, PUNCH_HOLE};
use janua_abi::linux::{Errno, Result};
use janua_port::MemoryObject;

use super::{Data, PAGE, Place, SIZE_MOST};
use crate::fs::hostio::CHUNK;
use crate::fs::memory::Space;
use crate::fs::objectio::write_all;

const PAGE_BYTES: u64 = PAGE as u64;

/// The end of a range that may move others. EINVAL unless it is of whole pages.
fn end_of(offset: u64, len: u64) -> Result<u64> {
    if !(offset | len).is_multiple_of(PAGE_BYTES) {
        return Err(Errno::EINVAL);
    }
    offset.checked_add(len).filter(|end| *end <= SIZE_MOST).ok_or(Errno::EFBIG)
}

impl Data {
    /// FALLOC_FL_COLLAPSE_RANGE. EINVAL for a range that is not of whole pages or reaches the end: that is what truncate(2) is for.
    pub fn collapse(&mut self, space: &Space, offset: u64, len: u64) -> Result<()> {
        let end = end_of(offset, len)?;
        if end >= self.size {
            return Err(Errno::EINVAL);
        }
        self.own(space, self.size, &|| false)?;
        self.changes += 1;
        match &mut self.place {
            Place::Heap(pages) => {
                let mut out = pages.split_off(&(offset / PAGE_BYTES));
                let behind = out.split_off(&(end / PAGE_BYTES));
                pages.extend(behind.into_iter().map(|(number, page)| (number - len / PAGE_BYTES, page)));
                space.release(out.len() as u64, false);
                self.charged -= out.len() as u64;
            }
            Place::Object(object, coverage) => {
                for part in parts(&**object, end, self.size)? {
                    part.shift(&**object, part.start - len)?;
                }
                object.truncate(self.size - len)?;
                let gone = coverage.collapse(offset, end, self.size);
                space.release(gone, true);
                self.charged -= gone;
            }
            Place::Lower(_) => return Err(Errno::EIO),
        }
        self.size -= len;
        Ok(())
    }

    /// FALLOC_FL_INSERT_RANGE: a hole. EINVAL for one that is not of whole pages or begins at or behind the end.
    pub fn insert(&mut self, space: &Space, offset: u64, len: u64) -> Result<()> {
        let end = end_of(offset, len)?;
        let size = self.size.checked_add(len).filter(|size| *size <= SIZE_MOST).ok_or(Errno::EFBIG)?;
        if offset >= self.size {
            return Err(Errno::EINVAL);
        }
        self.own(space, self.size, &|| false)?;
        self.changes += 1;
        match &mut self.place {
            Place::Heap(pages) => {
                let behind = pages.split_off(&(offset / PAGE_BYTES));
                pages.extend(behind.into_iter().map(|(number, page)| (number + len / PAGE_BYTES, page)));
            }
            Place::Object(object, coverage) => {
                let mut after = coverage.clone();
                let more = after.insert(offset, end, self.size);
                space.charge(more, true)?;
                let parts = parts(&**object, offset, self.size)?;
                // The room first, so that there is no error half-way.
                let room = parts
                    .iter()
                    .filter(|part| part.data)
                    .try_for_each(|part| object.allocate(0, part.start + len, part.end - part.start));
                if let Err(errno) = room.and_then(|()| object.truncate(size)) {
                    space.release(more, true);
                    object.truncate(self.size)?;
                    return Err(errno);
                }
                self.charged += more;
                *coverage = after;
                for part in parts.iter().rev() {
                    part.shift(&**object, part.start + len)?;
                }
                object.allocate(PUNCH_HOLE | KEEP_SIZE, offset, len)?;
            }
            Place::Lower(_) => return Err(Errno::EIO),
        }
        self.size = size;
        Ok(())
    }
}

/// A part of a file that is data throughout, or a hole.
struct Part {
    start: u64,
    end: u64,
    data: bool,
}

/// What `from..size` consists of, in order.
fn parts(object: &dyn MemoryObject, from: u64, size: u64) -> Result<Vec<Part>> {
    let next = |at: u64, hole: bool| match object.seek(at, hole) {
        Ok(next) => Ok(next.min(size)),
        Err(Errno::ENXIO) => Ok(size),
        Err(errno) => Err(errno),
    };
    let mut parts = Vec::new();
    let mut at = from;
    while at < size {
        let data = next(at, false)?;
        if data > at {
            parts.push(Part { start: at, end: data, data: false });
        }
        if data < size {
            at = next(data, true)?.max(data + 1);
            parts.push(Part { start: data, end: at, data: true });
        } else {
            at = size;
        }
    }
    Ok(parts)
}

impl Part {
    /// Moves it to `to`. What it leaves stays as it was.
    fn shift(&self, object: &dyn MemoryObject, to: u64) -> Result<()> {
        let len = self.end - self.start;
        if !self.data {
            return object.allocate(PUNCH_HOLE | KEEP_SIZE, to, len);
        }
        let mut chunk = vec![0; usize::try_from(len).unwrap_or(usize::MAX).min(CHUNK)];
        let mut done = 0;
        while done < len {
            let want = chunk.len().min((len - done) as usize);
            // Away from where it goes, since the two may overlap.
            let at = if to < self.start { done } else { len - done - want as u64 };
            let mut have = 0;
            while have < want {
                match object.read(self.start + at + have as u64, &mut chunk[have..want])? {
                    0 => return Err(Errno::EIO),
                    n => have += n,
                }
            }
            write_all(object, &chunk[..want], to + at)?;
            done += want as u64;
        }
        Ok(())
    }
}
