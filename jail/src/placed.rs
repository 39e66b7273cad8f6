//! Rewritten code at its place in an address space: what is mapped of [`super::image`]s, and what becomes of it.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::mman::PAGE_SIZE;
use janua_abi::linux::{Errno, Result};
use janua_object::mm::jail::{Instead, Listed, Trapped, own_mapping};
use janua_object::mm::list::VmaList;
use janua_object::mm::{VmFlags, Vma};
use janua_port::{Backing, Prot, Space};
use janua_text::elf::Layout;
use janua_text::sites::Form;
use janua_text::trampoline::Patch;

use crate::cell::Cell;
use crate::image::{Code, Image};

/// Of [`VmFlags::JAIL`]: the pages are rewritten code.
pub const REWRITTEN: VmFlags = VmFlags::from_bits_retain(0x1000_0000);
/// Of [`VmFlags::JAIL`]: the pages are the code of a file that may be rewritten later.
pub const REWRITABLE: VmFlags = VmFlags::from_bits_retain(0x0800_0000);
const _: () = assert!(REWRITTEN.union(REWRITABLE).bits() == VmFlags::JAIL.bits());

/// A file's code at its place in an address space.
#[derive(Clone)]
pub struct Placed {
    code: Code,
    /// What is added to the file's addresses; wraps.
    bias: usize,
    /// Bytes of trampolines, or kept for them, below the file; 0 when somebody else has them.
    room: usize,
    /// Calls that trapped here while there was no image.
    traps: u32,
    /// The file's own pages are mapped although there is an image ([`Cell::restore_all`]).
    own: bool,
}

impl Placed {
    /// The trampolines.
    fn room(&self) -> (usize, usize) {
        let end = self.bias.wrapping_add(self.code.layout.low as usize);
        (end.wrapping_sub(self.room), end)
    }

    /// All that the file takes in memory.
    fn span(&self) -> (usize, usize) {
        let Layout { low, high, .. } = *self.code.layout;
        (self.bias.wrapping_add(low as usize), self.bias.wrapping_add(high as usize))
    }

    /// The pages of code, as far as they are in one place.
    fn pages(&self) -> impl Iterator<Item = (usize, usize)> {
        self.code.layout.code.iter().map(|segment| {
            let first = segment.vaddr & !(PAGE_SIZE as u64 - 1);
            let end = segment.vaddr.wrapping_add(segment.len).next_multiple_of(PAGE_SIZE as u64);
            (self.bias.wrapping_add(first as usize), self.bias.wrapping_add(end as usize))
        })
    }

    /// Whether the place of code still holds a mapping outside of `start..end`.
    fn is_used(&self, list: &VmaList, start: usize, end: usize) -> bool {
        let holds = |from: usize, to: usize| from < to && !list.is_free(from, to);
        self.pages().any(|(from, to)| holds(from, to.min(start)) || holds(from.max(end), to))
    }

    /// Whether an image may take the place of the file's own pages, where a call has trapped.
    fn may_change(&self, call: usize) -> bool {
        let (from, to) = self.span();
        (from..to).contains(&call) && (self.own || !self.is_rewritten()) && self.room > 0
    }

    /// Whether code runs by these trampolines.
    fn is_rewritten(&self) -> bool {
        self.code.image.is_some()
    }

    /// What is mapped for `len` bytes at `offset` of the file at `addr`, when that is code at its place.
    fn part(&self, offset: u64, addr: usize, len: usize) -> Option<Instead> {
        let segment = self.code.layout.code.iter().position(|segment| {
            let lead = segment.offset % PAGE_SIZE as u64;
            let (first, vaddr) = (segment.offset - lead, segment.vaddr.wrapping_sub(lead));
            let bytes = (lead + segment.len).next_multiple_of(PAGE_SIZE as u64);
            offset >= first
                && offset + len as u64 <= first + bytes
                && self.bias.wrapping_add(vaddr.wrapping_add(offset - first) as usize) == addr
        })?;
        let Some(image) = self.code.image.as_ref().filter(|_| !self.own) else {
            return Some(Instead { flags: REWRITABLE, backing: None });
        };
        let (first, inside) = *image.parts.get(segment)?;
        let offset = inside + (offset - first);
        let backing = Backing::Object { object: image.object.clone(), offset, shared: false, frozen: true };
        Some(Instead { flags: REWRITTEN, backing: Some(backing) })
    }
}

impl Cell {
    /// `Jailed::needs`: trampolines, from code that jumps to them.
    pub fn holds_trampolines(&self, list: &VmaList, start: usize, end: usize) -> bool {
        self.placed.iter().filter(|placed| placed.is_rewritten()).any(|placed| {
            let (from, to) = placed.room();
            from < end && start < to && placed.is_used(list, start, end)
        }) || self.sites.rooms().any(|(from, to)| from < end && start < to)
    }

    /// `Jailed::touches`: code that has been placed, trampolines, room for them.
    pub fn touches_code(&self, start: usize, end: usize) -> bool {
        let of_files = self.placed.iter().map(|placed| (placed.room().0, placed.span().1));
        of_files.chain(self.sites.rooms()).any(|(from, to)| from < end && start < to)
    }

