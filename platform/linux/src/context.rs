//! What the platform has of a guest thread, for any thread of the kernel.
//!
//! Nothing is kept here: a thread's place is its area, and the host knows the rest by the numbers that are there. An area is used again when its
//! thread has ended, so a context remembers how many have ended in it ([`Shared::ended`]).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::prctl;
use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::{self, NAME_WORDS, Shared};
use janua_port::machine::{Residency, Scheduled, ThreadId, Usage};
use janua_port::user::Reach;
use janua_port::{Context, Nanos, Plain, Registers, Spawn, UserMemory};

use crate::boot::{self, Jail};
use crate::kept::{self, Look};
use crate::registers::HostedRegisters;
use crate::sys::{self, Call, nr};
use crate::user::HostedUser;
use crate::{area, clock, machine, spare, spawn, usage};

/// Ranges that one call of the host's copies.
const AT_ONCE: usize = 64;

/// A guest thread.
pub struct HostedContext {
    index: usize,
    ended: u32,
}

/// The index of the calling thread: every thread runs on its area's stack while it is in the kernel.
pub fn here() -> usize {
    let here = 0u8;
    hosted::index_of(&raw const here as usize)
}

/// Has the host call the calling thread, whose area it is, by the bytes of these words, the last of which is zero.
pub fn call_thread(this: &Shared, name: [u64; NAME_WORDS]) {
    for (place, word) in this.name.iter().zip(name) {
        place.store(word, Ordering::Relaxed);
    }
    let _ = sys::words(nr::PRCTL, [prctl::SET_NAME as usize, name.as_ptr() as usize, 0, 0, 0, 0]);
}

impl HostedContext {
    /// The thread that is about to run in an area.
    pub fn new(index: usize) -> HostedContext {
        HostedContext { index, ended: area::of(index).ended.load(Ordering::Relaxed) }
    }

    /// Its area, as long as it lives.
    fn area(&self) -> Option<&'static Shared> {
        Some(area::of(self.index)).filter(|area| area.ended.load(Ordering::Relaxed) == self.ended)
    }

    /// The host's id of itself, known as soon as it exists.
    fn host_tid(&self) -> Option<u32> {
        Some(self.area()?.host_tid.load(Ordering::Relaxed)).filter(|tid| *tid != 0)
    }

    /// The host's ids of its process and of itself, once it runs.
    fn host_ids(&self) -> Option<(u32, u32)> {
        let area = self.area()?;
        let ids = (area.host_pid.load(Ordering::Relaxed), area.host_tid.load(Ordering::Relaxed));
        (ids.0 != 0 && ids.1 != 0).then_some(ids)
    }

    /// The host's id of itself, for a call by which the host keeps something for the thread. ESRCH.
    fn touched_tid(&self) -> Result<u32> {
        // Before the look whether it lives: a thread that ends looks in the other order.
        area::of(self.index).touched.store(true, Ordering::SeqCst);
        self.host_tid().ok_or(Errno::ESRCH)
    }

    /// Whether the caller is a thread of its host process.
    fn is_in_process(&self) -> bool {
        let pid = area::of(here()).host_pid.load(Ordering::Relaxed);
        pid != 0 && self.host_ids().is_some_and(|ids| ids.0 == pid)
    }

    /// The host's id of its process, for a call that reaches into it: as long as the look lasts the process is nobody else's.
    fn reached(&self) -> Option<(u32, Look)> {
        let look = Look::new();
        // Any thread's id names its process.
        Some((self.host_tid()?, look))
    }

    /// Copies between `len` bytes of the kernel at `local` and the memory of its host process, by process_vm_readv(2) or
    /// process_vm_writev(2): bytes copied before the first that cannot be.
    fn copy(&self, call: Call, addr: usize, local: usize, len: usize) -> usize {
        let Some((pid, _look)) = self.reached() else { return 0 };
        let (local, remote) = ([local, len], [addr, len]);
        // SAFETY: the local range is a slice of the caller's, the remote one is guest memory in another process.
        let copied = unsafe { sys::raw(call, [pid as usize, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0]) };
        copied.unwrap_or(0)
    }
}

impl Reach for HostedContext {
    type Near = HostedUser;

    #[inline]
    fn near(&self) -> &HostedUser {
        &HostedUser
    }

    #[inline]
    fn is_caller(&self) -> bool {
        here() == self.index && self.area().is_some()
    }

    fn is_near(&self) -> bool {
        let Some(area) = self.area() else { return false };
        let here = here();
        here == self.index || area::of(here).space.load(Ordering::Relaxed) == area.space.load(Ordering::Relaxed)
    }

    fn read(&self, addr: usize, out: &mut [u8]) -> usize {
        self.copy(nr::PROCESS_VM_READV, addr, out.as_mut_ptr() as usize, out.len())
    }

    fn write(&self, addr: usize, data: &[u8]) -> usize {
        self.copy(nr::PROCESS_VM_WRITEV, addr, data.as_ptr() as usize, data.len())
    }

