//! Address spaces of guests.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_paging::{Platform, UserSpace};
use janua_port::Space;
use janua_port::machine::Usage;
use janua_port::space::Bounds;

use crate::barrier::{self, Registered};
use crate::frames::{FRAMES, Physical};
use crate::lock::Mutex;
use crate::tables::{self, Hardware, Root};
use crate::{oom, sched, thread, unprotected, user};

/// A guest's address space.
pub type BareSpace = UserSpace<Own>;

type Paged = janua_paging::Space<Physical, Hardware>;

/// What this machine keeps of a space.
pub struct Own {
    root: Arc<Root>,
    /// What threads have used that ended in it.
    ended: Mutex<Usage>,
    /// Whether the first program lives in it.
    first: AtomicBool,
    /// Whether somebody waits for its memory.
    condemned: AtomicBool,
    registered: Registered,
}

/// Lowest address a guest may map: the first pages stay free, so that null pointers fault.
const LOW: usize = 0x1_0000;

/// An empty one. ENOMEM.
pub fn empty() -> Result<Arc<BareSpace>> {
    let (table, own) = parts(Registered::default())?;
    Ok(UserSpace::new(&FRAMES, table, own))
}

/// A copy for a fork: pages are shared until written.
pub fn copy(space: &BareSpace) -> Result<Arc<BareSpace>> {
    let (table, own) = parts(space.own.registered.copy())?;
    space.fork(table, own)
}

fn parts(registered: Registered) -> Result<(Hardware, Own)> {
    let table = tables::make().ok_or(Errno::ENOMEM)?;
    let root = table.nodes().root().clone();
    let (first, condemned) = (AtomicBool::new(false), AtomicBool::new(false));
    Ok((table, Own { root, ended: Mutex::default(), first, condemned, registered }))
}

impl Own {
    /// The calling core uses it from now on.
    pub fn enter(&self) {
        tables::enter(Some(&self.root));
    }

    /// The first program lives in it.
    pub fn set_first(&self) {
        self.first.store(true, Ordering::Relaxed);
    }

    pub fn is_first(&self) -> bool {
        self.first.load(Ordering::Relaxed)
    }

    /// Somebody waits for its memory: [`oom::came_back`] is called when it is all free.
    pub fn condemn(&self) {
        self.condemned.store(true, Ordering::Release);
    }

    /// [`barrier::membarrier`] for its threads.
    pub fn membarrier(&self, command: u32) -> Result<usize> {
        barrier::membarrier(&self.root, &self.registered, command)
    }

    /// A thread of it has ended.
    pub fn thread_ended(&self, usage: Usage) {
        let mut ended = self.ended.lock();
        *ended = thread::add(*ended, usage);
    }

    /// What threads have used that ended in it.
    pub fn ended(&self) -> Usage {
        *self.ended.lock()
    }
}

impl Platform for Own {
    type Frames = Physical;
    type Table = Hardware;

    fn bounds(&self) -> Bounds {
        Bounds { low: LOW, high: user::END, holes: [(0, 0); 2] }
    }

    fn settle(&self, paged: &Paged, addr: usize, len: usize) -> Result<()> {
        // A page that is missing below its stack pointer would be the end of a program in ring 0.
        if unprotected::is_on() { paged.bring_writable(addr, addr + len) } else { Ok(()) }
    }

    fn emptied(&self) {
        self.registered.clear();
    }

    fn leave(space: &BareSpace) -> Result<Arc<dyn Space>> {
        let new = empty()?;
        if space.own.is_first() {
            // Another program goes on in the old one, but it is this thread that the machine ends with.
            new.own.set_first();
        }
        let fresh: Arc<dyn Space> = new;
        sched::change_space(fresh.clone());
        Ok(fresh)
    }

    fn gone(&mut self, paged: &Paged) {
        if *self.condemned.get_mut() {
            paged.clear();
            oom::came_back();
        }
    }
}
