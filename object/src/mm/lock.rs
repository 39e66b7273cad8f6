//! mlock(2) and its variants: locks are counted against RLIMIT_MEMLOCK and shown; pages are made present, and whether they may be
//! swapped out is the host's affair.

use alloc::vec::Vec;

use janua_abi::linux::mman::*;
use janua_abi::linux::{Errno, Result};

use super::vma::{Source, VmFlags};
use super::{Killed, Limits, Locked, MAX_MAP_COUNT, Mm, round_up};

impl Mm {
    /// mlock(2), mlock2(2): `on_fault` leaves absent pages alone until they are touched.
    pub fn lock(&self, addr: usize, len: usize, on_fault: bool, limits: &Limits, killed: Killed<'_>) -> Result<()> {
        if !limits.may_lock && limits.memlock == 0 {
            return Err(Errno::EPERM);
        }
        let (start, end) = covering(addr, len)?;
        if start == end {
            return Ok(());
        }
        let add = if on_fault { VmFlags::LOCKED | VmFlags::LOCKONFAULT } else { VmFlags::LOCKED };
        let mut state = self.lock_state();
        let already = state.list.bytes(start, end, |vma| vma.flags.contains(VmFlags::LOCKED));
        if !state.may_lock(limits, (end - start).saturating_sub(already)) {
            return Err(Errno::ENOMEM);
        }
        let covered = state.list.is_covered(start, end);
        if state.list.len() + state.list.cuts(start, end) > MAX_MAP_COUNT {
            return Err(Errno::ENOMEM);
        }
        state.list.change(start, end, |vma| vma.flags = (vma.flags - VmFlags::LOCKONFAULT) | add);
        if !on_fault {
            self.populate_all(state, start, end, killed);
        }
        if covered { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    pub fn unlock(&self, addr: usize, len: usize) -> Result<()> {
        let (start, end) = covering(addr, len)?;
        let mut state = self.lock_state();
        if state.list.len() + state.list.cuts(start, end) > MAX_MAP_COUNT {
            return Err(Errno::ENOMEM);
        }
        let covered = start == end || state.list.is_covered(start, end);
        state.list.change(start, end, |vma| vma.flags -= VmFlags::LOCKED | VmFlags::LOCKONFAULT);
        if covered { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// mlockall(2) with MCL_* flags.
    pub fn lock_all(&self, flags: u32, limits: &Limits, killed: Killed<'_>) -> Result<()> {
        if flags == 0 || flags & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 || flags == MCL_ONFAULT {
            return Err(Errno::EINVAL);
        }
        if !limits.may_lock && limits.memlock == 0 {
            return Err(Errno::EPERM);
        }
        let add = if flags & MCL_ONFAULT != 0 { VmFlags::LOCKED | VmFlags::LOCKONFAULT } else { VmFlags::LOCKED };
        let mut state = self.lock_state();
        let all = state.list.bytes(0, usize::MAX, |_| true);
        if flags & MCL_CURRENT != 0 && !limits.may_lock && all as u64 > limits.memlock {
            return Err(Errno::ENOMEM);
        }
        state.lock_future = if flags & MCL_FUTURE != 0 { add } else { VmFlags::empty() };
        if flags & MCL_CURRENT != 0 {
            state.list.change(0, usize::MAX, |vma| vma.flags = (vma.flags - VmFlags::LOCKONFAULT) | add);
            if flags & MCL_ONFAULT == 0 {
                self.populate_all(state, 0, usize::MAX, killed);
            }
        }
        Ok(())
    }

    /// Makes the pages of `start..end` present that may be accessed, with the list unlocked.
    fn populate_all(&self, state: Locked<'_>, start: usize, end: usize, killed: Killed<'_>) {
        let parts = state.list.touching(start, end).filter(|(_, vma)| {
            // What the kernel itself has there is present or has no pages.
            vma.flags.intersects(VmFlags::ACCESS) && !matches!(vma.source, Source::Special(_))
        });
        let parts: Vec<_> = parts.map(|(at, vma)| (at.max(start), vma.end.min(end), vma.flags)).collect();
        drop(state);
        for (from, to, flags) in parts {
            self.populate(&*self.space, from, to - from, flags, killed);
        }
    }

    pub fn unlock_all(&self) {
        let mut state = self.lock_state();
        state.lock_future = VmFlags::empty();
        state.list.change(0, usize::MAX, |vma| vma.flags -= VmFlags::LOCKED | VmFlags::LOCKONFAULT);
    }
}

/// The whole pages that `addr..addr+len` touches.
fn covering(addr: usize, len: usize) -> Result<(usize, usize)> {
    let start = addr & !(PAGE_SIZE - 1);
    let len = round_up(len.checked_add(addr - start).ok_or(Errno::EINVAL)?).ok_or(Errno::EINVAL)?;
    Ok((start, start.checked_add(len).ok_or(Errno::EINVAL)?))
}