    /// `Jailed::give_up_room`.
    pub fn give_up(&mut self, list: &mut VmaList, start: usize, end: usize) {
        for placed in self.placed.iter_mut().filter(|placed| !placed.is_rewritten()) {
            let (from, to) = placed.room();
            if from < end && start < to {
                list.remove(from, to);
                placed.room = 0;
            }
        }
    }

    /// `Jailed::removable`: without the trampolines of code that stays.
    pub fn without_trampolines(&self, list: &VmaList, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut parts = vec![(start, end)];
        let of_files = self.placed.iter().filter(|placed| placed.is_rewritten() && placed.is_used(list, start, end));
        for (from, to) in of_files.map(Placed::room).chain(self.sites.rooms()) {
            if from < end && start < to {
                parts =
                    parts.into_iter().flat_map(|(a, b)| [(a, b.min(from)), (a.max(to), b)]).filter(|(a, b)| a < b).collect();
            }
        }
        parts
    }

    /// `Jailed::take_idle`: the trampolines of code whose place is empty by now.
    pub fn idle_rooms(&mut self, list: &VmaList) -> Vec<(usize, usize)> {
        let mut idle = Vec::new();
        self.placed.retain(|placed| {
            let used = placed.is_used(list, 0, 0);
            if !used && placed.room > 0 {
                idle.push(placed.room());
            }
            used
        });
        idle
    }

    /// `Jailed::mapped`, when code of the file has been placed there.
    pub fn code_part(&self, vma: &Vma, offset: u64, addr: usize, len: usize) -> Option<Instead> {
        if self.placed.is_empty() || vma.flags & (VmFlags::EXEC | VmFlags::WRITE | VmFlags::SHARED) != VmFlags::EXEC {
            return None;
        }
        vma.file()?;
        let here = |placed: &&Placed| placed.code.id == (vma.dev, vma.ino);
        self.placed.iter().filter(here).find_map(|placed| placed.part(offset, addr, len))
    }
}

impl Cell {
    /// Maps the trampolines of a file whose lowest page comes to lie at `low`, or keeps their room: code mapped at its place
    /// afterwards is the rewritten code, or may become it. ENOMEM when the room is not free.
    pub fn place_code(&mut self, listed: &mut Listed<'_>, code: &Code, low: usize) -> Result<()> {
        let room = code.room();
        let start = low.checked_sub(room).ok_or(Errno::ENOMEM)?;
        let bias = low.wrapping_sub(code.layout.low as usize);
        let placed = Placed { code: code.clone(), bias, room, traps: 0, own: false };
        if room == 0 {
            self.placed.push(placed);
            return Ok(());
        }
        if !listed.bounds.contains(start, room) || !listed.list.is_free(start, low) {
            return Err(Errno::ENOMEM);
        }
        let flags = match &code.image {
            Some(image) => {
                map_trampolines(listed.space, image, low)?;
                VmFlags::READ | VmFlags::EXEC
            }
            None => VmFlags::empty(),
        };
        listed.list.insert(start, own_mapping(low, flags));
        self.placed.push(placed);
        Ok(())
    }

    /// `Jailed::trapped`: a call of a file's that may get an image, or a single one.
    pub fn call_trapped(&mut self, listed: &mut Listed<'_>, pc: usize, alone: bool) -> Trapped {
        let call = pc.wrapping_sub(2);
        let Some((_, vma)) = listed.list.find(call) else { return Trapped::At(pc) };
        if vma.flags.contains(REWRITTEN) || vma.is_special() {
            // One that was left, or the kernel's own.
            return Trapped::At(pc);
        }
        let file = vma.file().filter(|_| vma.flags.contains(REWRITABLE)).cloned();
        if let (Some(file), Some(placed)) = (file, self.placed.iter_mut().find(|placed| placed.may_change(call))) {
            placed.traps = placed.traps.saturating_add(1);
            if placed.traps < placed.code.worth {
                return Trapped::At(pc);
            }
            if alone {
                return Trapped::Worth(file);
            }
        }
        self.single_trapped(listed, call, alone);
        Trapped::At(self.sites.moved(pc).unwrap_or(pc))
    }

