//! mmap(2), munmap(2), brk(2).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::mman::*;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::{Errno, Result};
use janua_port::{Backing, Prot, Space};

use super::advise::advise_in_parts;
use super::gap::END_32;
use super::jail::{Change, Loader};
use super::vma::{MappedFile, Source, VmFlags, Vma};
use super::{Killed, Limits, Locked, MAX_MAP_COUNT, Mm, NEVER, Removed, State, next_id, round_up};
use crate::coverage::Charge;
use crate::file::{OpenFile, flags};
use crate::vfs::{FileFlags, MountFlags};

/// The arguments of mmap(2), the descriptor looked up.
pub struct MapRequest {
    pub addr: usize,
    pub len: usize,
    pub prot: Prot,
    /// MAP_*.
    pub flags: u32,
    /// `None` for anonymous memory.
    pub file: Option<Arc<OpenFile>>,
    /// Bytes; page aligned.
    pub offset: u64,
}

/// Device number of shared anonymous memory (0:1) and what /proc/self/maps calls it.
const SHARED_ANON_DEV: u64 = 1;

impl State {
    /// Whether there may be a new mapping here. ENOMEM, EPERM, EAGAIN.
    fn check_new(&self, request: &MapRequest, limits: &Limits, flags: VmFlags, addr: usize, len: usize) -> Result<()> {
        let (fixed, end) = (request.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0, addr + len);
        if fixed && self.is_needed(addr, end) {
            return Err(Errno::ENOMEM);
        }
        let replaced = if fixed { self.list.bytes(addr, end, |_| true) } else { 0 };
        self.check_growth(limits, flags, len, replaced)?;
        if flags.contains(VmFlags::LOCKED) {
            if request.flags & MAP_LOCKED != 0 && limits.memlock == 0 && !limits.may_lock {
                return Err(Errno::EPERM);
            }
            if !self.may_lock(limits, len) {
                return Err(Errno::EAGAIN);
            }
        }
        let cuts = if fixed { self.list.cuts(addr, end) } else { 0 };
        if self.list.len() + 1 + cuts > MAX_MAP_COUNT { Err(Errno::ENOMEM) } else { Ok(()) }
    }
}

impl Mm {
    /// Makes a mapping: its address.
    pub fn map(&self, request: MapRequest, limits: &Limits) -> Result<usize> {
        self.map_until(request, limits, NEVER)
    }

    /// The same for a caller who may be killed while pages are made present.
    pub fn map_until(&self, request: MapRequest, limits: &Limits, killed: Killed<'_>) -> Result<usize> {
        let len = round_up(request.len).filter(|&len| len != 0);
        let len = len.ok_or(if request.len == 0 { Errno::EINVAL } else { Errno::ENOMEM })?;
        let mut vma = self.describe(&request, len)?;
        let fixed = request.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0;
        let code = match &request.file {
            Some(file) if !fixed && request.addr == 0 && request.offset == 0 && !vma.is_shared() => {
                self.code_of(file, Loader::Map(len))
            }
            _ => None,
        };

        let mut state = self.lock_state();
        if self.refuses_exec(vma.flags, vma.flags) {
            return Err(Errno::EACCES);
        }
        vma.flags |= state.lock_future;
        if request.flags & MAP_LOCKED != 0 {
            vma.flags |= VmFlags::LOCKED;
        }
        // A loader's first mapping of a file: what the jail wants gets room below it.
        let room = code.as_ref().map_or(0, |code| code.room);
        let addr = self.place(&mut state, &request, len + room)? + room;
        let end = addr + len;
        state.check_new(&request, limits, vma.flags, addr, len)?;
        state.pay(vma.flags, len)?;
        if vma.is_anon() && vma.is_shared() {
            vma.charge = state.paid.machine.map(|machine| Charge::new(machine, len)).transpose()?.map(Arc::new);
        }
        let backing = match &vma.source {
            Source::Anon(_) if vma.is_shared() => Backing::AnonShared,
            _ => vma.backing(request.offset, len)?,
        };
        let space = &*self.space;
        if fixed {
            self.changes(&mut state, addr, end, Change::Unmapped)?;
            state.give_up_room(addr, end);
        }
        if let Some(code) = &code {
            // Without it the code runs as it is.
            let _ = self.place_locked(&mut state, code, addr);
        }
        let backing = match state.jailed.as_ref().and_then(|jailed| jailed.mapped(&vma, request.offset, addr, len)) {
            Some(instead) => {
                vma.flags |= instead.flags;
                instead.backing.unwrap_or(backing)
            }
            None => backing,
        };
        space.map(addr, len, vma.flags.prot(), &backing)?;
        if vma.flags.contains(VmFlags::NOHUGEPAGE) {
            // MAP_STACK: a hint, and what glibc gets from Linux for its thread stacks. Refused is as good.
            let _ = space.advise(addr, len, MADV_NOHUGEPAGE);
        }
        let populate = request.flags & (MAP_POPULATE | MAP_NONBLOCK) == MAP_POPULATE
            || vma.flags & (VmFlags::LOCKED | VmFlags::LOCKONFAULT) == VmFlags::LOCKED;
        let vma_flags = vma.flags;
        let mut removed = Removed::new();
        if fixed {
            removed = state.list.remove(addr, end);
            state.unmapped(addr, end);
        }
        state.list.insert(addr, Vma { end, ..vma });
        drop(state);
        drop(removed);
        if populate {
            self.populate(space, addr, len, vma_flags, killed);
        }
        Ok(addr)
    }

