//! The machine as a whole: threads, registers, processors.

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_port::machine::{Isa, Memory, NewSpace, Outside};
use janua_port::{Clock, Console, Context, Guest, Host, Machine, MemoryObject, Park, Space, SpawnKind};

use crate::clock::SkeletonClock;
use crate::console::SkeletonConsole;
use crate::host::SkeletonHost;
use crate::missing;
use crate::park::SkeletonPark;

/// A machine that runs nothing.
///
/// A thread's life, which [`Context::spawn`] sets going, is [`janua_port::drive()`]; what a port writes is its entry and exit:
///
/// 1. `guest.attach(context)`, in the thread's creator; `guest.start(&mut frame)` on its own stack, before anything of the user's runs;
/// 2. `drive(carrier, guest, &mut frame, flow)`, with how a thread sleeps on this machine and how it is marked as being in user code
///    ([`janua_port::Carrier`]). [`Next::End`](janua_port::Next::End): the thread is over; [`Next::User`](janua_port::Next::User): load
///    the frame and go;
/// 3. when it comes back: take the mark off, save all registers in the frame, call `guest.call` or `guest.trap`, and go on with 2.
///
/// [`Context::kick`] looks at the mark after the work was flagged, and `drive` at the work after the mark was made: no kick is lost.
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
    /// `None` on bare metal. Here it is what a port to another host starts from.
    fn host(&self) -> Option<&dyn Host> {
        Some(&SkeletonHost)
    }

    /// On a machine with page tables of its own it is `paging/src/object.rs:Object`; on a host, a file of the host's without a name. A port that
    /// has neither yet reports that: then files stay in the kernel's heap, and none is mapped.
    fn memory_object(&self, _name: &str) -> Result<Arc<dyn MemoryObject>> {
        Err(Errno::ENODEV)
    }

    /// As [`Context::spawn`] out of nothing: an empty space, a zero frame, no creator.
    fn spawn_first(&self, _guest: Arc<dyn Guest>) -> Result<(Arc<dyn Context>, Arc<dyn Space>)> {
        Err(Errno::ENOSYS)
    }

    /// A thread with a kernel stack and no user part. Services of the kernel run on it, so it must not share a fate with the
    /// thread that asked for it.
    fn spawn_kernel(&self, _name: &'static str, _body: Box<dyn FnOnce() + Send>) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Makes the routine the image gave the machine for its service thread run again, though its deadline has not come.
    fn wake_service(&self) {
        missing("Machine::wake_service")
    }

    /// A hosted machine's spaces are all the same object, since methods act on the caller's; a paged one makes a new page
    /// table for a fork, which [`Context::spawn`] fills. Threads and vfork children share the parent's. No fork can follow
    /// here, so the parent's it is.
    fn space_for(&self, _kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<NewSpace> {
        Ok(NewSpace::Whole(parent.clone()))
    }

    /// No vector registers, and no features.
    fn isa(&self) -> Isa {
        Isa::default()
    }

    /// At least the one this runs on.
    fn cpus(&self) -> usize {
        1
    }
    /// Below [`Machine::cpus`].
    fn cpu(&self) -> usize {
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
    fn vdso(&self) -> Option<[(usize, usize); 2]> {
        None
    }

    /// Notifies the supervisor or console; returns at once. But for `Outside::Over`: that stops everything, the host processes, the
    /// processors, and its code is what the person outside sees as the exit code: a supervisor's, an emulator's exit device, a last line
    /// on the console. It is also where a fault report ends, so it must work in any state.
    fn notify_outside(&self, _event: Outside) {
        missing("Machine::notify_outside")
    }
}
