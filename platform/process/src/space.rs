//! Address spaces of guests: paged, each with a host process that shows it.

use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::LOW_PAGE;
use janua_paging::{Frames, Object, Platform, UserSpace};
use janua_port::host::OwnedFd;
use janua_port::space::Bounds;
use janua_port::{MemoryObject, Space};

use crate::mirror::{Mirror, Shown, eager};
use crate::physical::{MEMORY, Physical};
use crate::{files, life, mailbox, thread, tracee};

/// A guest's address space.
pub type ProcessSpace = UserSpace<Own>;

type Paged = janua_paging::Space<Physical, Shown>;

/// What this machine keeps of a space: its page table, with the host's process.
pub struct Own(Arc<Mirror>);

impl Own {
    pub fn mirror(&self) -> &Arc<Mirror> {
        &self.0
    }
}

/// Lowest address a guest may map: the first that the host lets anybody. What the kernel has there is in its own process.
const LOW: usize = LOW_PAGE;

/// Where user mappings may be.
pub fn bounds() -> Bounds {
    Bounds { low: LOW, high: mailbox::places().start, holes: [(0, 0); 2] }
}

/// An empty one, without a process as yet.
pub fn empty() -> Arc<ProcessSpace> {
    let mirror = Mirror::new();
    UserSpace::new(&MEMORY, Shown(mirror.clone()), Own(mirror))
}

/// A copy for a fork: pages are shared until written. ENOMEM.
pub fn copy(space: &ProcessSpace) -> Result<Arc<ProcessSpace>> {
    let mirror = Mirror::new();
    mirror.add_barriers(space.own.mirror().barriers());
    space.fork(Shown(mirror.clone()), Own(mirror))
}

/// The last host thread of a process has been let go: waits for the process' end, and gives back what it had.
pub fn reap(mirror: &Mirror) {
    let pid = mirror.pid();
    if mirror.is_abandoned() && pid != 0 && !tracee::has_ended(pid) {
        // Nobody waits for it, and its pages stay its own.
        return;
    }
    if pid != 0 && !mirror.is_abandoned() {
        let _ = tracee::wait(pid);
    }
    for page in mirror.take_pages() {
        MEMORY.release(page);
    }
}

impl Platform for Own {
    type Frames = Physical;
    type Table = Shown;

    fn bounds(&self) -> Bounds {
        bounds()
    }

    fn file(&self, file: &Arc<dyn MemoryObject>, from: &OwnedFd, shared: bool) -> Result<Arc<Object<Physical>>> {
        files::object(file, from, shared)
    }

    fn settle(&self, paged: &Paged, addr: usize, len: usize) -> Result<()> {
        if eager::suits(len) {
            paged.bring_all(addr, addr + len)?;
            self.0.show_soon(addr, len);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        files::write_back()
    }

    fn emptied(&self) {
        // What cannot be written stays noted: fsync(2) of the file reports it.
        let _ = files::write_back();
        self.0.begins();
    }

    fn leave(_space: &ProcessSpace) -> Result<Arc<dyn Space>> {
        let own = thread::current().ok_or(Errno::EXDEV)?;
        let fresh: Arc<dyn Space> = empty();
        life::move_to(own, fresh.clone())?;
        Ok(fresh)
    }

    fn gone(&mut self, paged: &Paged) {
        let _ = files::write_back();
        paged.clear();
        files::forget_nameless();
    }
}