    /// Makes pages present; what cannot be is left to the first access, as mmap(2) has it.
    pub(super) fn populate(&self, space: &dyn Space, addr: usize, len: usize, flags: VmFlags, killed: Killed<'_>) {
        // Not written where others would see it changed, unless it cannot be read.
        let written = flags & (VmFlags::WRITE | VmFlags::SHARED) == VmFlags::WRITE
            || flags & (VmFlags::WRITE | VmFlags::READ) == VmFlags::WRITE;
        let advice = if written { MADV_POPULATE_WRITE } else { MADV_POPULATE_READ };
        let _ = advise_in_parts(space, addr, len, advice, killed);
    }

    /// The new mapping before it has a place.
    fn describe(&self, request: &MapRequest, len: usize) -> Result<Vma> {
        let MapRequest { prot, flags: map, offset, .. } = *request;
        let kind = map & MAP_TYPE;
        let shared = match kind {
            MAP_PRIVATE => false,
            MAP_SHARED => true,
            MAP_SHARED_VALIDATE if request.file.is_none() => return Err(Errno::EINVAL),
            MAP_SHARED_VALIDATE if map & !(MAP_LEGACY | MAP_SHARED_VALIDATE) != 0 => return Err(Errno::EOPNOTSUPP),
            MAP_SHARED_VALIDATE => true,
            _ => return Err(Errno::EINVAL),
        };
        if map & MAP_HUGETLB != 0 {
            // There is no pool of huge pages.
            return Err(Errno::ENOMEM);
        }
        if offset.checked_add(len as u64).is_none() {
            return Err(Errno::EOVERFLOW);
        }
        let mut flags = VmFlags::MAY_ALL.with_prot(prot);
        flags.set(VmFlags::SHARED, shared);
        flags.set(VmFlags::NORESERVE, map & MAP_NORESERVE != 0);
        flags.set(VmFlags::NOHUGEPAGE, map & MAP_STACK != 0);
        let Some(file) = &request.file else {
            if map & MAP_GROWSDOWN != 0 {
                if shared {
                    return Err(Errno::EINVAL);
                }
                flags |= VmFlags::GROWSDOWN;
            }
            let (dev, ino) = if shared { (SHARED_ANON_DEV, next_id()) } else { (0, 0) };
            return Ok(Vma {
                end: 0,
                flags: flags.with_charge(),
                source: Source::Anon(None),
                offset: 0,
                dev,
                ino,
                charge: None,
            });
        };
        Mm::describe_file(request, file, flags, len)
    }

