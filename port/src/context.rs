//! What a machine has of one guest thread: its memory, its registers, the means to kick it.

use alloc::sync::Arc;

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::{Errno, Result};
use janua_arch::Segments;

use crate::guest::Plain;
use crate::machine::{Demand, Residency, Scheduled, Spawn, ThreadId, Usage};
use crate::{Nanos, UserMemory};

/// One guest thread, as far as the machine carries it.
///
/// [`Context::spawn`] of another and [`crate::Machine::spawn_first`] make it, and hand it to the guest ([`crate::Guest::attach`]) before the
/// guest starts. It may be asked by any thread of the kernel, for as long as it is held: of a thread that has ended it returns ESRCH,
/// nothing, or as if all of its memory were unmapped (on a machine with one space that is shared by all, as it is). What cannot be done from where the caller runs returns EXDEV.
pub trait Context: Send + Sync {
    /// Its number among the machine's threads; another's once the thread has ended.
    fn id(&self) -> ThreadId;
    /// The memory of the space it runs in.
    fn memory(&self) -> &dyn UserMemory;
    /// Its registers beyond the frame. EXDEV where they are in a processor, or a process of the host's, that the caller does not run on.
    fn registers(&self) -> Result<&dyn Registers>;
    /// Starts another guest thread, whose address space and registers are like this one's. EXDEV, as [`Context::registers`]; EAGAIN and
    /// ENOMEM when there is no room for it, and then nothing of it is left.
    fn spawn(&self, spawn: Spawn) -> Result<Arc<dyn Context>>;
    /// Makes it enter the kernel soon with [`crate::Trap::Kick`] when it runs user code. Harmless when it is in the kernel.
    fn kick(&self);
    /// From now on the caller, a thread of the kernel's own, works for this one, or no longer does: what it takes of the host is charged to whom this
    /// thread's guest names ([`crate::Guest::payer`]).
    fn work_for(&self, _on: bool) {}
    /// Its guest's [`crate::Guest::plain`] returns something else from now on: this. For the thread itself.
    fn set_plain(&self, _plain: Option<Plain<'_>>) {}

    /// Restricts it to the processors of the mask: bit n of word w is processor 64 w + n.
    fn restrict(&self, cpus: &[u64]) -> Result<()>;
    /// Gives it a nice value (-20..=19, setpriority(2)). EACCES or EPERM where the machine refuses it, ENOSYS where it knows no such
    /// thing.
    fn set_nice(&self, _nice: i32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// Promises it so much time in each period from now on, in place of what it was promised before; `None`: nothing any more, it has its nice
    /// value's share. EBUSY where too much is promised already and EINVAL for a demand that makes no sense, and then nothing has changed;
    /// ESRCH; ENOSYS where the machine knows no such thing.
    fn promise(&self, _demand: Option<Demand>) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// Names it for who looks from outside: at most 15 bytes, without a zero. For the thread itself.
    fn set_name(&self, _name: &[u8]) {}
    /// The number by which the outside knows its process, when there is an outside that has one.
    fn outer_number(&self) -> Option<u32> {
        None
    }
    /// How a library in its user code calls the kernel, in the words of [`janua_abi::invasive::record::entry`]: the way and what it needs.
    fn entry_descriptor(&self) -> (usize, [usize; 3]) {
        (janua_abi::invasive::record::entry::INSTRUCTION, [0; 3])
    }

    /// Processor time it has used (user and kernel together), or with `whole_task` all threads of its task that live and those that have
    /// ended; `None` when the machine does not know it from here.
    fn cpu(&self, whole_task: bool) -> Option<Nanos>;
    /// What it has used, or with `whole_task` its task as for [`Context::cpu`], when the machine knows it.
    fn usage(&self, _whole_task: bool) -> Option<Usage> {
        None
    }

    /// Bytes of memory the machine holds for its space, when it knows.
    fn resident(&self) -> Option<u64> {
        None
    }
    /// Bytes of memory of its own that its space has resident, whatever it shares, as [`crate::Machine::resident_guests`] counts them.
    fn resident_own(&self) -> Option<usize> {
        None
    }
    /// The greatest [`Context::resident`] there has been, bytes; 0 when the machine does not know.
    fn peak_resident(&self) -> u64;
    /// What is resident of each mapping of its space, in order of addresses. Mappings are the machine's: it may have split or joined the
    /// kernel's. ENOSYS where the machine does not know.
    fn residency(&self, _each: &mut dyn FnMut(&Residency)) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// A word for each page of its space, from the one at `addr` on, in the form of proc_pid_pagemap(5). ENOSYS where the machine does not
    /// know.
    fn page_map(&self, _addr: usize, _out: &mut [u64]) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// How it has had the processor, when the machine counts it.
    fn scheduled(&self) -> Option<Scheduled> {
        None
    }
    /// membarrier(2) for the threads of its space, with its commands and results. EXDEV, as [`Context::registers`].
    fn membarrier(&self, _command: u32, _flags: u32, _cpu: u32) -> Result<usize> {
        Err(Errno::ENOSYS)
    }
}

/// The registers of a guest thread that are not in its frame: they stay in the processor while the kernel works.
pub trait Registers {
    /// The thread pointer (FS base on x86-64).
    fn tls(&self) -> usize;
    /// Sets it. The kernel has checked that it is a user address.
    fn set_tls(&self, value: usize);
    /// GS base.
    fn gs(&self) -> usize;
    /// Sets it, as [`Registers::set_tls`]. A machine without a second such register ignores it, and returns 0 above.
    fn set_gs(&self, value: usize);

    /// Stores the vector and floating-point registers in the machine's standard form (XSAVE): [`crate::machine::Fpu::size`] bytes.
    fn fpu_save(&self, area: &mut [u8]);
    /// Loads them. The area is a guest's word: reserved bits and forbidden components are masked, or EINVAL.
    fn fpu_restore(&self, area: &[u8]) -> Result<()>;
    /// Loads those of the components in `mask` (and of what guests may use) that the area names, and puts the others of the mask
    /// in their initial state: what `xrstor` does. The area is a guest's word, in standard or compacted form; EINVAL where the
    /// processor would refuse it.
    fn fpu_restore_part(&self, _area: &[u8], _mask: u64) -> Result<()> {
        Err(Errno::EINVAL)
    }
    /// The state a new program starts with.
    fn fpu_reset(&self);

    /// The data segment registers, where there are any.
    fn segments(&self) -> Segments {
        Segments::default()
    }
    /// Loads them; a selector that names no segment is taken as 0.
    fn set_segments(&self, _segments: Segments) {}
    /// Sets one of [`crate::Compat::thread_areas`]. `descriptor` has been checked to be a data segment or empty. EINVAL, ENOSYS.
    fn set_thread_area(&self, _descriptor: &UserDesc) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// The thread, and those it makes, run a 32-bit program from now on whose calls go on at this address ([`crate::Vdso32::landing`]), or
    /// with 0 a program of 64-bit code: it decides what an entry means by an instruction that both kinds of code execute.
    fn set_landing(&self, _address: u32) {}
}