    fn write_some(&self, parts: &[(usize, &[u8])]) -> usize {
        let Some((pid, _look)) = self.reached() else { return 0 };
        let mut done = 0;
        for some in parts.chunks(AT_ONCE) {
            let (mut local, mut remote) = ([[0; 2]; AT_ONCE], [[0; 2]; AT_ONCE]);
            let mut want = 0;
            for (at, (addr, data)) in some.iter().enumerate() {
                local[at] = [data.as_ptr() as usize, data.len()];
                remote[at] = [*addr, data.len()];
                want += data.len();
            }
            let words = [pid as usize, local.as_ptr() as usize, some.len(), remote.as_ptr() as usize, some.len(), 0];
            // SAFETY: the local ranges are slices of the caller's, the remote ones are guest memory in another process.
            let copied = unsafe { sys::raw(nr::PROCESS_VM_WRITEV, words) }.unwrap_or(0);
            done += copied;
            if copied < want {
                break;
            }
        }
        done
    }
}

impl Context for HostedContext {
    fn id(&self) -> ThreadId {
        ThreadId(self.area().map_or(0, |_| self.index as u64 + 1))
    }

    fn memory(&self) -> &dyn UserMemory {
        self
    }

    fn registers(&self) -> Result<&dyn Registers> {
        if self.is_caller() { Ok(&HostedRegisters) } else { Err(Errno::EXDEV) }
    }

    fn spawn(&self, spawn: Spawn) -> Result<Arc<dyn Context>> {
        if self.is_caller() { spawn::spawn(spawn) } else { Err(Errno::EXDEV) }
    }

    fn kick(&self) {
        if self.area().is_some() {
            spawn::kick(self.index);
        }
    }

    fn work_for(&self, on: bool) {
        let serves = if on && self.area().is_some() { self.index as u32 + 1 } else { 0 };
        area::of(here()).serves.store(serves, Ordering::Relaxed);
    }

    fn set_plain(&self, plain: Option<Plain<'_>>) {
        if self.is_caller() {
            spawn::set_plain(plain);
        }
    }

    fn restrict(&self, cpus: &[u64]) -> Result<()> {
        usage::set_affinity(self.touched_tid()?, cpus)
    }

    fn set_nice(&self, nice: i32) -> Result<()> {
        usage::set_nice(self.touched_tid()?, nice)
    }

    fn set_name(&self, name: &[u8]) {
        if !self.is_caller() {
            return;
        }
        let mut text = *b"janua:\0\0\0\0\0\0\0\0\0\0";
        // What does not fit with the byte that ends it is cut.
        for (to, from) in text[6..15].iter_mut().zip(name) {
            *to = *from;
        }
        let (low, high) = (u128::from_ne_bytes(text) as u64, (u128::from_ne_bytes(text) >> 64) as u64);
        call_thread(area::of(self.index), [low, high]);
    }

    fn outer_number(&self) -> Option<u32> {
        Some(self.host_ids()?.0)
    }

    fn entry_descriptor(&self) -> (usize, [usize; 3]) {
        let (pid, tid) = self.host_ids().unwrap_or_default();
        machine::get().gate.entry_descriptor(boot::jail() == Jail::Pkey, pid, tid)
    }

    fn cpu(&self, whole_task: bool) -> Option<Nanos> {
        if whole_task {
            let ids = self.host_ids()?;
            return Some(kept::cpu_of(ids.0, clock::of_other(ids, true)?));
        }
        let counted = if self.is_caller() { clock::of_caller() } else { clock::of_other(self.host_ids()?, false)? };
        Some(spare::cpu_of(self.area()?, counted))
    }

    fn usage(&self, whole_task: bool) -> Option<Usage> {
        match whole_task {
            false if self.is_caller() => Some(spare::usage_of(self.area()?, usage::of_caller()?)),
            false => Some(spare::usage_of(self.area()?, usage::of_thread(self.host_ids()?)?)),
            true => {
                let pid = self.host_ids()?.0;
                let own = self.is_in_process();
                let usage = if own { usage::of_callers_process()?.0 } else { usage::of_process(pid)? };
                Some(kept::usage_of(pid, usage))
            }
        }
    }

    fn resident(&self) -> Option<u64> {
        usage::resident(self.index, self.host_ids()?.0)
    }

    fn resident_own(&self) -> Option<usize> {
        usage::resident_own(self.host_ids()?.1)
    }

    fn peak_resident(&self) -> u64 {
        let ids = self.host_ids();
        ids.and_then(|(pid, _)| usage::peak_resident(self.index, pid, self.is_in_process())).unwrap_or(0)
    }

    fn residency(&self, each: &mut dyn FnMut(&Residency)) -> Result<()> {
        let (pid, _look) = self.reached().ok_or(Errno::ESRCH)?;
        usage::residency(pid, each)
    }

    fn page_map(&self, addr: usize, out: &mut [u64]) -> Result<()> {
        let (pid, _look) = self.reached().ok_or(Errno::ESRCH)?;
        usage::page_map(pid, addr, out)
    }

    fn scheduled(&self) -> Option<Scheduled> {
        Some(spare::scheduled_of(self.area()?, usage::scheduled(self.host_ids()?)?))
    }

    fn membarrier(&self, command: u32, flags: u32, cpu: u32) -> Result<usize> {
        if !self.is_in_process() {
            return Err(Errno::EXDEV);
        }
        // What a process has registered the host does not forget.
        area::of(self.index).touched.store(true, Ordering::SeqCst);
        sys::words(nr::MEMBARRIER, [command as usize, flags as usize, cpu as usize, 0, 0, 0])
    }
}
