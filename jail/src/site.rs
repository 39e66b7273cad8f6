//! Call sites rewritten one by one, where they trap: code that no rewritten file stands for, because it was made at run time, is
//! too large, or is mapped in a way a loader does not.
//!
//! A site is looked at when it has trapped [`TIMES`] times, alone and with what is around it. If it can be rewritten beyond doubt its
//! first five bytes become a jump to a trampoline on a page of the kernel's choosing within reach, private to the address
//! space, as the change itself is: a fork copies both.
//!
//! **Other threads.** The page is taken out of execution while it is written: a thread that comes by faults, waits until it is done
//! and goes on, and no processor can hold an instruction of the page when it comes back. Where a guard is between, that does it
//! ([`crate::guard::CodeGuard::patch`]), and the thread waits for it; otherwise the list of mappings is what it waits for
//! ([`Cell::held_back`]). What is left are threads between two instructions. With [`Form::Number`] there is no place between: one instruction becomes one instruction, and the `syscall`
//! stays. [`Form::Tail`] moves what a thread may be about to run, so it is done only when no other thread is there to run it
//! ([`Fate::Waits`] until then); the caller's own place, and those kept in signal frames, are translated by [`Cell::moved`].
//!
//! **Code that changes.** Rewritten bytes are the program's again before it may write to them (mprotect(2)), drop them (madvise(2)) or move
//! them (mremap(2)), or a part of what they stand for (munmap(2)); unmapped ones are forgotten. Memory that is writable and executable at once is left alone. Trampolines
//! stay until exec: a thread may be in one.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::mman::PAGE_SIZE;
use janua_abi::linux::{Errno, Result};
use janua_object::mm::VmFlags;
use janua_object::mm::jail::{Listed, own_mapping};
use janua_object::mm::list::VmaList;
use janua_port::{Backing, Prot, Space, UserMemory};
use janua_text::decode::LONGEST;
use janua_text::sites::{self, Form, JUMP, Refusal, Site};
use janua_text::trampoline::{self, Patch};

use crate::cell::Cell;

/// Traps after which a site is looked at.
const TIMES: u8 = 4;
/// Sites kept in mind in one address space, and trampolines made there.
const MOST_KNOWN: usize = 4096;
const MOST_PAGES: usize = 16;
/// Code around a site that its own instructions are judged by.
const NEAR: usize = 1024;
/// Code around a site whose direct jumps count when what follows the call is to move.
const WIDE: usize = 256 << 10;
/// How far a trampoline may be from its site: what a jump reaches, less what code and trampoline take.
const REACH: usize = (1 << 31) - (1 << 20);
/// A `syscall` instruction.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// What became of a site.
#[derive(Clone, Copy)]
enum Fate {
    /// Nothing yet.
    Open,
    /// It jumps; these bytes were there.
    Rewritten(Patch, [u8; JUMP]),
    /// It is rewritten when its process has one thread.
    Waits,
    Left,
}

#[derive(Clone, Copy)]
struct Single {
    traps: u8,
    fate: Fate,
}

impl Single {
    /// The program's bytes that its call and what stands for them depend on.
    fn bytes(&self, call: usize) -> Range<usize> {
        let end = call + SYSCALL.len();
        match &self.fate {
            Fate::Rewritten(patch, _) => {
                let at = patch.start as usize;
                at..end.max(at + usize::from(patch.len))
            }
            Fate::Open | Fate::Waits | Fate::Left => call..end,
        }
    }
}

/// The single sites of an address space.
#[derive(Clone, Default)]
pub struct Sites {
    /// By the address of the `syscall`.
    known: BTreeMap<usize, Single>,
    /// Pages of trampolines with the bytes used.
    pages: Vec<(usize, usize)>,
}

/// How many sites were rewritten alone, and how many left by [`Refusal`]; all address spaces of this kernel.
#[derive(Default)]
pub struct Singles {
    pub rewritten: AtomicU32,
    pub refused: [AtomicU32; Refusal::COUNT],
}

impl Sites {
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Forgets sites that are no more.
    pub fn forget(&mut self, start: usize, end: usize) {
        if !self.known.is_empty() {
            self.known.retain(|&call, single| {
                let bytes = single.bytes(call);
                bytes.end <= start || end <= bytes.start
            });
        }
    }

    /// The pages of trampolines.
    pub fn rooms(&self) -> impl Iterator<Item = (usize, usize)> {
        self.pages.iter().map(|&(start, _)| (start, start + PAGE_SIZE))
    }

    fn patches(&self) -> impl Iterator<Item = &Patch> {
        self.known.values().filter_map(|single| match &single.fate {
            Fate::Rewritten(patch, _) => Some(patch),
            _ => None,
        })
    }

    /// Whether rewritten sites have bytes of one at `start..end`. Two that share some could not be given back one by one.
    fn overlap(&self, start: usize, end: usize) -> bool {
        let has = |patch: &Patch| (patch.start as usize) < end && start < patch.start as usize + usize::from(patch.len);
        self.near(start, end).any(|(_, single)| matches!(&single.fate, Fate::Rewritten(patch, _) if has(patch)))
    }

