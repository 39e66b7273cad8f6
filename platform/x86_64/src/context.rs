//! What the machine has of a guest thread, for any thread of the kernel.
//!
//! It names the thread and does not hold it: the thread holds its guest, and the guest this.

use alloc::sync::Arc;

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::{Errno, Result};
use janua_arch::Segments;
use janua_entry::bare::Save;
use janua_port::machine::{Demand, Residency, ThreadId, Usage};
use janua_port::user::Reach;
use janua_port::{Context, Fault, Nanos, Plain, Registers, Space, Spawn, UserMemory};

use crate::space::BareSpace;
use crate::thread::{self, Thread};
use crate::user::{self, BareUser};
use crate::{compat, core as cores, cpu, fpu, machine, promise, sched};

/// A guest thread.
pub struct BareContext {
    id: ThreadId,
    serial: u64,
}

impl BareContext {
    pub fn of(thread: &Thread) -> BareContext {
        BareContext { id: thread.id, serial: thread.serial }
    }

    /// The thread, as long as it lives.
    fn thread(&self) -> Option<Arc<Thread>> {
        thread::find(self.id).filter(|thread| thread.serial == self.serial)
    }

    /// Whether the caller runs in its address space, being another thread.
    #[cold]
    fn shares_space(&self) -> bool {
        let own = sched::current().space.lock().clone();
        own.zip(self.space()).is_some_and(|(own, space)| Arc::ptr_eq(&own, &space))
    }

    fn space(&self) -> Option<Arc<dyn Space>> {
        self.thread()?.space.lock().clone()
    }
}

impl Reach for BareContext {
    type Near = BareUser;

    #[inline]
    fn near(&self) -> &BareUser {
        &BareUser
    }

    #[inline]
    fn is_caller(&self) -> bool {
        cores::here().turn.running() == self.serial
    }

    #[inline]
    fn is_near(&self) -> bool {
        self.is_caller() || self.shares_space()
    }

    fn read(&self, addr: usize, out: &mut [u8]) -> usize {
        self.space().map_or(0, |space| BareSpace::of(&space).read(addr, out))
    }

    fn write(&self, addr: usize, data: &[u8]) -> usize {
        self.space().map_or(0, |space| BareSpace::of(&space).write(addr, data))
    }

    fn load(&self, addr: usize) -> core::result::Result<u32, Fault> {
        self.space().map_or(Err(Fault), |space| BareSpace::of(&space).load_u32(addr))
    }

    fn exchange(&self, addr: usize, old: u32, new: u32) -> core::result::Result<u32, Fault> {
        self.space().map_or(Err(Fault), |space| BareSpace::of(&space).cmpxchg_u32(addr, old, new))
    }
}

impl Context for BareContext {
    fn id(&self) -> ThreadId {
        self.id
    }

    fn memory(&self) -> &dyn UserMemory {
        self
    }

    fn registers(&self) -> Result<&dyn Registers> {
        if self.is_caller() { Ok(&BareRegisters) } else { Err(Errno::EXDEV) }
    }

    fn spawn(&self, spawn: Spawn) -> Result<Arc<dyn Context>> {
        if self.is_caller() { machine::spawn(spawn) } else { Err(Errno::EXDEV) }
    }

    fn kick(&self) {
        // On this core it does not run, and looks at its work on its way to user code.
        if cores::count() > 1
            && let Some(thread) = self.thread()
        {
            sched::nudge(&thread);
        }
    }

    fn set_plain(&self, plain: Option<Plain<'_>>) {
        if self.is_caller() {
            let thread = sched::current();
            // SAFETY: the running thread's own part.
            unsafe { Save::set_calls(&raw mut (*thread.own.get()).save, plain) };
        }
    }

    fn restrict(&self, cpus: &[u64]) -> Result<()> {
        let all = cores::all().fold(0, |set, core| set | core.bit());
        let allowed = cpus.first().copied().unwrap_or_default() & all;
        if allowed == 0 {
            return Err(Errno::EINVAL);
        }
        sched::restrict(&self.thread().ok_or(Errno::ESRCH)?, allowed);
        Ok(())
    }

    fn set_nice(&self, nice: i32) -> Result<()> {
        self.thread().ok_or(Errno::ESRCH)?.set_nice(nice);
        Ok(())
    }

    fn promise(&self, demand: Option<Demand>) -> Result<()> {
        promise::set(&self.thread().ok_or(Errno::ESRCH)?, demand)
    }

    fn cpu(&self, whole_task: bool) -> Option<Nanos> {
        if whole_task { None } else { Some(self.thread()?.used()) }
    }

    fn usage(&self, whole_task: bool) -> Option<Usage> {
        let thread = self.thread()?;
        let space = thread.space.lock().clone();
        Some(match space.filter(|_| whole_task) {
            Some(space) => thread::add(thread::usage_in(&space), BareSpace::of(&space).own.ended()),
            None => thread.usage(),
        })
    }

    fn resident(&self) -> Option<u64> {
        Some(BareSpace::of(&self.space()?).bytes().0)
    }

    fn peak_resident(&self) -> u64 {
        self.space().map_or(0, |space| BareSpace::of(&space).bytes().1)
    }

    fn residency(&self, each: &mut dyn FnMut(&Residency)) -> Result<()> {
        BareSpace::of(&self.space().ok_or(Errno::ESRCH)?).residency(each);
        Ok(())
    }

    fn page_map(&self, addr: usize, out: &mut [u64]) -> Result<()> {
        BareSpace::of(&self.space().ok_or(Errno::ESRCH)?).page_map(addr, out);
        Ok(())
    }

    fn membarrier(&self, command: u32, _flags: u32, _cpu: u32) -> Result<usize> {
        BareSpace::of(&self.space().ok_or(Errno::ENOSYS)?).own.membarrier(command)
    }
}

/// The running thread's registers.
struct BareRegisters;

impl Registers for BareRegisters {
    fn tls(&self) -> usize {
        // SAFETY: every 64-bit processor has the register; in the kernel it still holds user code's.
        unsafe { cpu::rdmsr(cpu::MSR_FS_BASE) as usize }
    }

    fn set_tls(&self, value: usize) {
        if user::is_user(value, 0) {
            // SAFETY: as above; the value is canonical.
            unsafe { cpu::wrmsr(cpu::MSR_FS_BASE, value as u64) };
        }
    }

    fn gs(&self) -> usize {
        // SAFETY: as above; user code's GS base is here while the kernel runs.
        unsafe { cpu::rdmsr(cpu::MSR_KERNEL_GS_BASE) as usize }
    }

    fn set_gs(&self, value: usize) {
        if user::is_user(value, 0) {
            // SAFETY: as above.
            unsafe { cpu::wrmsr(cpu::MSR_KERNEL_GS_BASE, value as u64) };
        }
    }

    fn fpu_save(&self, area: &mut [u8]) {
        fpu::save(area);
    }

    fn fpu_restore(&self, area: &[u8]) -> Result<()> {
        fpu::restore(area)
    }

    fn fpu_reset(&self) {
        fpu::Area::initial().load();
    }

    fn segments(&self) -> Segments {
        Segments::current()
    }

    fn set_segments(&self, segments: Segments) {
        compat::set_segments(segments);
    }

    fn set_thread_area(&self, descriptor: &UserDesc) -> Result<()> {
        compat::set_thread_area(descriptor)
    }

    fn set_landing(&self, address: u32) {
        compat::set_landing(address);
    }
}
