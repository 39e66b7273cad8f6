//! A guest's address space as the kernel knows it, over a paged [`Space`]: what machines that page have in common.

use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::{Errno, Result};
use janua_port::host::OwnedFd;
use janua_port::machine::Residency;
use janua_port::space::Bounds;
use janua_port::{Backing, Fault, MemoryObject, Prot};

use crate::{Access, Behind, Frames, Object, PAGE, Refused, Space, Table};

/// What a platform adds to its guests' spaces: its kinds of frame and table, and state of its own beside each.
pub trait Platform: Send + Sync + Sized + 'static {
    type Frames: Frames;
    type Table: Table;

    /// Whether mappings move. Not on a machine that [settles](Platform::settle) them: where pages are lacking it could not take that back.
    const MOVES: bool = true;

    /// Where user mappings may be: the same for all spaces of the machine.
    fn bounds(&self) -> Bounds;

    /// The memory object that stands for a file of the host's; `shared`: stores are to reach the file. ENODEV where there is no host.
    fn file(&self, _file: &Arc<dyn MemoryObject>, _from: &OwnedFd, _shared: bool) -> Result<Arc<Object<Self::Frames>>> {
        Err(Errno::ENODEV)
    }

    /// What shared mappings have stored is to reach the files of the host that they are of. The host's errors.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// A range was mapped or got other rights. For machines where user code cannot wait for a page, which call [`Space::bring_all`] here.
    fn settle(&self, _paged: &Space<Self::Frames, Self::Table>, _addr: usize, _len: usize) -> Result<()> {
        Ok(())
    }

    /// An exec has emptied the space.
    fn emptied(&self) {}

    /// Moves the calling thread to an empty space, which is returned: `space` is left to the others who share it. ENOMEM; ENOSYS where
    /// there is one space only.
    fn leave(space: &UserSpace<Self>) -> Result<Arc<dyn janua_port::Space>>;

    /// Nobody has the space any more.
    fn gone(&mut self, _paged: &Space<Self::Frames, Self::Table>) {}
}

/// A guest's address space.
pub struct UserSpace<P: Platform> {
    paged: Arc<Space<P::Frames, P::Table>>,
    /// The platform's state of it.
    pub own: P,
}

impl<P: Platform> UserSpace<P> {
    /// An empty one over an empty table.
    pub fn new(frames: &'static P::Frames, table: P::Table, own: P) -> Arc<UserSpace<P>> {
        Arc::new(UserSpace { paged: Space::new(frames, table), own })
    }

    /// A copy for a fork over an empty table: pages are shared until written. ENOMEM.
    pub fn fork(&self, table: P::Table, own: P) -> Result<Arc<UserSpace<P>>> {
        let child = UserSpace::new(self.paged.frames(), table, own);
        self.paged.fork_into(&child.paged)?;
        Ok(child)
    }

    /// The space behind a kernel's handle. Panics when it is another machine's.
    pub fn of(space: &Arc<dyn janua_port::Space>) -> &UserSpace<P> {
        let any: &dyn Any = &**space;
        any.downcast_ref().expect("a space of another machine")
    }

    /// The pages and what they are of.
    pub fn paged(&self) -> &Arc<Space<P::Frames, P::Table>> {
        &self.paged
    }

    /// Makes an access possible, or returns why it cannot be.
    pub fn fault(&self, addr: usize, access: Access) -> core::result::Result<(), Refused> {
        if !self.own.bounds().contains(addr, 1) {
            return Err(Refused::Unmapped);
        }
        self.paged.fault(addr, access)
    }

    /// Copies from it, whichever space the core has in use: bytes before the first that cannot be read.
    pub fn read(&self, addr: usize, out: &mut [u8]) -> usize {
        if self.own.bounds().contains(addr, out.len()) { self.paged.read(addr, out) } else { 0 }
    }

    /// Copies into it, whichever space the core has in use: bytes before the first that cannot be written.
    pub fn write(&self, addr: usize, data: &[u8]) -> usize {
        if self.own.bounds().contains(addr, data.len()) { self.paged.write(addr, data) } else { 0 }
    }

    /// Atomically reads one of its words, whichever space the core has in use. The word is aligned and user memory.
    pub fn load_u32(&self, addr: usize) -> core::result::Result<u32, Fault> {
        self.paged.load_u32(addr).map_err(|_| Fault)
    }

    /// Atomic compare-and-exchange on one of its words, as [`UserSpace::load_u32`]: the value found.
    pub fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> core::result::Result<u32, Fault> {
        self.paged.cmpxchg_u32(addr, old, new).map_err(|_| Fault)
    }

    /// Bytes in memory now, and the most there have been.
    pub fn bytes(&self) -> (u64, u64) {
        let (now, most) = self.paged.pages();
        ((now * PAGE) as u64, (most * PAGE) as u64)
    }

    /// Bytes in memory that are no object's, whatever of them a fork's other side shares.
    pub fn own_bytes(&self) -> usize {
        self.paged.report().iter().map(|(_, report)| (report.own + report.copied_on_write) * PAGE).sum()
    }

