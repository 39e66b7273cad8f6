//! The jail's part of one address space.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_object::mm::Vma;
use janua_object::mm::jail::{self, Change, Enclosed, Instead, Jailed, Known, Listed, Trapped};
use janua_object::mm::list::VmaList;
use janua_port::Space;
use janua_text::trampoline::Patch;

use crate::KeyJail;
use crate::guard::CodeGuard;
use crate::image::{Code, Image};
use crate::placed::Placed;
use crate::site::Sites;

/// What is kept of an address space, under the lock of its list of mappings.
pub struct Cell {
    pub jail: &'static KeyJail,
    pub guard: Option<Arc<CodeGuard>>,
    /// Rewritten code that has been placed.
    pub placed: Vec<Placed>,
    /// Calls rewritten one by one.
    pub sites: Sites,
}

impl Cell {
    pub fn new(jail: &'static KeyJail) -> Cell {
        Cell { jail, guard: None, placed: Vec::new(), sites: Sites::default() }
    }

    /// Of a space with a guard.
    pub fn guarded(self, guard: CodeGuard) -> Enclosed {
        let guard = Arc::new(guard);
        let cell = Cell { guard: Some(guard.clone()), ..self };
        Enclosed { space: guard.clone(), guard: Some(guard), jailed: Some(Box::new(cell)) }
    }

    /// Of a space without one.
    pub fn open(self, space: Arc<dyn Space>) -> Enclosed {
        Enclosed { space, guard: None, jailed: Some(Box::new(self)) }
    }
}

impl Jailed for Cell {
    fn copied(&self, child: Arc<dyn Space>) -> Enclosed {
        let cell = Cell { placed: self.placed.clone(), sites: self.sites.clone(), ..Cell::new(self.jail) };
        match &self.guard {
            Some(guard) => cell.guarded(guard.copied_to(child)),
            None => cell.open(child),
        }
    }

    fn place(&mut self, listed: &mut Listed<'_>, code: &jail::Code, low: usize) -> Result<()> {
        let code = code.known.downcast_ref::<Code>().ok_or(Errno::EINVAL)?;
        self.place_code(listed, code, low)
    }

    fn mapped(&self, vma: &Vma, offset: u64, addr: usize, len: usize) -> Option<Instead> {
        self.code_part(vma, offset, addr, len)
    }

    fn unmapped(&mut self, start: usize, end: usize) {
        self.sites.forget(start, end);
    }

    fn changes(&mut self, listed: &mut Listed<'_>, start: usize, end: usize, change: Change) -> Result<()> {
        let (sites, pages) = match change {
            Change::Rights(prot) => (prot.write || !prot.exec, prot.write),
            Change::Dropped => (true, false),
            Change::Moved => (true, true),
            Change::Unmapped => (true, false),
        };
        if sites {
            self.restore_singles(listed, start, end, matches!(change, Change::Unmapped));
        }
        if pages { self.restore_code(listed, start, end) } else { Ok(()) }
    }

    fn needs(&self, list: &VmaList, start: usize, end: usize) -> bool {
        self.holds_trampolines(list, start, end)
    }

    fn touches(&self, start: usize, end: usize) -> bool {
        self.touches_code(start, end)
    }

    fn give_up_room(&mut self, list: &mut VmaList, start: usize, end: usize) {
        self.give_up(list, start, end);
    }

    fn removable(&self, list: &VmaList, start: usize, end: usize) -> Vec<(usize, usize)> {
        self.without_trampolines(list, start, end)
    }

    fn take_idle(&mut self, list: &mut VmaList) -> Vec<(usize, usize)> {
        self.idle_rooms(list)
    }

    fn use_own_code(&mut self, listed: &mut Listed<'_>) -> Result<()> {
        self.restore_all(listed)
    }

    fn trapped(&mut self, listed: &mut Listed<'_>, pc: usize, alone: bool) -> Trapped {
        self.call_trapped(listed, pc, alone)
    }

    fn exchange(&mut self, listed: &mut Listed<'_>, pc: usize, image: Option<Known>) -> usize {
        if let Some(image) = image.and_then(|image| image.downcast::<Image>().ok()) {
            // Without it the code runs as it is.
            let _ = self.put_image(listed, pc, &image);
        }
        self.moved(listed.list, pc)
    }

    fn pc_shown(&self, pc: usize) -> usize {
        self.ask_site(pc, Patch::original).map_or(pc, |(original, bias)| (original as usize).wrapping_add(bias))
    }

    fn pc_real(&self, list: &VmaList, pc: usize) -> usize {
        self.moved(list, pc)
    }

    fn is_on_the_way(&self, pc: usize) -> bool {
        self.ask_site(pc, |patch, pc| patch.original(pc).map(|_| patch.is_before(pc))).is_some_and(|(before, _)| before)
    }

    fn is_held_back(&self, list: &VmaList, space: &dyn Space, addr: usize) -> bool {
        self.held_back(list, space, addr)
    }
}
