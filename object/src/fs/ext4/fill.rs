//! How pages of a file come from the disk: without the file's lock, or the file system's, while the disk is read.
//!
//! Who brings pages leaves word of it in the file ([`Transfer`]). Who wants one of them waits until they are there, and hears of a failure
//! that is his as well: of no page but such as he wants. Others read, write and look at the file meanwhile. Blocks that are being read
//! stay where they are, for who would move them waits until nobody reads ([`alone`]); that is the file's own affair, since a file gives up
//! its blocks itself, or nobody has it any more.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::num::{NonZeroU16, NonZeroU32};
use core::ops::Range;

use janua_abi::linux::{Errno, Result};
use janua_port::block::SECTOR;
use janua_rt::{Ending, MutexGuard};
use rsext4::{Ext4Result, FileExtentState, FileExtentTarget, InodeNumber};

use super::data::{Locked, PAGE, RUN, pages};
use super::ranges::Ranges;
use super::{Core, Shared};

/// Extents asked for at a time.
const EXTENTS: usize = 64;

/// Pages that somebody moves between the disk and the memory.
pub struct Transfer {
    pub(super) pages: Range<u64>,
    pub(super) ending: Ending,
}

/// An ending that is no error: too large for one's number.
const DONE: NonZeroU32 = NonZeroU32::MAX;

pub(super) fn report(shared: &Shared, ending: &Ending, result: Result<()>) {
    let how = result.map_or_else(|errno| NonZeroU32::from(errno.0), |()| DONE);
    ending.report(how, |word| shared.machine.park().unpark(word, u32::MAX));
}

/// Waits without the file's lock.
pub(super) fn wait(data: &mut Locked<'_>, shared: &Shared, ending: &Ending) -> Result<()> {
    let how = MutexGuard::unlocked(data, || ending.wait(|word, expected| shared.machine.park().park(word, expected, None)));
    match NonZeroU16::try_from(how) {
        Ok(errno) => Err(Errno(errno)),
        Err(_) => Ok(()),
    }
}

/// Who is bringing one of these pages: the one who has the first of them.
fn under_way(data: &Locked<'_>, wanted: Range<u64>) -> Option<Arc<Transfer>> {
    let touches = |filling: &&Arc<Transfer>| filling.pages.start < wanted.end && wanted.start < filling.pages.end;
    data.fillings.iter().filter(touches).min_by_key(|filling| filling.pages.start).cloned()
}

/// Makes pages valid, as far as the file reaches; `alone` within [`alone`]. They are when this returns, under the lock. ENOMEM, EIO.
pub fn bring(data: &mut Locked<'_>, shared: &Shared, wanted: Range<u64>, alone: bool) -> Result<()> {
    // Pages that are there stay as long as somebody has these.
    let mut held = data.pages.clone();
    while let Some(gap) = data.lacks(wanted.clone()) {
        let other = under_way(data, gap.clone());
        if let Some(other) = other.as_ref().filter(|other| other.pages.start <= gap.start) {
            let brought = wait(data, shared, &other.ending);
            if wanted.start <= other.pages.start && other.pages.end <= wanted.end {
                brought?;
            }
        } else if let Some(moving) = data.moving.clone().filter(|_| !alone) {
            wait(data, shared, &moving)?;
        } else {
            let end = other.map_or(gap.end, |other| other.pages.start).min(gap.start + RUN);
            fill(data, shared, gap.start..end)?;
        }
        held = data.pages.clone();
    }
    drop(held);
    Ok(())
}

/// Before a write: makes some pages valid, and waits for those of `written` that are being brought, which would come over what is written.
/// The caller has the pages, so that all stays so while it has the lock.
pub fn prepare(data: &mut Locked<'_>, shared: &Shared, needed: &[Option<u64>], written: Range<u64>) -> Result<()> {
    loop {
        let lacking = needed.iter().flatten().copied().find(|page| data.lacks(*page..page + 1).is_some());
        if let Some(page) = lacking {
            bring(data, shared, page..page + 1, false)?;
        } else if let Some(other) = under_way(data, written.clone()) {
            // Its failure is the business of who wants to read.
            let _ = wait(data, shared, &other.ending);
        } else {
            return Ok(());
        }
    }
}

