//! What a jail does to address spaces, as their lists of mappings see it.
//!
//! Where the kernel's memory is in the guest's own address space, something keeps the guest from it; where calls are to come without a
//! trap, something rewrites the program's code. Both map other pages than those the program has asked for and is shown. What they do is
//! behind these traits: an image that has such a jail hands it to its kernel, all others have none.
//!
//! Three parts, by what is locked when they are asked. A [`Jail`] is the kernel's, and no lock is held: it may read files. [`Jailed`] is a
//! space's, and part of what the lock of its list keeps. A [`Guard`] is a space's, too, and is asked for faults, which may come
//! while another thread holds that lock.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;

use janua_abi::linux::Result;
use janua_port::space::{Access, Bounds};
use janua_port::{Backing, Context, Frame, Prot, Space};

use super::list::VmaList;
use super::vma::{Source, VmFlags, Vma};
use super::{Mm, State};
use crate::file::OpenFile;

/// What /proc/self/maps calls mappings that the jail has made for itself ([`own_mapping`]). Programs can neither change nor move them,
/// and mapping something over one is refused while it is needed.
const OWN: &str = "[janua]";

/// What only the jail knows the inside of.
pub type Known = Arc<dyn Any + Send + Sync>;

/// What the jail knows of a program file that is about to be mapped.
pub struct Code {
    /// Bytes to be kept free below the file's lowest page in memory, whole pages.
    pub room: usize,
    pub known: Known,
}

/// A jail; one in a kernel.
pub trait Jail: Send + Sync {
    /// Takes an empty address space in.
    fn enclose(&'static self, space: Arc<dyn Space>) -> Enclosed;
    /// What is known of a program file about to be mapped, if it is worth anything.
    fn code(&self, file: &Arc<OpenFile>, by: Loader) -> Option<Code>;
    /// Makes what is to be mapped in place of a file's code, for [`Jailed::exchange`]: [`Trapped::Worth`] has asked for it.
    fn image(&self, file: &Arc<OpenFile>) -> Option<Known>;
    /// Runs a write by the machine to memory of another process, at a time when that cannot change code which has been looked at.
    fn write_remote(&self, write: &mut dyn FnMut());
    /// Lines for `--stats`.
    fn report(&self) -> String;
}

/// Who is about to map a program file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    /// exec, which maps a program.
    Exec,
    /// exec, which maps another program's dynamic linker.
    ExecLinker,
    /// mmap(2) of this many bytes from the file's start: by a loader, if that is what the whole of a program takes in memory.
    Map(usize),
}

/// An address space with what the jail keeps of it.
pub struct Enclosed {
    /// Stands between the list of mappings and the machine's space.
    pub space: Arc<dyn Space>,
    pub guard: Option<Arc<dyn Guard>>,
    pub jailed: Option<Box<dyn Jailed>>,
}

impl Enclosed {
    /// A space without a jail.
    pub(super) fn free(space: Arc<dyn Space>) -> Enclosed {
        Enclosed { space, guard: None, jailed: None }
    }
}

/// An address space whose list of mappings is locked.
pub struct Listed<'a> {
    pub list: &'a mut VmaList,
    pub space: &'a dyn Space,
    pub bounds: &'a Bounds,
    /// No mapping without a given address is placed below.
    pub lowest: usize,
}

/// What a part of an address space is about to go through.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// It gets these rights.
    Rights(Prot),
    /// Its contents are dropped.
    Dropped,
    /// It moves.
    Moved,
    /// It is unmapped, or something else is mapped in its place.
    Unmapped,
}

/// What is mapped in place of what was asked for.
pub struct Instead {
    /// Of [`VmFlags::JAIL`]: what the list notes.
    pub flags: VmFlags,
    /// `None`: what was asked for, for the time being.
    pub backing: Option<Backing>,
}

/// What a call that trapped has led to.
pub enum Trapped {
    /// The thread goes on at this address.
    At(usize),
    /// The code of this file is worth an image: [`Jail::image`], then [`Jailed::exchange`].
    Worth(Arc<OpenFile>),
}

/// A jail's part of one address space; the list of mappings is locked whenever it is asked.
pub trait Jailed: Send {
    /// The same for a child of fork, whose space the machine has made or will make.
    fn copied(&self, child: Arc<dyn Space>) -> Enclosed;