    /// The same of a file, with the flags known so far.
    fn describe_file(request: &MapRequest, file: &Arc<OpenFile>, mut flags: VmFlags, len: usize) -> Result<Vma> {
        let MapRequest { prot, flags: map, offset, .. } = *request;
        let shared = flags.contains(VmFlags::SHARED);
        if map & MAP_GROWSDOWN != 0 {
            return Err(Errno::EINVAL);
        }
        let mode = file.flags();
        let access = mode & flags::O_ACCMODE;
        if mode & flags::O_PATH != 0 {
            return Err(Errno::EBADF);
        }
        if access == flags::O_WRONLY {
            return Err(Errno::EACCES);
        }
        if shared && access != flags::O_RDWR {
            if prot.write {
                return Err(Errno::EACCES);
            }
            flags -= VmFlags::MAY_WRITE;
        }
        if shared && access == flags::O_RDWR && file.file_flags().contains(FileFlags::APPEND) {
            return Err(Errno::EACCES);
        }
        if file.path.as_ref().is_some_and(|path| path.mount_flags().contains(MountFlags::NOEXEC)) {
            if prot.exec {
                return Err(Errno::EPERM);
            }
            flags -= VmFlags::MAY_EXEC;
        }
        // Returns ENODEV before anything is counted or replaced.
        file.ops.backing(file, offset, len, shared)?;
        let writable = shared && flags.contains(VmFlags::MAY_WRITE);
        let mapped = match MappedFile::new(file, writable) {
            Err(Errno::EPERM) if writable && !prot.write => {
                // Sealed against writing: read-only for good.
                flags -= VmFlags::MAY_WRITE;
                MappedFile::new(file, false)?
            }
            result => result?,
        };
        let (dev, ino) = file.id();
        let source = Source::File(Arc::new(mapped));
        Ok(Vma { end: 0, flags: flags.with_charge(), source, offset, dev, ino, charge: None })
    }

    /// Where the mapping goes.
    fn place(&self, state: &mut State, request: &MapRequest, len: usize) -> Result<usize> {
        let MapRequest { addr, flags, .. } = *request;
        if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 {
            if !addr.is_multiple_of(PAGE_SIZE) {
                return Err(Errno::EINVAL);
            }
            if addr.checked_add(len).is_none_or(|end| end > self.bounds.high) {
                return Err(Errno::ENOMEM);
            }
            if !self.is_user(addr, len) {
                // Below vm.mmap_min_addr, or the part that is the kernel's.
                return Err(if addr < self.bounds.low { Errno::EPERM } else { Errno::ENOMEM });
            }
            if flags & MAP_FIXED_NOREPLACE != 0 && !state.list.is_free(addr, addr + len) {
                return Err(Errno::EEXIST);
            }
            return Ok(addr);
        }
        let hint = round_up(addr).unwrap_or(0);
        // A hint counts with MAP_32BIT, too, if it ends where that part does.
        let fits = flags & MAP_32BIT == 0 || hint.checked_add(len).is_some_and(|end| end <= END_32);
        if hint != 0 && fits && self.is_free_at(state, hint, len) {
            return Ok(hint);
        }
        if flags & MAP_32BIT != 0 {
            return self.find_gap_32(state, len).ok_or(Errno::ENOMEM);
        }
        // For the host's huge pages.
        let whole = request.file.is_none() && len >= HUGE_PAGE && len.is_multiple_of(HUGE_PAGE);
        let align = if whole { HUGE_PAGE } else { PAGE_SIZE };
        self.find_gap(state, len, align).or_else(|| self.find_gap(state, len, PAGE_SIZE)).ok_or(Errno::ENOMEM)
    }

