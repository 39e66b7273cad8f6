//! Address spaces of guests.

use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::mman::MADV_POPULATE_WRITE;
use janua_abi::linux::{Errno, Result};
use janua_paging::{Access, Behind, Object, PAGE, Refused};
use janua_port::machine::{Residency, Usage};
use janua_port::space::Bounds;
use janua_port::{Backing, Fault, Prot, Space};

use crate::barrier::{self, Registered};
use crate::frames::{FRAMES, Physical};
use crate::lock::Mutex;
use crate::memory;
use crate::tables::{self, Hardware, Root};
use crate::{oom, sched, thread, unprotected, user};

/// A guest's address space.
pub struct BareSpace {
    paged: Arc<janua_paging::Space<Physical, Hardware>>,
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

fn check(addr: usize, len: usize) -> Result<()> {
    let aligned = addr.is_multiple_of(PAGE) && len.is_multiple_of(PAGE) && len > 0;
    if aligned && user::is_user(addr, len) { Ok(()) } else { Err(Errno::EINVAL) }
}

impl BareSpace {
    /// An empty one. ENOMEM.
    pub fn new() -> Result<Arc<BareSpace>> {
        BareSpace::registered(Registered::default())
    }

    fn registered(registered: Registered) -> Result<Arc<BareSpace>> {
        let table = tables::make().ok_or(Errno::ENOMEM)?;
        let root = table.nodes().root().clone();
        Ok(Arc::new(BareSpace {
            paged: janua_paging::Space::new(&FRAMES, table),
            root,
            ended: Mutex::default(),
            first: AtomicBool::new(false),
            condemned: AtomicBool::new(false),
            registered,
        }))
    }

    /// The space behind a kernel's handle. Every space of this machine is one.
    pub fn of(space: &Arc<dyn Space>) -> &BareSpace {
        let any: &dyn Any = &**space;
        any.downcast_ref().expect("a space of another machine")
    }

    /// A copy for a fork: pages are shared until written.
    pub fn copy(&self) -> Result<Arc<BareSpace>> {
        let child = BareSpace::registered(self.registered.copy())?;
        self.paged.fork_into(&child.paged)?;
        Ok(child)
    }

    /// The calling core uses it from now on.
    pub fn enter(&self) {
        tables::enter(Some(&self.root));
    }

    /// Makes an access possible, or says why it cannot be.
    pub fn fault(&self, addr: usize, access: Access) -> core::result::Result<(), Refused> {
        if !user::is_user(addr, 1) {
            return Err(Refused::Unmapped);
        }
        self.paged.fault(addr, access)
    }

    /// Copies from it, whichever space the core has in use: bytes before the first that cannot be read.
    pub fn read(&self, addr: usize, out: &mut [u8]) -> usize {
        if user::is_user(addr, out.len()) { self.paged.read(addr, out) } else { 0 }
    }

    /// Copies into it, whichever space the core has in use: bytes before the first that cannot be written.
    pub fn write(&self, addr: usize, data: &[u8]) -> usize {
        if user::is_user(addr, data.len()) { self.paged.write(addr, data) } else { 0 }
    }

    /// Atomically reads one of its words, whichever space the core has in use. The word is aligned and user memory.
    pub fn load_u32(&self, addr: usize) -> core::result::Result<u32, Fault> {
        self.paged.load_u32(addr).map_err(|_| Fault)
    }

    /// Atomic compare-and-exchange on one of its words, as [`BareSpace::load_u32`]: the value found.
    pub fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> core::result::Result<u32, Fault> {
        self.paged.cmpxchg_u32(addr, old, new).map_err(|_| Fault)
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

    /// Bytes in memory now, and the most there have been.
    pub fn bytes(&self) -> (u64, u64) {
        let (now, most) = self.paged.pages();
        ((now * PAGE) as u64, (most * PAGE) as u64)
    }
}

impl Drop for BareSpace {
    fn drop(&mut self) {
        if *self.condemned.get_mut() {
            self.paged.clear();
            oom::came_back();
        }
    }
}

impl Space for BareSpace {
    fn map(&self, addr: usize, len: usize, prot: Prot, backing: &Backing) -> Result<()> {
        check(addr, len)?;
        let behind = match backing {
            Backing::Anon => Behind::Zero,
            Backing::AnonShared => Behind::Object { object: Object::new(&FRAMES, len as u64), page: 0, shared: true },
            Backing::Host { fd, offset, shared, .. } => {
                Behind::Object { object: memory::object(*fd)?, page: offset / PAGE as u64, shared: *shared }
            }
        };
        self.paged.map(addr, addr + len, prot, behind)?;
        if unprotected::is_on() && prot.write {
            // A page that is missing below its stack pointer would be the end of a program in ring 0.
            self.advise(addr, len, MADV_POPULATE_WRITE)?;
        }
        Ok(())
    }

    fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        check(addr, len)?;
        self.paged.unmap(addr, addr + len);
        Ok(())
    }

    fn protect(&self, addr: usize, len: usize, prot: Prot) -> Result<()> {
        check(addr, len)?;
        self.paged.protect(addr, addr + len, prot)
    }

    fn remap(&self, old: usize, old_len: usize, new: usize, new_len: usize) -> Result<()> {
        check(new, new_len)?;
        check(old, old_len.max(PAGE))?;
        self.paged.remap(old, old_len, new, new_len, false)
    }

    fn remap_keep(&self, old: usize, len: usize, new: usize) -> Result<()> {
        check(old, len)?;
        check(new, len)?;
        self.paged.remap(old, len, new, len, true)
    }

    fn advise(&self, addr: usize, len: usize, advice: u32) -> Result<()> {
        check(addr, len)?;
        self.paged.advise(addr, addr + len, advice)
    }

    fn sync(&self, addr: usize, len: usize, _flags: u32) -> Result<()> {
        // Mappings and files share their pages.
        check(addr, len)
    }

    fn resident(&self, addr: usize, len: usize, out: &mut [u8]) -> Result<()> {
        check(addr, len)?;
        if out.len() < len / PAGE {
            return Err(Errno::EINVAL);
        }
        self.paged.residence(addr, addr + len, out);
        Ok(())
    }

    fn reset(self: Arc<Self>, shared: bool) -> Result<Arc<dyn Space>> {
        if !shared {
            self.paged.clear();
            self.registered.clear();
            return Ok(self);
        }
        let new = BareSpace::new()?;
        if self.is_first() {
            // Another program goes on in the old one, but it is this thread that the machine ends with.
            new.set_first();
        }
        let fresh: Arc<dyn Space> = new;
        sched::change_space(fresh.clone());
        Ok(fresh)
    }

    fn bounds(&self) -> Bounds {
        Bounds { low: LOW, high: user::END, holes: [(0, 0); 2] }
    }
}