    /// The sites that may have bytes in `start..end`: each reaches from before its call to behind it.
    fn near(&self, start: usize, end: usize) -> impl DoubleEndedIterator<Item = (&usize, &Single)> {
        self.known.range(start.saturating_sub(sites::SPAN)..end.saturating_add(sites::SPAN))
    }

    /// What `ask` returns for the site whose trampoline holds an address.
    pub fn ask<T>(&self, pc: usize, ask: impl Fn(&Patch, u64) -> Option<T>) -> Option<T> {
        let here = self.rooms().any(|(start, end)| (start..end).contains(&pc));
        self.patches().filter(|_| here).find_map(|patch| ask(patch, pc as u64))
    }

    /// Where an instruction that has moved is now.
    pub fn moved(&self, pc: usize) -> Option<usize> {
        self.near(pc, pc + 1)
            .rev()
            .find_map(|(_, single)| match &single.fate {
                Fate::Rewritten(patch, _) if patch.form == Form::Tail => patch.moved(pc as u64),
                _ => None,
            })
            .map(|pc| pc as usize)
    }
}

impl Cell {
    /// The call at `call` has trapped, and no file's image will do anything about it.
    pub fn single_trapped(&mut self, listed: &mut Listed<'_>, call: usize, alone: bool) {
        let jail = self.jail;
        let Some(rewriter) = &jail.rewriter else { return };
        if self.sites.known.len() >= MOST_KNOWN && !self.sites.known.contains_key(&call) {
            return;
        }
        let single = self.sites.known.entry(call).or_insert(Single { traps: 0, fate: Fate::Open });
        match single.fate {
            Fate::Open if single.traps + 1 >= TIMES => {}
            Fate::Open => {
                single.traps += 1;
                return;
            }
            Fate::Waits if alone => {}
            _ => return,
        }
        let fate = match self.rewrite_single(listed, call, rewriter.entry(), alone) {
            Ok(fate) => {
                rewriter.singles().rewritten.fetch_add(1, Ordering::Relaxed);
                fate
            }
            Err(refusal) => {
                rewriter.singles().refused[refusal as usize].fetch_add(1, Ordering::Relaxed);
                if refusal == Refusal::Threads { Fate::Waits } else { Fate::Left }
            }
        };
        self.sites.known.insert(call, Single { traps: 0, fate });
    }

    fn rewrite_single(
        &mut self,
        listed: &mut Listed<'_>,
        call: usize,
        entry: usize,
        alone: bool,
    ) -> core::result::Result<Fate, Refusal> {
        let user = &*self.jail.user;
        let (start, vma) = listed.list.find(call).ok_or(Refusal::Memory)?;
        let want = VmFlags::EXEC | VmFlags::READ;
        if vma.flags & (want | VmFlags::WRITE | VmFlags::SHARED) != want || vma.is_special() {
            return Err(Refusal::Memory);
        }
        let code = start..vma.end;
        // The code before it shows where instructions start; at a border in the midst of code it may be too little.
        let before = start.checked_sub(1).and_then(|last| listed.list.find(last));
        if call - start <= LONGEST && before.is_some_and(|(_, vma)| vma.flags.contains(VmFlags::EXEC)) {
            return Err(Refusal::Unclear);
        }
        let (mut base, mut bytes) = read_around(user, &code, call, NEAR);
        let mut site = judge(&bytes, call - base)?;
        if site.form == Form::Tail {
            if !alone {
                return Err(Refusal::Threads);
            }
            (base, bytes) = read_around(user, &code, call, WIDE);
            site = judge(&bytes, call - base)?;
        }
        if self.sites.overlap(base + site.start, base + site.start + site.len) {
            return Err(Refusal::Unmovable);
        }
        let mut trampoline = Vec::new();
        // Its size does not depend on where it is, if that is not too far.
        trampoline::build(&bytes, base as u64, &site, base as u64 & !63, entry as u64, &mut trampoline)?;
        let at = self.take_room(listed, call, trampoline.len())?;
        trampoline.clear();
        let patch = trampoline::build(&bytes, base as u64, &site, at as u64, entry as u64, &mut trampoline)?;
        let jump = patch.jump().ok_or(Refusal::Far)?;
        let before: [u8; JUMP] = bytes.get(site.start..).and_then(|rest| rest.first_chunk()).copied().ok_or(Refusal::Memory)?;
        let write = |at: usize, old: &[u8], new: &[u8]| self.replace(listed, at, old, new).map_err(|_| Refusal::Memory);
        write(at, &vec![0; trampoline.len()], &trampoline)?;
        write(base + site.start, &before, &jump)?;
        Ok(Fate::Rewritten(patch, before))
    }