/// Acts while nobody brings pages of the file or writes them back, but `act` itself: its blocks may move. For whose turn it is to change the file.
pub fn alone<T>(data: &mut Locked<'_>, shared: &Shared, act: impl FnOnce(&mut Locked<'_>) -> Result<T>) -> Result<T> {
    let over = Arc::<Ending>::default();
    data.moving = Some(over.clone());
    while let Some(other) = data.fillings.first().or(data.writing.as_ref()).cloned() {
        let _ = wait(data, shared, &other.ending);
    }
    let result = act(data);
    data.moving = None;
    report(shared, &over, Ok(()));
    result
}

/// Brings pages of which none is valid or on its way.
fn fill(data: &mut Locked<'_>, shared: &Shared, gap: Range<u64>) -> Result<()> {
    let bytes = gap.start * PAGE..(gap.end * PAGE).min(data.on_disk);
    if bytes.is_empty() {
        data.valid.insert(gap);
        return Ok(());
    }
    let here = data.pages(shared)?;
    let number = data.number;
    let filling = Arc::new(Transfer { pages: gap.clone(), ending: Ending::default() });
    data.fillings.push(filling.clone());
    let read = MutexGuard::unlocked(data, || read(shared, number, bytes.clone()));
    let filled = read.and_then(|(read, found)| {
        // Otherwise the file was given up, with all its pages.
        if data.pages.as_ref().is_some_and(|pages| Arc::ptr_eq(pages, &here)) {
            data.put(&here, bytes, &read, found)?;
            data.valid.insert(gap);
        }
        Ok(())
    });
    data.fillings.retain(|other| !Arc::ptr_eq(other, &filling));
    report(shared, &filling.ending, filled);
    filled
}

/// Reads what the disk has of some bytes from a border of pages on, and of which pages that is. Its holes, and what is behind its end of the file,
/// are not among those.
fn read(shared: &Shared, number: InodeNumber, bytes: Range<u64>) -> Result<(Vec<u8>, Ranges)> {
    let mut out = vec![0; (pages(bytes.end - bytes.start) * PAGE) as usize];
    let mut found = Ranges::new();
    let mut at = bytes.start;
    loop {
        let part = shared.look(|core| {
            let Some((part, place)) = written(core, number, at..bytes.end)? else { return Ok(None) };
            if !core.held.contains(&number.raw()) {
                return Ok(Some((part, Some(place))));
            }
            let out = &mut out[(part.start - bytes.start) as usize..(part.end - bytes.start) as usize];
            core.fs.read_inode(number, part.start, out)?;
            Ok(Some((part, None)))
        })?;
        let Some((part, place)) = part else { return Ok((out, found)) };
        if let Some(place) = place {
            let from = (part.start - bytes.start) as usize;
            let len = ((part.end - part.start) as usize).next_multiple_of(SECTOR);
            // Whatever the disk calls it; a place that it does not have is the file system's fault.
            shared.disk.read(place / SECTOR as u64, &mut out[from..from + len]).map_err(|_| Errno::EIO)?;
        }
        found.insert(part.start / PAGE..pages(part.end));
        at = part.end;
    }
}

/// The first part of a range of bytes that the disk has data for, and where that begins on the disk, in bytes.
pub fn written(core: &mut Core, number: InodeNumber, range: Range<u64>) -> Ext4Result<Option<(Range<u64>, u64)>> {
    let mut at = range.start;
    while at < range.end {
        let map = core.fs.inode_extents(number, at, range.end - at, FileExtentTarget::Data, EXTENTS)?;
        for extent in &map.extents {
            let end = extent.logical_start.saturating_add(extent.length);
            if extent.state == FileExtentState::Initialized && end > at {
                let start = extent.logical_start.max(at);
                let place = extent.physical_start.saturating_add(start - extent.logical_start);
                return Ok(Some((start..end.min(range.end), place)));
            }
            at = at.max(end);
        }
        if map.complete || map.extents.is_empty() {
            break;
        }
    }
    Ok(None)
}
