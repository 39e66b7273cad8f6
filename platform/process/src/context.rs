//! What the machine has of a guest thread, for any thread of the kernel.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_paging::{Access, Refused};
use janua_platform_linux::{area, boot, clock, usage};
use janua_port::machine::{Residency, Scheduled, ThreadId, Usage};
use janua_port::{Context, Fault, Guest, Nanos, Registers, Space, Spawn, UserMemory};

use crate::life;
use crate::space::{self, ProcessSpace};
use crate::thread::{self, Thread};
use crate::tracee::NAME;
use janua_platform_linux::sys::nr;
use janua_platform_linux::vdso;

/// A guest thread.
pub struct ProcessContext(pub Arc<Thread>);

/// The memory of a guest thread.
pub struct Memory<'a>(&'a Thread);

/// The memory of the guest thread that the caller is; of a thread that is none's, nothing.
pub struct CallerMemory;

impl ProcessContext {
    /// [`Context::scheduled`]: without what the host's process was used for before.
    fn scheduled_by_host(&self, ids: (u32, u32)) -> Option<Scheduled> {
        let scheduled = usage::scheduled(ids)?;
        if ids.0 != ids.1 {
            return Some(scheduled);
        }
        let mirror = self.0.mirror();
        mirror.note_counted(None, Some(scheduled));
        let Scheduled { ran, waited, times } = mirror.counted_before().scheduled;
        Some(Scheduled {
            ran: scheduled.ran.saturating_sub(ran),
            waited: scheduled.waited.saturating_sub(waited),
            times: scheduled.times.saturating_sub(times),
        })
    }

    /// What the host counts for the thread or its process, without what that was used for before.
    fn counted_by_host(&self, ids: (u32, u32), whole_task: bool) -> Usage {
        let counted = if whole_task { usage::of_process(ids.0) } else { usage::of_thread(ids) };
        let Some(counted) = counted else { return Usage::default() };
        if !whole_task && ids.0 != ids.1 {
            return counted;
        }
        let mirror = self.0.mirror();
        mirror.note_counted(Some(counted), None);
        let before = mirror.counted_before().usage;
        Usage {
            user: counted.user.saturating_sub(before.user),
            system: counted.system.saturating_sub(before.system),
            minor_faults: counted.minor_faults.saturating_sub(before.minor_faults),
            major_faults: counted.major_faults.saturating_sub(before.major_faults),
            waits: counted.waits.saturating_sub(before.waits),
            preemptions: counted.preemptions.saturating_sub(before.preemptions),
        }
    }

    /// Its memory.
    pub fn memory_of(thread: &Thread) -> Memory<'_> {
        Memory(thread)
    }

    /// The host's numbers of its process and of its host thread, as long as it lives.
    fn ids(&self) -> Option<(u32, u32)> {
        let ids = (self.0.mirror().pid(), self.0.tid());
        (ids.1 != 0).then_some(ids)
    }

    fn space(&self) -> Arc<dyn Space> {
        self.0.space.lock().clone()
    }
}

/// Whether a range is the guests'; so is the code of the vDSO, to be read.
pub fn is_user(addr: usize, len: usize) -> bool {
    addr.checked_add(len).is_some_and(|end| end <= space::bounds().high || vdso_holds(addr, len))
}

/// Whether a range is of the code of the vDSO, which no space has among its pages, but which each process has.
fn vdso_holds(addr: usize, len: usize) -> bool {
    let (start, end) = vdso::ranges()[1];
    addr >= start && addr.checked_add(len).is_some_and(|to| to <= end)
}