    /// Removes every mapping of the range.
    pub fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        if !addr.is_multiple_of(PAGE_SIZE) || len == 0 {
            return Err(Errno::EINVAL);
        }
        let len = round_up(len).ok_or(Errno::EINVAL)?;
        if addr.checked_add(len).is_none_or(|end| end > self.bounds.high) {
            return Err(Errno::EINVAL);
        }
        let mut state = self.lock_state();
        if !state.jailed.as_ref().is_some_and(|jailed| jailed.touches(addr, addr + len)) {
            let removed = self.unmap_locked(&mut state, addr, addr + len)?;
            drop(state);
            drop(removed);
            return Ok(());
        }
        let mut removed = Removed::new();
        state.give_up_room(addr, addr + len);
        for (start, end) in state.removable(addr, addr + len) {
            removed.extend(self.unmap_locked(&mut state, start, end)?);
        }
        for (start, end) in state.take_idle() {
            removed.extend(self.unmap_locked(&mut state, start, end)?);
        }
        drop(state);
        drop(removed);
        Ok(())
    }

    /// Unmaps what the list has in the range, and only that: the kernel's own memory may be between.
    pub(super) fn unmap_locked(&self, state: &mut State, start: usize, end: usize) -> Result<Removed> {
        let space = &*self.space;
        self.changes(state, start, end, Change::Unmapped)?;
        if state.list.find(start).is_some_and(|(_, vma)| vma.end == end) {
            // The end of one mapping, or all of it.
            space.unmap(start, end - start)?;
            state.unmapped(start, end);
            return Ok(state.list.remove(start, end));
        }
        if state.list.len() + state.list.cuts(start, end) > MAX_MAP_COUNT {
            return Err(Errno::ENOMEM);
        }
        // One call of the machine for each run of neighbours.
        let mut run: Option<(usize, usize)> = None;
        for (begin, vma) in state.list.touching(start, end) {
            let (from, to) = (begin.max(start), vma.end.min(end));
            match &mut run {
                Some((_, last)) if *last == from => *last = to,
                _ => {
                    if let Some((from, to)) = run.replace((from, to)) {
                        space.unmap(from, to - from)?;
                    }
                }
            }
        }
        if let Some((from, to)) = run {
            space.unmap(from, to - from)?;
        }
        state.unmapped(start, end);
        Ok(state.list.remove(start, end))
    }

    /// brk(2): the break after the attempt to move it to `wanted`; unchanged when that cannot be.
    pub fn brk(&self, wanted: usize, limits: &Limits) -> usize {
        let mut state = self.lock_state();
        let old = state.brk;
        match self.move_brk(&mut state, wanted, limits) {
            Ok(removed) => {
                state.brk = wanted;
                drop(state);
                drop(removed);
                wanted
            }
            Err(_) => old,
        }
    }

    fn move_brk(&self, state: &mut State, wanted: usize, limits: &Limits) -> Result<Removed> {
        if wanted < state.brk_start || state.brk_start == 0 {
            return Err(Errno::EINVAL);
        }
        if limits.data != rlimit::INFINITY && (wanted - state.brk_start) as u64 > limits.data {
            return Err(Errno::ENOMEM);
        }
        let old_end = round_up(state.brk).ok_or(Errno::ENOMEM)?;
        let new_end = round_up(wanted).ok_or(Errno::ENOMEM)?;
        if new_end == old_end {
            return Ok(Removed::new());
        }
        if new_end < old_end {
            return self.unmap_locked(state, new_end, old_end);
        }
        let len = new_end - old_end;
        // One page stays free behind the heap.
        if !self.is_free_at(state, old_end, len.checked_add(PAGE_SIZE).ok_or(Errno::ENOMEM)?) {
            return Err(Errno::ENOMEM);
        }
        let flags = VmFlags::MAY_ALL | VmFlags::READ | VmFlags::WRITE | VmFlags::CHARGED | state.lock_future;
        state.check_growth(limits, flags, len, 0)?;
        if flags.contains(VmFlags::LOCKED) && !state.may_lock(limits, len) {
            return Err(Errno::EAGAIN);
        }
        if state.list.len() >= MAX_MAP_COUNT {
            return Err(Errno::ENOMEM);
        }
        state.pay(flags, len)?;
        self.space.map(old_end, len, flags.prot(), &Backing::Anon)?;
        state
            .list
            .insert(old_end, Vma { end: new_end, flags, source: Source::Anon(None), offset: 0, dev: 0, ino: 0, charge: None });
        Ok(Removed::new())
    }

    /// Enters a mapping the machine has made by itself (the vDSO, outside the bounds) into the list.
    pub fn note_special(&self, start: usize, len: usize, prot: Prot, name: &'static str) {
        if len == 0 {
            return;
        }
        let flags = (VmFlags::MAY_READ | VmFlags::MAY_EXEC | VmFlags::DONTEXPAND).with_prot(prot);
        let vma = Vma { end: start + len, flags, source: Source::Special(name), offset: 0, dev: 0, ino: 0, charge: None };
        let mut state = self.lock_state();
        if state.list.is_free(start, start + len) {
            state.list.insert(start, vma);
        }
    }

    /// Gives mappings of the kernel's making, already there, a name of their own (the vDSO of 32-bit programs).
    pub fn set_special(&self, start: usize, len: usize, name: &'static str) {
        self.lock_state().list.change(start, start + len, |vma| {
            vma.source = Source::Special(name);
            vma.flags = (vma.flags - VmFlags::MAY_WRITE) | VmFlags::DONTEXPAND;
        });
    }

    /// A program's access at `addr`, where nothing was mapped: whether the mapping above has grown down to it (MAP_GROWSDOWN), so that
    /// the access is to be tried again.
    pub fn grow_down(&self, addr: usize, limits: &Limits) -> bool {
        self.grow(self.lock_state(), addr, limits)
    }

    /// The same for a copy from or to a program's memory, by thread `by`, which may hold other locks. False, too, if this one is not to be
    /// had for long.
    pub fn grow_down_for_copy(&self, addr: usize, limits: &Limits, by: u32) -> bool {
        // In the middle of a fork the lock is the caller's.
        let is_own = self.holder.load(Ordering::Relaxed) == by;
        !is_own && self.lock_state_late().is_some_and(|state| self.grow(state, addr, limits))
    }

    fn grow(&self, mut state: Locked<'_>, addr: usize, limits: &Limits) -> bool {
        let page = addr & !(PAGE_SIZE - 1);
        if let Some((_, vma)) = state.list.find(page) {
            // Another thread may have been quicker.
            return vma.flags.contains(VmFlags::GROWSDOWN);
        }
        let Some((start, vma)) = state.list.above(page) else { return false };
        if !vma.flags.contains(VmFlags::GROWSDOWN) || !self.is_user(page, start - page) {
            return false;
        }
        // What is below keeps its distance, unless it cannot be accessed or grows itself.
        let below = state.list.touching(page.saturating_sub(super::list::GUARD_GAP), page).last();
        let near =
            below.is_some_and(|(_, vma)| vma.flags.intersects(VmFlags::ACCESS) && !vma.flags.contains(VmFlags::GROWSDOWN));
        let (size, grow) = (vma.end - page, start - page);
        let locked = vma.flags.contains(VmFlags::LOCKED);
        if near
            || page < self.lowest()
            || limits.stack != rlimit::INFINITY && size as u64 > limits.stack
            || state.check_growth(limits, vma.flags, grow, 0).is_err()
            || locked && !state.may_lock(limits, grow)
        {
            return false;
        }
        let vma = vma.clone();
        if state.pay(vma.flags, grow).is_err() || self.space.map(page, grow, vma.flags.prot(), &Backing::Anon).is_err() {
            return false;
        }
        let flags = vma.flags;
        let pieces = state.list.remove(start, vma.end);
        state.list.insert(page, vma);
        drop(state);
        drop(pieces);
        if locked {
            self.populate(&*self.space, page, grow, flags, NEVER);
        }
        true
    }
}
