//! madvise(2), msync(2), mincore(2).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use janua_abi::linux::mman::*;
use janua_abi::linux::{Errno, Result};
use janua_port::Space;

use super::jail::Change;
use super::vma::{Source, VmFlags, Vma};
use super::{Killed, MAX_MAP_COUNT, Mm, State, round_up};
use crate::file::OpenFile;

/// What an advice does to the list's flags.
fn flag_change(advice: u32) -> Option<(VmFlags, VmFlags)> {
    let none = VmFlags::empty();
    Some(match advice {
        MADV_NORMAL => (none, VmFlags::RAND_READ | VmFlags::SEQ_READ),
        MADV_RANDOM => (VmFlags::RAND_READ, VmFlags::SEQ_READ),
        MADV_SEQUENTIAL => (VmFlags::SEQ_READ, VmFlags::RAND_READ),
        MADV_DONTFORK => (VmFlags::DONTFORK, none),
        MADV_DOFORK => (none, VmFlags::DONTFORK),
        MADV_WIPEONFORK => (VmFlags::WIPEONFORK, none),
        MADV_KEEPONFORK => (none, VmFlags::WIPEONFORK),
        MADV_DONTDUMP => (VmFlags::DONTDUMP, none),
        MADV_DODUMP => (none, VmFlags::DONTDUMP),
        MADV_MERGEABLE => (VmFlags::MERGEABLE, none),
        MADV_UNMERGEABLE => (none, VmFlags::MERGEABLE),
        MADV_HUGEPAGE => (VmFlags::HUGEPAGE, VmFlags::NOHUGEPAGE),
        MADV_NOHUGEPAGE => (VmFlags::NOHUGEPAGE, VmFlags::HUGEPAGE),
        _ => return None,
    })
}

/// Gives an advice that takes as long as there are pages, a part at a time. EINTR when the caller has been killed.
pub(super) fn advise_in_parts(space: &dyn Space, addr: usize, len: usize, advice: u32, killed: Killed<'_>) -> Result<()> {
    /// Bytes, a multiple of every page's.
    const PART: usize = 32 << 20;
    for done in (0..len).step_by(PART) {
        if done > 0 && killed() {
            return Err(Errno::EINTR);
        }
        space.advise(addr + done, PART.min(len - done), advice)?;
    }
    Ok(())
}

/// EINVAL (or EACCES) when the mapping cannot take the advice.
fn accepts(vma: &Vma, advice: u32) -> Result<()> {
    let ok = match advice {
        _ if vma.is_jails() => false,
        MADV_DONTNEED | MADV_PAGEOUT | MADV_COLD => !vma.flags.contains(VmFlags::LOCKED),
        MADV_FREE => vma.is_anon() && !vma.is_shared() && !vma.flags.contains(VmFlags::LOCKED),
        MADV_WIPEONFORK => vma.is_anon() && !vma.is_shared(),
        MADV_GUARD_INSTALL => !vma.flags.contains(VmFlags::LOCKED) && !matches!(vma.source, Source::Special(_)),
        MADV_DOFORK | MADV_DODUMP => !matches!(vma.source, Source::Special(_)),
        MADV_REMOVE => {
            if vma.flags.contains(VmFlags::LOCKED) || vma.is_anon() && !vma.is_shared() {
                return Err(Errno::EINVAL);
            }
            if !vma.is_shared() || !vma.flags.contains(VmFlags::MAY_WRITE) {
                return Err(Errno::EACCES);
            }
            true
        }
        _ => true,
    };
    if ok { Ok(()) } else { Err(Errno::EINVAL) }
}

/// What an advice has to do when the list is unlocked.
#[derive(Default)]
struct HeldOver {
    ranges: Vec<(usize, usize)>,
    /// Holes to punch: the file, where, and how long.
    holes: Vec<(Arc<OpenFile>, u64, usize)>,
}

