//! What the machine has of a guest thread, for any thread of the kernel. There is one processor and one space: every thread's
//! memory is in place.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_arch::sparc::switch::{janua_fpu_load, janua_fpu_save};
use janua_paging::PAGE;
use janua_port::machine::ThreadId;
use janua_port::{Context, Nanos, Registers, Spawn, SpawnKind, UserMemory};

use crate::frames::FRAMES;
use crate::machine::{guest_main, running};
use crate::thread::{self, Thread};
use crate::{sched, user};

/// Bytes of the floating-point registers with their state register.
pub const FPU_SIZE: usize = 136;

/// A guest thread. It does not hold the thread, which holds its guest.
struct LeonContext {
    id: ThreadId,
}

/// Hands a new guest thread its context and lets it run.
pub fn begin(thread: Arc<Thread>) -> Arc<dyn Context> {
    let context = Arc::new(LeonContext { id: thread.id });
    if let Some(guest) = &thread.guest {
        guest.attach(context.clone());
    }
    sched::start(thread);
    context
}

impl LeonContext {
    fn is_caller(&self) -> bool {
        running().id == self.id
    }
}

impl Context for LeonContext {
    fn id(&self) -> ThreadId {
        self.id
    }

    fn memory(&self) -> &dyn UserMemory {
        &user::Memory
    }

    fn registers(&self) -> Result<&dyn Registers> {
        if self.is_caller() { Ok(&Live) } else { Err(Errno::EXDEV) }
    }

    fn spawn(&self, spawn: Spawn) -> Result<Arc<dyn Context>> {
        if spawn.kind == SpawnKind::Fork {
            return Err(Errno::ENOSYS);
        }
        let tls = spawn.tls.unwrap_or(self.registers()?.tls());
        let thread = thread::make(spawn.frame, Some(spawn.guest), None, guest_main)?;
        thread.tls.store(tls, Ordering::Relaxed);
        // SAFETY: the new thread does not run yet; the registers are the creator's.
        unsafe { janua_fpu_save((*thread.own.get()).fpu.as_mut_ptr()) };
        Ok(begin(thread))
    }

    fn kick(&self) {
        // The caller runs, so the thread does not: it looks at its work on its way to user code.
    }

    fn restrict(&self, cpus: &[u64]) -> Result<()> {
        if cpus.first().is_some_and(|word| word & 1 != 0) { Ok(()) } else { Err(Errno::EINVAL) }
    }

    fn cpu(&self, whole_task: bool) -> Option<Nanos> {
        if self.is_caller() && !whole_task { Some(sched::used_by_current()) } else { None }
    }

    fn peak_resident(&self) -> u64 {
        let (total, free) = FRAMES.pages();
        ((total - free) * PAGE) as u64
    }
}

/// The running thread's registers.
struct Live;

impl Registers for Live {
    fn tls(&self) -> usize {
        running().tls.load(Ordering::Relaxed)
    }
    fn set_tls(&self, value: usize) {
        running().tls.store(value, Ordering::Relaxed);
    }
    fn gs(&self) -> usize {
        0
    }
    fn set_gs(&self, _value: usize) {
        // There is no such register.
    }

    fn fpu_save(&self, area: &mut [u8]) {
        let mut state = [0u64; FPU_SIZE / 8];
        // SAFETY: the array has the size; the registers are the calling guest's.
        unsafe { janua_fpu_save(state.as_mut_ptr()) };
        for (to, from) in area.chunks_exact_mut(8).zip(state) {
            to.copy_from_slice(&from.to_ne_bytes());
        }
    }
    fn fpu_restore(&self, area: &[u8]) -> Result<()> {
        let mut state = [0u64; FPU_SIZE / 8];
        if area.len() < FPU_SIZE {
            return Err(Errno::EINVAL);
        }
        for (to, from) in state.iter_mut().zip(area.chunks_exact(8)) {
            *to = from.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        // SAFETY: as above.
        unsafe { janua_fpu_load(state.as_ptr()) };
        Ok(())
    }
    fn fpu_reset(&self) {
        // SAFETY: as above.
        unsafe { janua_fpu_load([0u64; FPU_SIZE / 8].as_ptr()) };
    }
}
