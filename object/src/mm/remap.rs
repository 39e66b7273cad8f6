//! mremap(2).

use alloc::sync::Arc;

use janua_abi::linux::mman::*;
use janua_abi::linux::{Errno, Result};
use janua_port::Space;

use super::jail::Change;
use super::vma::{Source, VmFlags, Vma};
use super::{Killed, Limits, MAX_MAP_COUNT, Mm, Removed, State, round_up};

/// The arguments of mremap(2).
pub struct RemapRequest {
    pub old: usize,
    pub old_len: usize,
    pub new_len: usize,
    /// MREMAP_*.
    pub flags: u32,
    /// Where to, with MREMAP_FIXED.
    pub new: usize,
}

impl Mm {
    /// Moves or resizes a mapping: its address.
    pub fn remap(&self, request: RemapRequest, limits: &Limits, killed: Killed<'_>) -> Result<usize> {
        let RemapRequest { old, flags, new, .. } = request;
        if flags & !(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP) != 0
            || flags & MREMAP_FIXED != 0 && flags & MREMAP_MAYMOVE == 0
            || old % PAGE_SIZE != 0
        {
            return Err(Errno::EINVAL);
        }
        let old_len = round_up(request.old_len).ok_or(Errno::EINVAL)?;
        let new_len = round_up(request.new_len).filter(|&len| len != 0).ok_or(Errno::EINVAL)?;
        if flags & MREMAP_DONTUNMAP != 0 && (flags & MREMAP_MAYMOVE == 0 || old_len != new_len) {
            return Err(Errno::EINVAL);
        }
        let old_end = old.checked_add(old_len).ok_or(Errno::EINVAL)?;
        if flags & MREMAP_FIXED != 0 {
            let new_end = new.checked_add(new_len).ok_or(Errno::EINVAL)?;
            if new % PAGE_SIZE != 0 || !self.is_user(new, new_len) || old < new_end && new < old_end {
                return Err(Errno::EINVAL);
            }
        }
        let mut state = self.lock_state();
        let source_moves = state.list.touching(old, old_end.max(old + 1)).any(|(_, vma)| vma.is_jails());
        if source_moves || flags & MREMAP_FIXED != 0 && state.is_needed(new, new + new_len) {
            return Err(Errno::EFAULT);
        }
        if flags & MREMAP_FIXED != 0 {
            state.give_up_room(new, new + new_len);
        }
        let mut removed = Removed::new();
        let plan = Plan { old, old_len, new_len, flags, new };
        let result = if flags & MREMAP_FIXED != 0 && old_len == new_len {
            self.move_each(&mut state, &plan, limits, &mut removed)
        } else {
            self.remap_locked(&mut state, &plan, limits, &mut removed)
        };
        let populate = result.as_ref().ok().and_then(|&at| {
            let (_, vma) = state.list.find(at)?;
            (vma.flags & (VmFlags::LOCKED | VmFlags::LOCKONFAULT) == VmFlags::LOCKED).then_some((at, vma.flags))
        });
        drop(state);
        drop(removed);
        if let Some((at, flags)) = populate {
            self.populate(&*self.space, at, new_len, flags, killed);
        }
        result
    }

    /// A move that changes no length may take several mappings, one after the other, with the gaps between them (Linux 6.17). What
    /// has moved stays moved when a later one cannot.
    fn move_each(&self, state: &mut State, plan: &Plan, limits: &Limits, removed: &mut Removed) -> Result<usize> {
        let old_end = plan.old + plan.old_len;
        let mut old = plan.old;
        while old < old_end {
            let found = state.list.touching(old, old_end).next().map(|(start, vma)| (start.max(old), vma.end.min(old_end)));
            let Some((start, end)) = found.filter(|(start, _)| old > plan.old || *start == old) else { break };
            let part =
                Plan { old: start, old_len: end - start, new_len: end - start, new: plan.new + (start - plan.old), ..*plan };
            self.remap_locked(state, &part, limits, removed)?;
            old = end;
        }
        if old == plan.old { Err(Errno::EFAULT) } else { Ok(plan.new) }
    }