impl Mm {
    /// madvise(2). A hole returns ENOMEM, after the mapped parts have taken the advice.
    pub fn advise(&self, addr: usize, len: usize, advice: u32, killed: Killed<'_>) -> Result<()> {
        match advice {
            MADV_NORMAL..=MADV_DONTNEED | MADV_FREE..=MADV_COLLAPSE | MADV_GUARD_INSTALL | MADV_GUARD_REMOVE => {}
            _ => return Err(Errno::EINVAL),
        }
        let (start, end) = self.range(addr, len)?;
        if start == end {
            return Ok(());
        }
        let mut state = self.lock_state();
        let covered = state.list.is_covered(start, end);
        let parts: Vec<(usize, usize, Vma)> =
            state.list.touching(start, end).map(|(at, vma)| (at.max(start), vma.end.min(end), vma.clone())).collect();
        if flag_change(advice).is_some() && state.list.len() + state.list.cuts(start, end) > MAX_MAP_COUNT {
            return Err(Errno::ENOMEM);
        }
        if matches!(advice, MADV_POPULATE_READ | MADV_POPULATE_WRITE) && !covered {
            return Err(Errno::ENOMEM);
        }
        if matches!(advice, MADV_DONTNEED | MADV_DONTNEED_LOCKED | MADV_FREE | MADV_REMOVE | MADV_POPULATE_WRITE) {
            self.changes(&mut state, start, end, Change::Dropped)?;
        }
        let mut held_over = HeldOver::default();
        let mut refusal = Ok(());
        for (from, to, vma) in parts {
            refusal = self.advise_part(&mut state, from..to, &vma, advice, &mut held_over, killed);
            if refusal.is_err() {
                break;
            }
        }
        drop(state);
        // What is before a mapping that refuses has taken the advice.
        self.advise_unlocked(held_over, advice, killed)?;
        refusal?;
        if covered { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Gives an advice to `range` of one mapping, or notes what is to be done with the list unlocked.
    fn advise_part(
        &self,
        state: &mut State,
        range: Range<usize>,
        vma: &Vma,
        advice: u32,
        later: &mut HeldOver,
        killed: Killed<'_>,
    ) -> Result<()> {
        accepts(vma, advice)?;
        let space = &*self.space;
        let (from, to) = (range.start, range.end);
        match flag_change(advice) {
            Some((set, clear)) => {
                // Ksm and dump flags are the kernel's own; the others the host must honour for them to mean anything.
                if !matches!(advice, MADV_DONTDUMP | MADV_DODUMP) {
                    space.advise(from, to - from, advice)?;
                }
                state.list.change(from, to, |vma| vma.flags = (vma.flags - clear) | set);
            }
            None if advice == MADV_REMOVE => {
                // Shared anonymous memory is the host's; a file's hole is punched without the lock.
                match &vma.source {
                    Source::File(mapped) => {
                        let offset = vma.offset.wrapping_add((from - self.start_of(state, from)) as u64);
                        later.holes.push((mapped.file.clone(), offset, to - from));
                    }
                    _ => space.advise(from, to - from, advice)?,
                }
            }
            // May wait for a disk.
            None if matches!(advice, MADV_WILLNEED | MADV_POPULATE_READ | MADV_POPULATE_WRITE) => later.ranges.push((from, to)),
            // A mark for each page of a guard is in page tables, which the host makes.
            None if matches!(advice, MADV_GUARD_INSTALL | MADV_GUARD_REMOVE) => {
                advise_in_parts(space, from, to - from, advice, killed)?;
            }
            None => {
                if matches!(advice, MADV_DONTNEED | MADV_DONTNEED_LOCKED) && vma.file().is_some() {
                    // First: where that fails the pages are as they were.
                    self.map_copies_anew(state, from, to, vma)?;
                }
                space.advise(from, to - from, advice)?;
            }
        }
        Ok(())
    }

    /// What an advice does without the list's lock.
    fn advise_unlocked(&self, later: HeldOver, advice: u32, killed: Killed<'_>) -> Result<()> {
        const PUNCH_HOLE_KEEP_SIZE: u32 = 3;
        for (from, to) in later.ranges {
            match advice {
                MADV_WILLNEED => self.space.advise(from, to - from, advice)?,
                _ => advise_in_parts(&*self.space, from, to - from, advice, killed)?,
            }
        }
        for (file, offset, len) in later.holes {
            file.ops.allocate(&file, PUNCH_HOLE_KEEP_SIZE, offset, len as u64)?;
        }
        Ok(())
    }

    /// What the guard has copied of a file's pages that have been dropped comes back with the file's contents.
    fn map_copies_anew(&self, state: &State, from: usize, to: usize, vma: &Vma) -> Result<()> {
        let Some(guard) = &self.guard else { return Ok(()) };
        for (at, end) in guard.copies(from, to) {
            let offset = vma.offset_of(self.start_of(state, at), at);
            self.space.map(at, end - at, vma.flags.prot(), &vma.backing(offset, end - at)?)?;
        }
        Ok(())
    }

    fn start_of(&self, state: &State, addr: usize) -> usize {
        state.list.find(addr).map_or(addr, |(start, _)| start)
    }

    /// msync(2). ENOMEM for a hole, after the mapped parts have been written back; EBUSY for MS_INVALIDATE on locked memory.
    pub fn sync(&self, addr: usize, len: usize, flags: u32) -> Result<()> {
        if flags & !(MS_ASYNC | MS_INVALIDATE | MS_SYNC) != 0
            || !addr.is_multiple_of(PAGE_SIZE)
            || flags & (MS_ASYNC | MS_SYNC) == MS_ASYNC | MS_SYNC
        {
            return Err(Errno::EINVAL);
        }
        let (start, end) = self.range(addr, len).map_err(|_| Errno::ENOMEM)?;
        if start == end {
            return Ok(());
        }
        let state = self.lock_state();
        let covered = state.list.is_covered(start, end);
        let parts: Vec<(usize, usize, VmFlags, Option<Arc<OpenFile>>)> = state
            .list
            .touching(start, end)
            .map(|(at, vma)| (at.max(start), vma.end.min(end), vma.flags, vma.file().filter(|_| vma.is_shared()).cloned()))
            .collect();
        drop(state);
        let space = &*self.space;
        for (from, to, vma_flags, shared_file) in parts {
            if flags & MS_INVALIDATE != 0 && vma_flags.contains(VmFlags::LOCKED) {
                return Err(Errno::EBUSY);
            }
            if let Some(file) = shared_file.filter(|_| flags & MS_SYNC != 0) {
                space.sync(from, to - from, flags)?;
                file.ops.sync_mapping()?;
            }
        }
        if covered { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// mincore(2): one byte for each page, bit 0 set when resident. ENOMEM for a hole; EINTR when the caller has been killed.
    pub fn resident(
        &self,
        addr: usize,
        len: usize,
        killed: Killed<'_>,
        mut emit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        let len = round_up(len).ok_or(Errno::ENOMEM)?;
        if len == 0 {
            return Ok(());
        }
        if !self.is_user(addr, len) {
            return Err(Errno::ENOMEM);
        }
        let mut buffer = [0u8; 512];
        let mut at = addr;
        while at < addr + len {
            if at > addr && killed() {
                return Err(Errno::EINTR);
            }
            let pages = ((addr + len - at) / PAGE_SIZE).min(buffer.len());
            let part = pages * PAGE_SIZE;
            {
                let state = self.lock_state();
                if !state.list.is_covered(at, at + part) {
                    return Err(Errno::ENOMEM);
                }
                self.space.resident(at, part, &mut buffer[..pages])?;
            }
            emit(&buffer[..pages])?;
            at += part;
        }
        Ok(())
    }
}