impl Memory<'_> {
    /// Copies by `copy(space, done)` until `len` bytes are done or the guest has nothing to add to the faulting place.
    fn whole(&self, addr: usize, len: usize, store: bool, mut copy: impl FnMut(&ProcessSpace, usize) -> usize) -> usize {
        if !is_user(addr, len) || len == 0 {
            return 0;
        }
        let space = self.0.space.lock().clone();
        let mut done = 0;
        loop {
            done += copy(ProcessSpace::of(&space), done);
            if done >= len || !self.mends(ProcessSpace::of(&space), addr + done, store) {
                return done;
            }
        }
    }

    /// Whether the guest has made an access possible that was not.
    #[cold]
    fn mends(&self, space: &ProcessSpace, addr: usize, store: bool) -> bool {
        let guest: Option<Arc<dyn Guest>> = if self.0.is_caller() { self.0.guest.lock().clone() } else { None };
        let Some(guest) = guest else { return false };
        // The guest looks for what may be there with locks that the caller must not wait for without need.
        match space.fault(addr, if store { Access::Write } else { Access::Read }) {
            Ok(()) => true,
            Err(Refused::Unmapped) => guest.hole_fault(addr),
            Err(Refused::Denied) => store && guest.store_fault(addr),
            Err(_) => false,
        }
    }

    fn word<T>(
        &self,
        addr: usize,
        mut act: impl FnMut(&ProcessSpace) -> core::result::Result<T, Fault>,
    ) -> core::result::Result<T, Fault> {
        if !addr.is_multiple_of(4) || !is_user(addr, 4) {
            return Err(Fault);
        }
        let space = self.0.space.lock().clone();
        let space = ProcessSpace::of(&space);
        loop {
            match act(space) {
                Err(Fault) if self.mends(space, addr, true) => {}
                other => return other,
            }
        }
    }
}

impl UserMemory for Memory<'_> {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        is_user(addr, len)
    }
    fn in_place(&self) -> bool {
        false
    }
    fn is_code(&self, addr: usize) -> bool {
        // The vDSO, and the host's behind it.
        let end = vdso::ranges()[1].1.max(boot::info().vdso_end as usize);
        is_user(addr, 1) || (vdso::ranges()[0].0..end).contains(&addr)
    }
    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        let len = dst.len();
        if vdso_holds(src, len) {
            // SAFETY: the kernel's process has it at the same place, to read and to run, and nobody changes it.
            unsafe { core::ptr::copy_nonoverlapping(src as *const u8, dst.as_mut_ptr(), len) };
            return len;
        }
        self.whole(src, len, false, |space, done| space.read(src + done, &mut dst[done..]))
    }
    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        self.whole(dst, src.len(), true, |space, done| space.write(dst + done, &src[done..]))
    }
    fn load_u32(&self, addr: usize) -> core::result::Result<u32, Fault> {
        self.word(addr, |space| space.load_u32(addr))
    }
    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> core::result::Result<u32, Fault> {
        self.word(addr, |space| space.cmpxchg_u32(addr, old, new))
    }
}

impl UserMemory for CallerMemory {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        is_user(addr, len)
    }
    fn in_place(&self) -> bool {
        false
    }
    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        thread::current().map_or(0, |own| Memory(own).copy_in_partial(dst, src))
    }
    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        thread::current().map_or(0, |own| Memory(own).copy_out_partial(dst, src))
    }
    fn load_u32(&self, addr: usize) -> core::result::Result<u32, Fault> {
        thread::current().map_or(Err(Fault), |own| Memory(own).load_u32(addr))
    }
    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> core::result::Result<u32, Fault> {
        thread::current().map_or(Err(Fault), |own| Memory(own).cmpxchg_u32(addr, old, new))
    }
}

impl UserMemory for ProcessContext {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        is_user(addr, len)
    }
    fn in_place(&self) -> bool {
        false
    }
    fn is_code(&self, addr: usize) -> bool {
        Memory(&self.0).is_code(addr)
    }
    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        Memory(&self.0).copy_in_partial(dst, src)
    }
    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        Memory(&self.0).copy_out_partial(dst, src)
    }
    fn load_u32(&self, addr: usize) -> core::result::Result<u32, Fault> {
        Memory(&self.0).load_u32(addr)
    }
    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> core::result::Result<u32, Fault> {
        Memory(&self.0).cmpxchg_u32(addr, old, new)
    }
}