    fn remap_locked(&self, state: &mut State, plan: &Plan, limits: &Limits, removed: &mut Removed) -> Result<usize> {
        let &Plan { old, old_len, new_len, flags, new } = plan;
        let old_end = old + old_len;
        let (start, vma) = state.list.find(old).ok_or(Errno::EFAULT)?;
        let vma = vma.clone();
        let elsewhere = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) != 0;
        if !elsewhere && old_len >= new_len && old_len != 0 {
            if !state.list.is_covered(old, old_end) && old_end > vma.end {
                // Linux shrinks what is there; a length beyond the mapping is no error as long as it is cut off.
                if old + new_len > vma.end {
                    return Err(Errno::EFAULT);
                }
            }
            if old_len > new_len {
                removed.extend(self.unmap_locked(state, old + new_len, old_end)?);
            }
            return Ok(old);
        }
        // A target range is emptied, and a longer source cut, before the rest is checked: that is mremap's order.
        let mut kept_len = old_len;
        if flags & MREMAP_FIXED != 0 {
            removed.extend(self.unmap_locked(state, new, new + new_len)?);
            if old_len > new_len {
                removed.extend(self.unmap_locked(state, old + new_len, old_end)?);
                kept_len = new_len;
            }
        }
        if kept_len == 0 && !vma.is_shared() {
            return Err(Errno::EINVAL);
        }
        if matches!(vma.source, Source::Special(_)) && flags & MREMAP_DONTUNMAP != 0 {
            return Err(Errno::EINVAL);
        }
        if kept_len > vma.end - old || vma.flags.contains(VmFlags::DONTEXPAND) && new_len > kept_len {
            return Err(Errno::EFAULT);
        }
        let offset = vma.offset_of(start, old);
        if offset.checked_add(new_len as u64).is_none() {
            return Err(Errno::EINVAL);
        }
        let grow = if flags & MREMAP_DONTUNMAP != 0 || kept_len == 0 { new_len } else { new_len - kept_len };
        if vma.flags.contains(VmFlags::LOCKED) && !state.may_lock(limits, grow) {
            return Err(Errno::EAGAIN);
        }
        state.check_growth(limits, vma.flags, grow, 0)?;
        if state.list.len() + 3 > MAX_MAP_COUNT {
            return Err(Errno::ENOMEM);
        }
        state.pay(vma.flags, grow)?;
        if !elsewhere && kept_len != 0 && old + kept_len == vma.end && self.is_free_at(state, vma.end, grow) {
            self.extend(state, &vma, start, old, kept_len, grow)?;
            return Ok(old);
        }
        if flags & MREMAP_MAYMOVE == 0 {
            return Err(Errno::ENOMEM);
        }
        let target = if flags & MREMAP_FIXED != 0 {
            new
        } else if flags & MREMAP_DONTUNMAP != 0 && new != 0 && self.is_free_at(state, round_up(new).unwrap_or(0), new_len) {
            round_up(new).unwrap_or(0)
        } else {
            self.find_gap(state, new_len, PAGE_SIZE).ok_or(Errno::ENOMEM)?
        };
        self.move_to(state, &vma, offset, plan, kept_len, target, removed)?;
        Ok(target)
    }

    /// Grows a mapping where it is.
    fn extend(&self, state: &mut State, vma: &Vma, start: usize, old: usize, kept: usize, grow: usize) -> Result<()> {
        let space = &*self.space;
        let end = vma.end;
        if vma.is_anon() && vma.is_shared() {
            space.remap(old, kept, old, kept + grow)?;
        } else {
            vma.map_at(space, end, vma.offset_of(start, end), grow)?;
        }
        let offset = vma.offset_of(start, end);
        let flags = vma.flags - VmFlags::JAIL;
        state.list.insert(end, Vma { end: end + grow, offset, flags, ..vma.clone() });
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "one step of one call, cut out for reading")]
    fn move_to(
        &self,
        state: &mut State,
        vma: &Vma,
        offset: u64,
        plan: &Plan,
        kept: usize,
        target: usize,
        removed: &mut Removed,
    ) -> Result<()> {
        let &Plan { old, new_len, flags, .. } = plan;
        let space = &*self.space;
        self.changes(state, old, old + kept.max(1), Change::Moved)?;
        let vma = &Vma { flags: vma.flags - VmFlags::JAIL, ..vma.clone() };
        if flags & MREMAP_DONTUNMAP != 0 {
            space.remap_keep(old, kept, target)?;
        } else if vma.file().is_some() && kept == 0 {
            vma.map_at(space, target, offset, new_len)?;
        } else if vma.is_anon() && vma.is_shared() || kept == 0 {
            // The object behind it is the host's alone: only the host can map more of it.
            space.remap(old, kept, target, new_len)?;
        } else {
            move_pages(space, old, kept, target)?;
            if new_len > kept
                && let Err(errno) = vma.map_at(space, target + kept, offset + kept as u64, new_len - kept)
            {
                move_pages(space, target, kept, old)?;
                return Err(errno);
            }
        }
        if flags & MREMAP_DONTUNMAP != 0 {
            state.list.change(old, old + kept, |vma| vma.flags -= VmFlags::LOCKED | VmFlags::LOCKONFAULT);
        } else if kept != 0 {
            removed.extend(state.list.remove(old, old + kept));
        }
        let source = match &vma.source {
            // Two mappings from now on.
            Source::File(mapped) => {
                let copy = if kept == 0 { mapped.copy() } else { mapped.piece() };
                copy.map_or(vma.source.clone(), |copy| Source::File(Arc::new(copy)))
            }
            other => other.clone(),
        };
        state.list.insert(target, Vma { end: target + new_len, offset, source, ..vma.clone() });
        Ok(())
    }
}

struct Plan {
    old: usize,
    old_len: usize,
    new_len: usize,
    flags: u32,
    new: usize,
}

/// Moves pages. What is one mapping here may be several of the host's (it cannot join what a fork has set apart), and the host
/// moves one at a time: halve until it does.
fn move_pages(space: &dyn Space, old: usize, len: usize, new: usize) -> Result<()> {
    match space.remap(old, len, new, len) {
        Err(Errno::EFAULT) if len > PAGE_SIZE => {
            let half = (len / 2) & !(PAGE_SIZE - 1);
            move_pages(space, old, half, new)?;
            move_pages(space, old + half, len - half, new + half)
        }
        result => result,
    }
}