    /// [`janua_port::Context::residency`]: pages of private memory are dirty, since nothing is behind them; so are an object's,
    /// for the same reason, but those that a private mapping only reads count as clean.
    pub fn residency(&self, each: &mut dyn FnMut(&Residency)) {
        const KIB: u64 = (PAGE / 1024) as u64;
        for (range, report) in self.paged.report() {
            let kib = |pages: usize| pages as u64 * KIB;
            let mut amounts = [0; Residency::NAMES.len()];
            let mut set = |name: &str, amount: u64| {
                if let Some(at) = Residency::NAMES.iter().position(|known| *known == name) {
                    amounts[at] = amount;
                }
            };
            set("Rss", kib(report.pages()));
            set("Pss", report.proportional as u64 * KIB / 4096);
            set("Shared_Clean", kib(report.object_shared));
            set("Shared_Dirty", kib(report.copied_on_write));
            set("Private_Clean", kib(report.object));
            set("Private_Dirty", kib(report.own));
            set("Referenced", kib(report.pages()));
            set("Anonymous", kib(report.own + report.copied_on_write));
            each(&Residency { start: range.start, end: range.end, amounts });
        }
    }

    /// [`janua_port::Context::page_map`].
    pub fn page_map(&self, addr: usize, out: &mut [u64]) {
        const PRESENT: u64 = 1 << 63;
        const OF_OBJECT: u64 = 1 << 61;
        const EXCLUSIVE: u64 = 1 << 56;
        out.fill(0);
        self.paged.each_present(addr, addr.saturating_add(out.len() * PAGE), |page, kind| {
            let object = if kind.of_object { OF_OBJECT } else { 0 };
            let alone = if kind.users == 1 { EXCLUSIVE } else { 0 };
            out[(page - addr) / PAGE] = PRESENT | object | alone;
        });
    }

    /// The last check before the machine acts: page aligned, not empty, the guest's.
    fn check(&self, addr: usize, len: usize) -> Result<()> {
        let aligned = addr.is_multiple_of(PAGE) && len.is_multiple_of(PAGE) && len > 0;
        if aligned && self.own.bounds().contains(addr, len) { Ok(()) } else { Err(Errno::EINVAL) }
    }

    fn behind(&self, len: usize, backing: &Backing) -> Result<Behind<P::Frames>> {
        Ok(match backing {
            Backing::Anon => Behind::Zero,
            Backing::AnonShared => {
                Behind::Object { object: Object::new(self.paged.frames(), len as u64), page: 0, shared: true }
            }
            Backing::Object { object, offset, shared, .. } => {
                let object = match object.host_file() {
                    Some(file) => self.own.file(object, file, *shared)?,
                    None => {
                        let object: Arc<dyn Any + Send + Sync> = object.clone();
                        object.downcast().map_err(|_| Errno::ENODEV)?
                    }
                };
                Behind::Object { object, page: offset / PAGE as u64, shared: *shared }
            }
        })
    }

    fn moves(&self, old: usize, old_len: usize, new: usize, new_len: usize, keep: bool) -> Result<()> {
        if !P::MOVES {
            return Err(Errno::ENOSYS);
        }
        self.check(new, new_len)?;
        self.check(old, old_len.max(PAGE))?;
        self.paged.remap(old, old_len, new, new_len, keep)
    }
}

impl<P: Platform> janua_port::Space for UserSpace<P> {
    fn map(&self, addr: usize, len: usize, prot: Prot, backing: &Backing) -> Result<()> {
        self.check(addr, len)?;
        self.paged.map(addr, addr + len, prot, self.behind(len, backing)?)?;
        self.own.settle(&self.paged, addr, len).inspect_err(|_| self.paged.unmap(addr, addr + len))
    }

    fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        self.check(addr, len)?;
        self.paged.unmap(addr, addr + len);
        Ok(())
    }

    fn protect(&self, addr: usize, len: usize, prot: Prot) -> Result<()> {
        self.check(addr, len)?;
        self.paged.protect(addr, addr + len, prot)?;
        self.own.settle(&self.paged, addr, len)
    }

    fn remap(&self, old: usize, old_len: usize, new: usize, new_len: usize) -> Result<()> {
        self.moves(old, old_len, new, new_len, false)
    }

    fn remap_keep(&self, old: usize, len: usize, new: usize) -> Result<()> {
        self.moves(old, len, new, len, true)
    }

    fn advise(&self, addr: usize, len: usize, advice: u32) -> Result<()> {
        self.check(addr, len)?;
        self.paged.advise(addr, addr + len, advice)?;
        self.own.settle(&self.paged, addr, len)
    }

    fn sync(&self, addr: usize, len: usize, _flags: u32) -> Result<()> {
        // Mappings and objects share their pages.
        self.check(addr, len)?;
        self.own.sync()
    }

    fn resident(&self, addr: usize, len: usize, out: &mut [u8]) -> Result<()> {
        self.check(addr, len)?;
        if out.len() < len / PAGE {
            return Err(Errno::EINVAL);
        }
        self.paged.residence(addr, addr + len, out);
        Ok(())
    }

    fn reset(self: Arc<Self>, shared: bool) -> Result<Arc<dyn janua_port::Space>> {
        if shared {
            return P::leave(&self);
        }
        self.paged.clear();
        self.own.emptied();
        Ok(self)
    }

    fn bounds(&self) -> Bounds {
        self.own.bounds()
    }
}

impl<P: Platform> Drop for UserSpace<P> {
    fn drop(&mut self) {
        self.own.gone(&self.paged);
    }
}
