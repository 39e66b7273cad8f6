//! How pages of a file go to the disk: without the file's lock while the disk is written.
//!
//! One thread at a time writes pages of a file back. It takes them out of the dirty ones and leaves word of it
//! ([`super::data::Data::writing`]); others read and write the file meanwhile, those pages too, which are dirty again then. They are
//! dirty again as well when the disk refuses them: so every fsync(2) fails until they are written, even if another thread had the
//! first error. Who moves blocks or gives pages up waits until nobody writes ([`super::fill::alone`]).

use alloc::sync::Arc;
use alloc::vec;
use core::ops::Range;
use core::sync::atomic::Ordering;

use janua_abi::linux::Result;
use janua_rt::{Ending, MutexGuard};

use super::Shared;
use super::data::{Locked, PAGE, RUN};
use super::fill::{Transfer, report, wait};

/// Writes pages back that are dirty when this begins, with those that shared mappings have stored into; where the machine does not
/// report these, those that such may have changed only with `mapped`. `alone` within [`super::fill::alone`].
pub fn flush(data: &mut Locked<'_>, shared: &Shared, mapped: bool, alone: bool) -> Result<()> {
    data.collect_stored(shared, mapped);
    // Upwards once: what becomes dirty again behind this is a matter of the next time, or it might never end.
    let mut at = 0;
    loop {
        settle(data, shared, alone);
        let Some(run) = data.dirty.first_in(at..u64::MAX) else { return Ok(()) };
        at = run.end.min(run.start + RUN);
        write(data, shared, run.start..at)?;
    }
}

/// Waits until nobody writes pages of the file back; unless `alone`, until its blocks stay, too.
pub fn settle(data: &mut Locked<'_>, shared: &Shared, alone: bool) {
    loop {
        if let Some(writing) = data.writing.clone() {
            // A failure is that thread's; the pages are dirty again.
            let _ = wait(data, shared, &writing.ending);
        } else if let Some(moving) = data.moving.clone().filter(|_| !alone) {
            let _ = wait(data, shared, &moving);
        } else {
            return;
        }
    }
}

/// Writes dirty pages to the disk. For a caller that has the lock since it [settled](settle). When this fails they are still dirty.
pub fn write(data: &mut Locked<'_>, shared: &Shared, run: Range<u64>) -> Result<()> {
    let (from, to) = (run.start * PAGE, (run.end * PAGE).min(data.size));
    if from >= to {
        data.clean(shared, run);
        return Ok(());
    }
    // As long as this is here they stay.
    let here = data.pages(shared)?;
    let mut bytes = vec![0; (to - from) as usize];
    here.object.read(from, &mut bytes)?;
    data.dirty.remove(run.clone());
    let writing = Arc::new(Transfer { pages: run.clone(), ending: Ending::default() });
    data.writing = Some(writing.clone());
    let number = data.number;
    let written = MutexGuard::unlocked(data, || shared.change_data(number, |core| core.fs.write_inode(number, from, &bytes)));
    data.writing = None;
    if written.is_ok() {
        data.on_disk = data.on_disk.max(to);
        data.rewritten = true;
    } else {
        data.mark_dirty(shared, run.clone());
    }
    // They were counted until now, for the room that is promised to them.
    shared.dirty_pages.fetch_sub(run.end - run.start, Ordering::Relaxed);
    report(shared, &writing.ending, Ok(()));
    written
}