    /// Puts an image in place of a file's own pages, in which the call that ended at `pc` has trapped. The thread is alone, but who
    /// reads or changes its mappings from outside is not held by that: what was found out about them before does not count.
    pub fn put_image(&mut self, listed: &mut Listed<'_>, pc: usize, image: &Arc<Image>) -> Result<()> {
        let call = pc.wrapping_sub(2);
        let Some(placed) = self.placed.iter_mut().find(|placed| placed.may_change(call)) else { return Ok(()) };
        let (from, low) = placed.room();
        if image.room > placed.room {
            // Never asked again.
            placed.room = 0;
            listed.list.remove(from, low);
            return Err(Errno::ENOMEM);
        }
        map_trampolines(listed.space, image, low)?;
        placed.code.image = Some(image.clone());
        placed.room = image.room;
        placed.own = false;
        listed.list.remove(from, low);
        if image.room > 0 {
            listed.list.insert(low - image.room, own_mapping(low, VmFlags::READ | VmFlags::EXEC));
        }
        let (start, end) = placed.span();
        self.sites.forget(start, end);
        let own: Vec<(usize, Vma)> = listed
            .list
            .touching(start, end)
            .filter(|(_, vma)| vma.flags.contains(REWRITABLE) && (vma.dev, vma.ino) == placed.code.id)
            .map(|(at, vma)| (at, vma.clone()))
            .collect();
        for (at, vma) in own {
            let Some(Instead { backing: Some(backing), .. }) = placed.part(vma.offset_of(at, at), at, vma.end - at) else {
                continue;
            };
            listed.space.map(at, vma.end - at, vma.flags.prot(), &backing)?;
            listed.list.change(at, vma.end, |vma| vma.flags = (vma.flags - REWRITABLE) | REWRITTEN);
        }
        Ok(())
    }

    /// Brings the file's own pages back in `start..end`, for code that is about to be written to or moved.
    pub fn restore_code(&self, listed: &mut Listed<'_>, start: usize, end: usize) -> Result<()> {
        if self.placed.is_empty() {
            return Ok(());
        }
        let parts: Vec<(usize, Vma)> = listed
            .list
            .touching(start, end)
            .filter(|(_, vma)| vma.flags.intersects(VmFlags::JAIL))
            .map(|(at, vma)| (at, vma.clone()))
            .collect();
        for (at, vma) in parts {
            let (from, to) = (at.max(start), vma.end.min(end));
            if vma.flags.contains(REWRITTEN) {
                let backing = vma.backing(vma.offset_of(at, from), to - from)?;
                listed.space.map(from, to - from, vma.flags.prot(), &backing)?;
            }
            listed.list.change(from, to, |vma| vma.flags -= VmFlags::JAIL);
        }
        Ok(())
    }

    /// Brings the file's own pages back everywhere, for who reads and writes code from outside. Rewritten ones may take their place
    /// again when calls trap later. Trampolines stay: a thread may be in one.
    pub fn restore_all(&mut self, listed: &mut Listed<'_>) -> Result<()> {
        let rewritten: Vec<(usize, Vma)> =
            listed.list.iter().filter(|(_, vma)| vma.flags.contains(REWRITTEN)).map(|(at, vma)| (at, vma.clone())).collect();
        for placed in &mut self.placed {
            placed.own = placed.is_rewritten();
        }
        for (at, vma) in rewritten {
            listed.space.map(at, vma.end - at, vma.flags.prot(), &vma.backing(vma.offset_of(at, at), vma.end - at)?)?;
            listed.list.change(at, vma.end, |vma| vma.flags = (vma.flags - REWRITTEN) | REWRITABLE);
        }
        self.restore_singles(listed, 0, usize::MAX, false);
        Ok(())
    }

    /// What `ask` returns for the rewritten site whose trampoline holds `pc`, and by how much its addresses are off.
    pub fn ask_site<T>(&self, pc: usize, ask: impl Fn(&Patch, u64) -> Option<T>) -> Option<(T, usize)> {
        let placed = self.placed.iter().find(|placed| {
            let (from, to) = placed.room();
            (from..to).contains(&pc)
        });
        placed
            .and_then(|placed| {
                let own = pc.wrapping_sub(placed.bias) as u64;
                let image = placed.code.image.as_ref()?;
                Some((image.patches.iter().find_map(|patch| ask(patch, own))?, placed.bias))
            })
            .or_else(|| Some((self.sites.ask(pc, ask)?, 0)))
    }

    /// `Jailed::pc_real`.
    pub fn moved(&self, list: &VmaList, pc: usize) -> usize {
        let is_rewritten = || list.find(pc).is_some_and(|(_, vma)| vma.flags.contains(REWRITTEN));
        let placed = self.placed.iter().find(|placed| {
            let (from, to) = placed.span();
            (from..to).contains(&pc)
        });
        placed
            .filter(|_| is_rewritten())
            .and_then(|placed| {
                let own = pc.wrapping_sub(placed.bias) as u64;
                let patches = &placed.code.image.as_ref()?.patches;
                let index = patches.partition_point(|patch| patch.start < own).checked_sub(1)?;
                let patch = patches.get(index).filter(|patch| patch.form == Form::Tail)?;
                Some((patch.moved(own)? as usize).wrapping_add(placed.bias))
            })
            .or_else(|| self.sites.moved(pc))
            .unwrap_or(pc)
    }
}

/// Maps an image's trampolines right below `low`.
fn map_trampolines(space: &dyn Space, image: &Image, low: usize) -> Result<()> {
    if image.room == 0 {
        return Ok(());
    }
    let prot = Prot { read: true, write: false, exec: true };
    let backing = Backing::Object { object: image.object.clone(), offset: 0, shared: false, frozen: true };
    space.map(low - image.room, image.room, prot, &backing)
}