    /// Room for a trampoline within reach of a call.
    fn take_room(&mut self, listed: &mut Listed<'_>, call: usize, len: usize) -> core::result::Result<usize, Refusal> {
        let reach = call.saturating_sub(REACH)..call.saturating_add(REACH);
        let is_near = |&&mut (start, used): &&mut (usize, usize)| reach.contains(&start) && used + len <= PAGE_SIZE;
        if let Some((start, used)) = self.sites.pages.iter_mut().find(is_near) {
            *used += len;
            return Ok(*start + *used - len);
        }
        if self.sites.pages.len() >= MOST_PAGES {
            return Err(Refusal::Far);
        }
        let parts = listed.bounds.parts(reach.start.max(listed.lowest), reach.end);
        let gap = parts.into_iter().rev().find_map(|(low, high)| listed.list.highest_gap(low, high, PAGE_SIZE, PAGE_SIZE));
        let start = gap.ok_or(Refusal::Far)?;
        let prot = Prot { read: true, write: false, exec: true };
        listed.space.map(start, PAGE_SIZE, prot, &Backing::Anon).map_err(|_| Refusal::Memory)?;
        listed.list.insert(start, own_mapping(start + PAGE_SIZE, VmFlags::READ | VmFlags::EXEC));
        self.sites.pages.push((start, len));
        Ok(start)
    }

    /// Gives the program its own bytes back wherever those of a site are in `start..end`, which it is about to write to, to drop, to move
    /// or to unmap. `gone`: nothing in there is needed afterwards, so that only sites count that have bytes elsewhere, too.
    pub fn restore_singles(&mut self, listed: &Listed<'_>, start: usize, end: usize, gone: bool) {
        if self.sites.is_empty() {
            return;
        }
        let mut known = core::mem::take(&mut self.sites.known);
        for (&call, single) in known.range_mut(start.saturating_sub(sites::SPAN)..end.saturating_add(sites::SPAN)) {
            let Fate::Rewritten(patch, before) = single.fate else { continue };
            let bytes = single.bytes(call);
            let concerned = bytes.start < end && start < bytes.end && !(gone && start <= bytes.start && bytes.end <= end);
            let Some(jump) = patch.jump().filter(|_| concerned) else { continue };
            let _ = self.replace(listed, patch.start as usize, &jump, &before);
            single.fate = Fate::Open;
        }
        self.sites.known = known;
    }

    /// A fetch at `addr` has faulted on the rights of its page: whether it is to be tried again, because the page was just being written
    /// here. `space` gives its pages the rights that were asked for.
    pub fn held_back(&self, list: &VmaList, space: &dyn Space, addr: usize) -> bool {
        // The site may have been forgotten since; a page of trampolines stays.
        let Some((_, vma)) = list.find(addr).filter(|_| !self.sites.pages.is_empty()) else { return false };
        let page = addr & !(PAGE_SIZE - 1);
        // It has its rights back by now, unless the host could not give them. Where it cannot now either, the fault is the program's.
        vma.flags.contains(VmFlags::EXEC) && space.protect(page, PAGE_SIZE, vma.flags.prot()).is_ok()
    }

    /// Changes bytes of code while nobody can run them: by the space's guard, or by taking the right to execute for as long as it takes.
    /// Threads that come by meanwhile are held back. The list of mappings is locked; pages that are not code by it are left alone.
    fn replace(&self, listed: &Listed<'_>, at: usize, old: &[u8], new: &[u8]) -> Result<()> {
        if let Some(guard) = &self.guard {
            return guard.patch(at, old, new);
        }
        let (list, space) = (&*listed.list, listed.space);
        let first = at & !(PAGE_SIZE - 1);
        let last = (at + new.len()).next_multiple_of(PAGE_SIZE);
        let rights = |page: usize| {
            let flags = list.find(page).map(|(_, vma)| vma.flags);
            flags.filter(|flags| flags.contains(VmFlags::EXEC) && !flags.contains(VmFlags::WRITE)).map(VmFlags::prot)
        };
        if (first..last).step_by(PAGE_SIZE).any(|page| rights(page).is_none()) {
            return Err(Errno::EACCES);
        }
        space.protect(first, last - first, Prot { read: true, write: true, exec: false })?;
        let mut now = vec![0; old.len()];
        let same = self.jail.user.copy_in(&mut now, at).is_ok() && now == old;
        let written = same && self.jail.user.copy_out(at, new).is_ok();
        for page in (first..last).step_by(PAGE_SIZE) {
            space.protect(page, PAGE_SIZE, rights(page).ok_or(Errno::EACCES)?)?;
        }
        if written { Ok(()) } else { Err(Errno::EAGAIN) }
    }
}

/// The bytes within `distance` of a call, as far as they are its mapping's, and the address of the first.
fn read_around(user: &dyn UserMemory, code: &Range<usize>, call: usize, distance: usize) -> (usize, Vec<u8>) {
    let from = call.saturating_sub(distance).max(code.start);
    let to = call.saturating_add(distance).min(code.end);
    let mut bytes = vec![0; to - from];
    let got = user.copy_in_partial(&mut bytes, from);
    bytes.truncate(got);
    (from, bytes)
}

fn judge(bytes: &[u8], call: usize) -> core::result::Result<Site, Refusal> {
    if bytes.get(call..call + SYSCALL.len()) != Some(&SYSCALL) {
        return Err(Refusal::Memory);
    }
    sites::find_at(bytes, call)
}
