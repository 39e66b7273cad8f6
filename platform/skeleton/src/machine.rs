//! The machine as a whole: threads, registers, processors.

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_port::machine::{Memory, Outside, ThreadId};
use janua_port::{Clock, Console, Guest, Host, Machine, Park, Space, Spawn, SpawnKind, UserMemory};

use crate::clock::SkeletonClock;
use crate::console::SkeletonConsole;
use crate::host::SkeletonHost;
use crate::missing;
use crate::park::SkeletonPark;
use crate::user::SkeletonUser;

/// A machine that runs nothing.
///
/// A thread's life, which [`Machine::spawn`] sets going and every port has to write once, as a loop round
/// [`Guest`]:
///
/// 1. `guest.start(&mut frame)`, before anything of the user's runs;
/// 2. as long as the answer is [`Flow::Wait`](janua_port::Flow::Wait): exchange `guest.wake_word()` from 0 (quiet) to 2
///    (parked), if that succeeds [`Park::park`] on it until it is no longer 2 or the deadline has passed, then ask
///    `guest.poll(&mut frame)`. A wake-up that came in between has made it 1, and the exchange fails;
/// 3. [`Flow::Exit`](janua_port::Flow::Exit): the thread is over, touch the guest no more;
/// 4. [`Flow::Resume`](janua_port::Flow::Resume): mark the thread as being in user code, *then* read `guest.has_work()`; if
///    there is some, unmark it and call `guest.trap(&mut frame, Trap::Kick)`. Otherwise load the frame and go;
/// 5. when it comes back: unmark it, save all registers in the frame, and call `guest.call` or `guest.trap`.
///
/// [`Machine::kick`] looks at the mark of step 4 after the work was flagged; with both orders kept no kick is lost.
pub struct SkeletonMachine;

impl Machine for SkeletonMachine {
    fn clock(&self) -> &dyn Clock {
        &SkeletonClock
    }
    fn console(&self) -> &dyn Console {
        &SkeletonConsole
    }
    fn park(&self) -> &dyn Park {
        &SkeletonPark
    }
    fn user(&self) -> &dyn UserMemory {
        &SkeletonUser
    }
    /// `None` on bare metal. Here it is what a port to another host starts from.
    fn host(&self) -> Option<&dyn Host> {
        Some(&SkeletonHost)
    }

    /// A kernel stack, the frame on it, the guest's vector registers copied from the caller's, the thread pointer set; for
    /// [`SpawnKind::Fork`] a copy of the space as well. EAGAIN when there is no room for another thread. Nothing of a failed
    /// spawn may be left.
    fn spawn(&self, _spawn: Spawn) -> Result<ThreadId> {
        Err(Errno::ENOSYS)
    }

    /// The same out of nothing: an empty space, a zero frame, no creator.
    fn spawn_first(&self, _guest: Arc<dyn Guest>) -> Result<(ThreadId, Arc<dyn Space>)> {
        Err(Errno::ENOSYS)
    }

    /// By the kernel stack the caller stands on, or a register that is the kernel's while it runs.
    fn current(&self) -> ThreadId {
        missing("Machine::current")
    }

    /// A thread with a kernel stack and no user part. Services of the kernel run on it, so it must not share a fate with the
    /// thread that asked for it.
    fn spawn_kernel(&self, _name: &'static str, _body: Box<dyn FnOnce() + Send>) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// If the thread is marked as being in user code: an interrupt to its processor, a signal to its host thread. If not,
    /// nothing: it will look at its work before it goes back.
    fn kick(&self, _thread: ThreadId) {
        missing("Machine::kick")
    }

    /// Makes the routine the image gave the machine for its service thread run again, though its deadline has not come.
    fn wake_service(&self) {
        missing("Machine::wake_service")
    }

    /// A hosted machine's spaces are all the same object, since methods act on the caller's; a paged one makes a new page
    /// table for a fork, which [`Machine::spawn`] fills. Threads and vfork children share the parent's. No fork can follow
    /// here, so the parent's it is.
    fn space_for(&self, _kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<Arc<dyn Space>> {
        Ok(parent.clone())
    }

    /// The register the ABI names for thread-local storage; part of a thread's state, kept across switches.
    fn tls(&self) -> usize {
        missing("Machine::tls")
    }
    /// The kernel has checked that it is a user address.
    fn set_tls(&self, _value: usize) {
        missing("Machine::set_tls")
    }
    /// The user's value, not the kernel's own.
    fn gs(&self) -> usize {
        missing("Machine::gs")
    }
    /// As [`Machine::set_tls`]. A machine without a second such register ignores it and answers 0 above.
    fn set_gs(&self, _value: usize) {
        missing("Machine::set_gs")
    }

    /// A constant of the machine. 0 would mean that there are no such registers, and signal frames carry none.
    fn fpu_size(&self) -> usize {
        missing("Machine::fpu_size")
    }
    /// The kernel is built without vector registers, so they hold the guest's values until a switch: save them from there.
    fn fpu_save(&self, _area: &mut [u8]) {
        missing("Machine::fpu_save")
    }
    /// The area comes from a signal frame a guest may have written: clean it before an instruction that could fault on it.
    fn fpu_restore(&self, _area: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// All registers as after a reset, with exceptions masked: nothing of the old program shows after exec(2).
    fn fpu_reset(&self) {
        missing("Machine::fpu_reset")
    }

    /// At least the one this runs on.
    fn cpus(&self) -> usize {
        1
    }
    /// Below [`Machine::cpus`].
    fn cpu(&self) -> usize {
        0
    }
    /// From the next time the thread goes back to user code on. EINVAL for a mask without a processor that exists.
    fn set_affinity(&self, _thread: Option<ThreadId>, _mask: &[u64]) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// The greatest [`Machine::resident`] there has been. With no space there has been none.
    fn peak_resident(&self) -> u64 {
        0
    }
    /// What /proc/meminfo shows and limits are measured by. A machine without user memory has none to give.
    fn memory(&self) -> Memory {
        Memory::default()
    }
    /// Fills all of `out` from a generator fit for keys, seeded before the first guest runs. Programs build secrets on it:
    /// where there is no source of randomness, do not start.
    fn random(&self, _out: &mut [u8]) {
        missing("Machine::random")
    }
    /// An ELF image in every space, or `None`: then programs ask the time by calls.
    fn vdso(&self) -> Option<usize> {
        None
    }

    /// Stops everything: the host processes, the processors. `code` is what the person outside sees as the exit code: a
    /// supervisor's, an emulator's exit device, a last line on the console. It is also where a fault report ends, so it must work
    /// in any state.
    fn power_off(&self, _code: u8) -> ! {
        missing("Machine::power_off")
    }

    /// Tells the supervisor or console; returns at once.
    fn notify_outside(&self, _event: Outside) {
        missing("Machine::notify_outside")
    }
}