impl Context for ProcessContext {
    fn id(&self) -> ThreadId {
        ThreadId(self.0.id())
    }
    fn memory(&self) -> &dyn UserMemory {
        self
    }
    fn registers(&self) -> Result<&dyn Registers> {
        if self.0.is_caller() { Ok(self) } else { Err(Errno::EXDEV) }
    }
    fn spawn(&self, spawn: Spawn) -> Result<Arc<dyn Context>> {
        if self.0.is_caller() { life::spawn(&self.0, spawn) } else { Err(Errno::EXDEV) }
    }
    fn kick(&self) {
        self.0.kick();
    }
    fn work_for(&self, on: bool) {
        let serves = if on { self.0.area() as u32 + 1 } else { 0 };
        let here = janua_platform_linux::context::here();
        area::of(here).serves.store(serves, Ordering::Relaxed);
    }
    fn restrict(&self, cpus: &[u64]) -> Result<()> {
        let (_, tid) = self.ids().ok_or(Errno::ESRCH)?;
        self.0.mirror().touch();
        // First, so that nobody sets it free afterwards.
        self.0.restrict(cpus)?;
        usage::set_affinity(tid, cpus)
    }
    fn set_nice(&self, nice: i32) -> Result<()> {
        let (_, tid) = self.ids().ok_or(Errno::ESRCH)?;
        self.0.mirror().touch();
        self.0.set_nice(nice)?;
        usage::set_nice(tid, nice)
    }
    fn set_name(&self, name: &[u8]) {
        if !self.0.is_caller() {
            return;
        }
        let mut text = *b"janua:\0\0\0\0\0\0\0\0\0\0";
        // What does not fit with the byte that ends it is cut.
        for (to, from) in text[6..NAME - 1].iter_mut().zip(name) {
            *to = *from;
        }
        self.0.tracee.lock().set_name(text);
    }
    fn outer_number(&self) -> Option<u32> {
        Some(self.ids()?.0)
    }
    fn cpu(&self, whole_task: bool) -> Option<Nanos> {
        let (pid, tid) = self.ids()?;
        if whole_task {
            let mirror = self.0.mirror();
            let used = clock::of_other((pid, tid), true)?.saturating_sub(mirror.counted_before().cpu);
            return Some(used + mirror.used_in_kernel());
        }
        let own = self.0.used_in_kernel();
        Some(own + self.scheduled_by_host((pid, tid)).map_or_else(|| self.0.ran.so_far(), |scheduled| scheduled.ran))
    }
    fn usage(&self, whole_task: bool) -> Option<Usage> {
        let ids = self.ids()?;
        let counted = self.counted_by_host(ids, whole_task);
        // The host reports it in ticks, if at all; its clocks are exact.
        let exact = self.cpu(whole_task)?;
        // The host counts its own, of which one may bring many pages, and none where it was given an order to bring them.
        let faults = if whole_task { self.0.mirror().faults() } else { self.0.faults.load(Ordering::Relaxed) };
        let minor_faults = counted.minor_faults.max(faults);
        Some(Usage { user: exact.saturating_sub(counted.system).max(counted.user), minor_faults, ..counted })
    }
    fn resident(&self) -> Option<u64> {
        Some(ProcessSpace::of(&self.space()).bytes().0)
    }
    fn resident_own(&self) -> Option<usize> {
        Some(ProcessSpace::of(&self.space()).own_bytes())
    }
    fn peak_resident(&self) -> u64 {
        ProcessSpace::of(&self.space()).bytes().1
    }
    fn residency(&self, each: &mut dyn FnMut(&Residency)) -> Result<()> {
        ProcessSpace::of(&self.space()).residency(each);
        Ok(())
    }
    fn page_map(&self, addr: usize, out: &mut [u64]) -> Result<()> {
        ProcessSpace::of(&self.space()).page_map(addr, out);
        Ok(())
    }
    fn membarrier(&self, command: u32, flags: u32, cpu: u32) -> Result<usize> {
        if !self.0.is_caller() {
            return Err(Errno::EXDEV);
        }
        let request = [nr::MEMBARRIER.number(), command as usize, flags as usize, cpu as usize, 0, 0, 0, 0];
        // A caller whose process is not there any more finds out when it goes on.
        let made = self.0.tracee.lock().call(&request).unwrap_or(Err(Errno::EAGAIN));
        // The MEMBARRIER_CMD_REGISTER_*, which a child has as well.
        const REGISTER: u32 = 1 << 2 | 1 << 4 | 1 << 6 | 1 << 8;
        if made.is_ok() {
            self.0.mirror().add_barriers(command & REGISTER);
        }
        made
    }
    fn scheduled(&self) -> Option<Scheduled> {
        self.scheduled_by_host(self.ids()?)
    }
}
