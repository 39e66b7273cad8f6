//! What the machine has of a guest thread.

use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_port::machine::ThreadId;
use janua_port::{Context, Nanos, Registers, Spawn, UserMemory};

use crate::missing;
use crate::user::SkeletonUser;

/// A thread nobody carries. The asking thread may be any other, on any processor: what a port cannot do from there returns EXDEV.
/// It must not hold the guest, which holds it.
pub struct SkeletonContext;

impl Context for SkeletonContext {
    /// A number for each thread that lives.
    fn id(&self) -> ThreadId {
        missing("Context::id")
    }

    /// In place where the caller runs in the thread's address space, by copies elsewhere: [`janua_port::Reach`] has the rest once a port
    /// can state which, and copy.
    fn memory(&self) -> &dyn UserMemory {
        &SkeletonUser
    }

    /// They are in the processor while the thread is in the kernel: EXDEV for everybody else.
    fn registers(&self) -> Result<&dyn Registers> {
        Ok(&SkeletonRegisters)
    }

    /// A kernel stack, the frame on it, the guest's vector registers copied from this thread's, the thread pointer set; for
    /// [`janua_port::SpawnKind::Fork`] a copy of the space as well; [`janua_port::Guest::attach`]. EAGAIN when there is no room for another
    /// thread. Nothing of a failed spawn may be left.
    fn spawn(&self, _spawn: Spawn) -> Result<Arc<dyn Context>> {
        Err(Errno::ENOSYS)
    }

    /// If the thread is marked as being in user code: an interrupt to its processor, a signal to its host thread. If not,
    /// nothing: it will look at its work before it goes back.
    fn kick(&self) {
        missing("Context::kick")
    }

    /// From the next time the thread goes back to user code on. EINVAL for a mask without a processor that exists.
    fn restrict(&self, _cpus: &[u64]) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// What the thread has run since its start, user and kernel together: accumulated at each switch on bare metal, the host's
    /// CLOCK_THREAD_CPUTIME_ID on a hosted machine. Only grows. `None` is allowed: the kernel then shows what it last saw.
    fn cpu(&self, _whole_task: bool) -> Option<Nanos> {
        None
    }

    /// The greatest [`Context::resident`] there has been. With no space there has been none.
    fn peak_resident(&self) -> u64 {
        0
    }
}

/// Registers beyond the frame, which nothing has set.
pub struct SkeletonRegisters;

impl Registers for SkeletonRegisters {
    /// The register the ABI names for thread-local storage; part of a thread's state, kept across switches.
    fn tls(&self) -> usize {
        missing("Registers::tls")
    }
    /// The kernel has checked that it is a user address.
    fn set_tls(&self, _value: usize) {
        missing("Registers::set_tls")
    }
    /// The user's value, not the kernel's own.
    fn gs(&self) -> usize {
        missing("Registers::gs")
    }
    /// As [`Registers::set_tls`]. A machine without a second such register ignores it and returns 0 above.
    fn set_gs(&self, _value: usize) {
        missing("Registers::set_gs")
    }

    /// The kernel is built without vector registers, so they hold the guest's values until a switch: save them from there.
    fn fpu_save(&self, _area: &mut [u8]) {
        missing("Registers::fpu_save")
    }
    /// The area comes from a signal frame a guest may have written: clean it before an instruction that could fault on it.
    fn fpu_restore(&self, _area: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// All registers as after a reset, with exceptions masked: nothing of the old program shows after exec(2).
    fn fpu_reset(&self) {
        missing("Registers::fpu_reset")
    }
}
