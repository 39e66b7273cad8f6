//! madvise(2), msync(2), mincore(2).

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::mman::*;
use janua_abi::linux::{Errno, Result};
use janua_port::Space;

use super::jail::Change;
use super::vma::{Source, VmFlags, Vma};
use super::{Killed, MAX_MAP_COUNT, Mm, round_up};
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
        let space = &*self.space;
        let mut holes = Vec::new();
        let mut later = Vec::new();
        for (from, to, vma) in parts {
            accepts(&vma, advice)?;
            match flag_change(advice) {
                Some((set, clear)) => {
                    // Ksm and dump flags are the kernel's own; the others the host must honour for them to mean anything.
                    if !matches!(advice, MADV_DONTDUMP | MADV_DODUMP) {
                        space.advise(from, to - from, advice)?;
                    }
                    state.list.change(from, to, |vma| vma.flags = (vma.flags - clear) | set);
                }
                None if advice == MADV_REMOVE => {
                    // Shared anonymous memory is the host's; a file's hole is punched below, without the lock.
                    match &vma.source {
                        Source::File(mapped) => {
                            holes.push((
                                mapped.file.clone(),
                                vma.offset.wrapping_add((from - self.start_of(&state, from)) as u64),
                                to - from,
                            ));
                        }
                        _ => space.advise(from, to - from, advice)?,
                    }
                }
                // May wait for a disk.
                None if matches!(advice, MADV_WILLNEED | MADV_POPULATE_READ | MADV_POPULATE_WRITE) => later.push((from, to)),
                // A mark for each page of a guard is in page tables, which the host makes.
                None if matches!(advice, MADV_GUARD_INSTALL | MADV_GUARD_REMOVE) => {
                    advise_in_parts(space, from, to - from, advice, killed)?;
                }
                None => {
                    space.advise(from, to - from, advice)?;
                    if matches!(advice, MADV_DONTNEED | MADV_DONTNEED_LOCKED) && vma.file().is_some() {
                        self.map_copies_anew(&state, from, to, &vma)?;
                    }
                }
            }
        }
        drop(state);
        for (from, to) in later {
            match advice {
                MADV_WILLNEED => space.advise(from, to - from, advice)?,
                _ => advise_in_parts(space, from, to - from, advice, killed)?,
            }
        }
        const PUNCH_HOLE_KEEP_SIZE: u32 = 3;
        for (file, offset, len) in holes {
            file.ops.allocate(&file, PUNCH_HOLE_KEEP_SIZE, offset, len as u64)?;
        }
        if covered { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// What the guard has copied of a file's pages that have been dropped comes back with the file's contents.
    fn map_copies_anew(&self, state: &super::State, from: usize, to: usize, vma: &Vma) -> Result<()> {
        let Some(guard) = &self.guard else { return Ok(()) };
        for (at, end) in guard.copies(from, to) {
            let offset = vma.offset_of(self.start_of(state, at), at);
            self.space.map(at, end - at, vma.flags.prot(), &vma.backing(offset, end - at)?)?;
        }
        Ok(())
    }

    fn start_of(&self, state: &super::State, addr: usize) -> usize {
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