    /// Code of a file whose lowest page comes to lie at `low` is going to be mapped. ENOMEM when its room is not free.
    fn place(&mut self, listed: &mut Listed<'_>, code: &Code, low: usize) -> Result<()>;
    /// What is to be mapped for `len` bytes at `offset` of the file of `vma`, at `addr`.
    fn mapped(&self, vma: &Vma, offset: u64, addr: usize, len: usize) -> Option<Instead>;
    /// What was mapped in the range is no more.
    fn unmapped(&mut self, start: usize, end: usize);
    /// The range, which is mapped (before [`Change::Unmapped`] maybe not all of it), is going to be changed.
    fn changes(&mut self, listed: &mut Listed<'_>, start: usize, end: usize, change: Change) -> Result<()>;

    /// Whether a new mapping of `start..end`, or a change of what is there, would take away what code elsewhere needs.
    fn needs(&self, list: &VmaList, start: usize, end: usize) -> bool;
    /// Whether something of the jail's is in `start..end`, or headroom for it.
    fn touches(&self, start: usize, end: usize) -> bool;
    /// Gives up room where `start..end` touches it, in which nothing is mapped yet.
    fn give_up_room(&mut self, list: &mut VmaList, start: usize, end: usize);
    /// The parts of `start..end` that may be unmapped.
    fn removable(&self, list: &VmaList, start: usize, end: usize) -> Vec<(usize, usize)>;
    /// The jail's own mappings that nothing needs by now: to be unmapped.
    fn take_idle(&mut self, list: &mut VmaList) -> Vec<(usize, usize)>;

    /// Puts the program's own code back everywhere, for who reads and writes it from outside.
    fn use_own_code(&mut self, listed: &mut Listed<'_>) -> Result<()>;
    /// The call that ended at `pc` has trapped. `alone`: the caller is the only thread that runs in this space.
    fn trapped(&mut self, listed: &mut Listed<'_>, pc: usize, alone: bool) -> Trapped;
    /// Puts the image that [`Trapped::Worth`] has asked for in place of the file's own pages, if it could be made: where the thread
    /// goes on.
    fn exchange(&mut self, listed: &mut Listed<'_>, pc: usize, image: Option<Known>) -> usize;
    /// The address in the program that `pc` stands for, when it is in what the jail has mapped: what a signal handler and a
    /// debugger are to see.
    fn pc_shown(&self, pc: usize) -> usize;
    /// Where code that goes on at `pc` is to go on: elsewhere, when that instruction has moved.
    fn pc_real(&self, list: &VmaList, pc: usize) -> usize;
    /// Whether `pc` is where nothing of what it stands for has been done yet. A single step that ends there has led nowhere: who
    /// went on from where it seems to be would come here again, for ever.
    fn is_on_the_way(&self, pc: usize) -> bool;
    /// A fetch at `addr` has faulted on the rights of its page: whether it is to be tried again, because the page was just being
    /// written by the jail. For a space without a [`Guard`].
    fn is_held_back(&self, list: &VmaList, space: &dyn Space, addr: usize) -> bool;
}

/// A thread whose instruction has faulted, with what the instruction could reach.
pub struct Interrupted<'a> {
    pub frame: &'a mut Frame,
    pub context: &'a dyn Context,
    /// Bytes of its vector and floating-point registers ([`janua_port::machine::Fpu::size`]).
    pub fpu_size: usize,
}

/// What gives the pages of a space other rights than were asked for, as it sees fit. It takes locks of its own alone.
pub trait Guard: Send + Sync {
    /// An access of the kernel's on the program's behalf, or one of the program's, that the mapping's rights allow has faulted on rights
    /// the page has in truth: whether they are right now, so that the access is to be tried again.
    fn fault(&self, addr: usize, access: Access) -> bool;
    /// The same for an instruction of the program's: whether it is to go on at its frame. The work of instructions that must not run where
    /// they are may have been done.
    fn user_fault(&self, by: &mut Interrupted<'_>, addr: usize, access: Access) -> bool;
    /// An invalid instruction: whether it is in place of another whose work has been done.
    fn illegal(&self, by: &mut Interrupted<'_>) -> bool;
    /// The parts of `start..end` that hold a copy of the contents of the file that was mapped there: to drop their pages is to map
    /// the file again.
    fn copies(&self, start: usize, end: usize) -> Vec<(usize, usize)>;
}

/// The list's entry for a mapping of the jail's own; `flags` are the rights.
pub fn own_mapping(end: usize, flags: VmFlags) -> Vma {
    let flags = flags | VmFlags::DONTEXPAND;
    Vma { end, flags, source: Source::Special(OWN), offset: 0, dev: 0, ino: 0, charge: None }
}

impl Vma {
    pub(super) fn is_jails(&self) -> bool {
        matches!(self.source, Source::Special(OWN))
    }
}

impl State {
    /// Whether a new mapping of `start..end` would take away what the jail needs.
    pub(super) fn is_needed(&self, start: usize, end: usize) -> bool {
        self.jailed.as_ref().is_some_and(|jailed| jailed.needs(&self.list, start, end))
    }

    /// Makes room in `start..end` where the jail keeps some.
    pub(super) fn give_up_room(&mut self, start: usize, end: usize) {
        if let Some(jailed) = &mut self.jailed {
            jailed.give_up_room(&mut self.list, start, end);
        }
    }

    /// The parts of `start..end` that may be unmapped.
    pub(super) fn removable(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        self.jailed.as_ref().map_or_else(|| vec![(start, end)], |jailed| jailed.removable(&self.list, start, end))
    }

    /// The jail's own mappings that nothing needs by now.
    pub(super) fn take_idle(&mut self) -> Vec<(usize, usize)> {
        self.jailed.as_mut().map_or_else(Vec::new, |jailed| jailed.take_idle(&mut self.list))
    }

    /// What was mapped in the range is no more.
    pub(super) fn unmapped(&mut self, start: usize, end: usize) {
        if let Some(jailed) = &mut self.jailed {
            jailed.unmapped(start, end);
        }
    }
}

impl Mm {
    /// An address space in a jail, if the kernel has one, before anything is mapped in it.
    pub fn jailed(mut self, jail: Option<&'static dyn Jail>) -> Mm {
        self.jail = jail;
        if let Some(jail) = jail {
            let Enclosed { space, guard, jailed } = jail.enclose(self.space);
            (self.space, self.guard) = (space, guard);
            self.state.lock().jailed = jailed;
        }
        self
    }

    /// The jail's part of this space, and the list it acts on.
    fn inside<'a>(&'a self, state: &'a mut State) -> Option<(&'a mut dyn Jailed, Listed<'a>)> {
        let State { list, jailed, .. } = state;
        let jailed = jailed.as_deref_mut()?;
        Some((jailed, Listed { list, space: &*self.space, bounds: &self.bounds, lowest: self.lowest() }))
    }

    /// What is known of the code of a program file about to be mapped; it wants [`Code::room`] free bytes below its lowest page.
    pub fn code_of(&self, file: &Arc<OpenFile>, by: Loader) -> Option<Code> {
        self.jail.filter(|_| !self.has_own_code())?.code(file, by)
    }

    /// Notes that code mapped at its place below is a file's, whose lowest page comes to lie at `low`. ENOMEM when its room is not free.
    pub fn place_code(&self, code: &Code, low: usize) -> Result<()> {
        self.place_locked(&mut self.lock_state(), code, low)
    }

    pub(super) fn place_locked(&self, state: &mut State, code: &Code, low: usize) -> Result<()> {
        self.inside(state).map_or(Ok(()), |(jailed, mut listed)| jailed.place(&mut listed, code, low))
    }

    /// The range is going to be changed.
    pub(super) fn changes(&self, state: &mut State, start: usize, end: usize, change: Change) -> Result<()> {
        self.inside(state).map_or(Ok(()), |(jailed, mut listed)| jailed.changes(&mut listed, start, end, change))
    }

    /// Puts the program's own code back.
    pub(super) fn put_code_back(&self) -> Result<()> {
        let mut state = self.lock_state();
        self.inside(&mut state).map_or(Ok(()), |(jailed, mut listed)| jailed.use_own_code(&mut listed))
    }

    /// The call that ended at `pc` has trapped: the address to go on at, which differs when the code there has been rewritten on
    /// this occasion. `alone`: the caller is the only thread that runs in this space.
    pub fn trapped(&self, pc: usize, alone: bool) -> usize {
        let Some(jail) = self.jail.filter(|_| !self.has_own_code()) else { return pc };
        let mut state = self.lock_state();
        let Some((jailed, mut listed)) = self.inside(&mut state) else { return pc };
        let file = match jailed.trapped(&mut listed, pc, alone) {
            Trapped::At(pc) => return pc,
            Trapped::Worth(file) => file,
        };
        drop(state);
        let image = jail.image(&file);
        let mut state = self.lock_state();
        self.inside(&mut state).map_or(pc, |(jailed, mut listed)| jailed.exchange(&mut listed, pc, image))
    }

    /// [`Jailed::pc_shown`].
    pub fn pc_shown(&self, pc: usize) -> usize {
        self.lock_state().jailed.as_ref().map_or(pc, |jailed| jailed.pc_shown(pc))
    }

    /// [`Jailed::pc_real`].
    pub fn pc_real(&self, pc: usize) -> usize {
        let state = self.lock_state();
        state.jailed.as_ref().map_or(pc, |jailed| jailed.pc_real(&state.list, pc))
    }

    /// [`Jailed::is_on_the_way`].
    pub fn is_on_the_way(&self, pc: usize) -> bool {
        self.lock_state().jailed.as_ref().is_some_and(|jailed| jailed.is_on_the_way(pc))
    }

    /// An access that the list of mappings may allow has faulted: whether it is to be tried again.
    pub fn fault(&self, addr: usize, access: Access) -> bool {
        match &self.guard {
            Some(guard) => guard.fault(addr, access),
            None => self.is_held_back(addr, access),
        }
    }

    /// The same for an instruction of the program's: whether it goes on at its frame.
    pub fn user_fault(&self, by: &mut Interrupted<'_>, addr: usize, access: Access) -> bool {
        match &self.guard {
            Some(guard) => guard.user_fault(by, addr, access),
            None => self.is_held_back(addr, access),
        }
    }

    /// An invalid instruction of the program's: whether it goes on at its frame.
    pub fn illegal(&self, by: &mut Interrupted<'_>) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.illegal(by))
    }

    /// Whether the jail was just writing to the page. It holds the list while it does.
    fn is_held_back(&self, addr: usize, access: Access) -> bool {
        if access != Access::Fetch || self.jail.is_none() {
            return false;
        }
        let state = self.lock_state();
        state.jailed.as_ref().is_some_and(|jailed| jailed.is_held_back(&state.list, &*self.space, addr))
    }
}
