//! The machine as a whole.

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_arch::Frame;

use crate::{Accounts, Answer, BlockDevice, Clock, Compat, Console, Guest, Host, Nanos, Park, Plain, Space, UserMemory};

/// What a new thread shares with its creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnKind {
    /// A thread of the same task: shares the address space.
    Thread,
    /// A task of its own with a copy of the address space.
    Fork,
    /// A task of its own in the creator's address space (vfork, clone with CLONE_VM).
    SharedSpace,
}

/// A thread to be started by [`Machine::spawn`].
pub struct Spawn {
    pub kind: SpawnKind,
    /// Its registers: what it resumes with.
    pub frame: Frame,
    /// A new value for the thread pointer (FS base on x86-64), or the creator's.
    pub tls: Option<usize>,
    pub guest: Arc<dyn Guest>,
    /// The space it lives in, as [`Machine::space_for`] gave it; `None` for the creator's.
    pub space: Option<Arc<dyn Space>>,
}

/// A started thread, as the machine names it; opaque to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ThreadId(pub u64);

/// Everything a platform offers.
pub trait Machine: Send + Sync {
    /// Time, and how much of the processor was used.
    fn clock(&self) -> &dyn Clock;
    /// Where the kernel's own messages go.
    fn console(&self) -> &dyn Console;
    /// Sleeping on a word.
    fn park(&self) -> &dyn Park;
    /// The memory of the calling guest thread.
    fn user(&self) -> &dyn UserMemory;
    /// The host's files and sockets, where there is a host.
    fn host(&self) -> Option<&dyn Host>;

    /// The machine's disk, where it has one of its own.
    fn disk(&self) -> Option<&'static dyn BlockDevice> {
        None
    }

    /// What 32-bit programs need, where the machine can run them.
    fn compat(&self) -> Option<&dyn Compat> {
        None
    }

    /// Starts a guest thread. Called on the creator's own core, by the creator: its address space and vector registers are
    /// what is copied. The new thread calls [`Guest::start`] first. The id is valid until the thread's [`crate::Flow::Exit`].
    fn spawn(&self, spawn: Spawn) -> Result<ThreadId>;
    /// The first guest thread of the machine, in an empty address space; `Guest::start` loads the program.
    fn spawn_first(&self, guest: Arc<dyn Guest>) -> Result<(ThreadId, Arc<dyn Space>)>;
    /// The thread the caller runs on, as [`Machine::spawn`] named it.
    fn current(&self) -> ThreadId;
    /// A thread of the kernel's own (services); it never runs user code.
    fn spawn_kernel(&self, name: &'static str, body: Box<dyn FnOnce() + Send>) -> Result<()>;
    /// Makes a thread that runs user code enter the kernel soon with [`crate::Trap::Kick`]. Harmless when it is in the kernel.
    fn kick(&self, thread: ThreadId);
    /// [`Guest::plain`] of the calling thread's guest answers something else from now on: this.
    fn set_plain(&self, _plain: Option<Plain<'_>>) {}
    /// Makes the kernel's service routine (timers, wishes from outside) run soon.
    fn wake_service(&self);
    /// The space a forked or sharing task lives in; `parent` is the creator's. A fork's is a copy where the machine makes it
    /// before the thread; where [`Machine::spawn`] makes it, a handle. ENOMEM.
    fn space_for(&self, kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<Arc<dyn Space>>;

    /// The calling thread's thread pointer (FS base).
    fn tls(&self) -> usize;
    /// Sets it.
    fn set_tls(&self, value: usize);
    /// The calling thread's GS base.
    fn gs(&self) -> usize;
    /// Sets it.
    fn set_gs(&self, value: usize);

    /// Bytes needed by [`Machine::fpu_save`].
    fn fpu_size(&self) -> usize;
    /// The components of the state that guests may have, as in XCR0; 0 where there is no such state.
    fn fpu_features(&self) -> u64 {
        0
    }
    /// Saves the calling guest's vector and floating-point registers in the machine's standard form (XSAVE).
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

    /// How many processors guests may use.
    fn cpus(&self) -> usize;
    /// Which: 64 of them at a time, bit n of word w being processor 64 w + n. Without gaps unless the machine says otherwise.
    fn allowed(&self, word: usize) -> u64 {
        match self.cpus().saturating_sub(word.saturating_mul(64)) {
            left @ 0..64 => (1 << left) - 1,
            _ => u64::MAX,
        }
    }
    /// The processor the caller runs on.
    fn cpu(&self) -> usize;
    /// Restricts the calling thread to the processors of the mask (bit n is processor n).
    fn set_affinity(&self, thread: Option<ThreadId>, mask: &[u64]) -> Result<()>;
    /// Reads memory of the space another guest thread runs in: bytes read before the first that cannot be. The range is the
    /// guest's part of the address space; checked again. EFAULT when nothing could be read, EPERM where the machine forbids it.
    fn read_remote(&self, _thread: ThreadId, _addr: usize, _out: &mut [u8]) -> Result<usize> {
        Err(Errno::EPERM)
    }
    /// Writes memory of the space another guest thread runs in, as [`Machine::read_remote`] reads it.
    fn write_remote(&self, _thread: ThreadId, _addr: usize, _data: &[u8]) -> Result<usize> {
        Err(Errno::EPERM)
    }
    /// Bytes of memory the machine holds for the space a guest thread runs in, when it can tell.
    fn resident(&self, _thread: ThreadId) -> Option<u64> {
        None
    }
    /// What guests may have, and what they have.
    fn accounts(&self) -> &'static Accounts {
        &crate::accounts::UNLIMITED
    }
    /// Bytes of memory of their own that guests have resident, when the machine can tell. `exact`: what several share is counted once,
    /// which takes longer; an answer beyond this bound is the least there is.
    fn resident_guests(&self, _exact: Option<usize>) -> Option<usize> {
        None
    }
    /// Bytes of memory of its own that the space of a guest thread has resident, when the machine can tell.
    fn resident_own(&self, _thread: ThreadId) -> Option<usize> {
        None
    }
    /// The number by which the outside knows the process of a guest thread, when there is an outside that has one.
    fn outer_number(&self, _thread: ThreadId) -> Option<u32> {
        None
    }
    /// What threads have used so far, when the machine can tell.
    fn usage(&self, _whose: Whose) -> Option<Usage> {
        None
    }
    /// What is resident of each mapping of the space a guest thread runs in, in order of addresses. Mappings are the machine's: it
    /// may have split or joined the kernel's. ENOSYS where the machine cannot tell.
    fn residency(&self, _thread: ThreadId, _each: &mut dyn FnMut(&Residency)) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// A word for each page of the space a guest thread runs in, from the one at `addr` on, in the form of proc_pid_pagemap(5).
    /// ENOSYS where the machine cannot tell.
    fn page_map(&self, _thread: ThreadId, _addr: usize, _out: &mut [u64]) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// How a thread has had the processor, when the machine counts it.
    fn scheduled(&self, _thread: ThreadId) -> Option<Scheduled> {
        None
    }
    /// Gives a thread a nice value (-20..=19, setpriority(2)). EACCES or EPERM where the machine refuses it, ENOSYS where it knows no
    /// such thing.
    fn set_nice(&self, _thread: ThreadId, _nice: i32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// membarrier(2) for the threads of the calling thread's space, with its commands and answers.
    fn membarrier(&self, _command: u32, _flags: u32, _cpu: u32) -> Result<usize> {
        Err(Errno::ENOSYS)
    }
    /// Whether a protection key locks the kernel's memory while user code runs. Then no code of a guest's may load the key
    /// register (`janua_object::mm::guard`).
    fn locks_by_key(&self) -> bool {
        false
    }
    /// The most memory the calling thread's task has had resident, bytes.
    fn peak_resident(&self) -> u64;
    /// Memory guests may use.
    fn memory(&self) -> Memory;
    /// Random bytes from the machine's generator.
    fn random(&self, out: &mut [u8]);
    /// Names the calling thread for who looks from outside: at most 15 bytes, without a zero.
    fn set_name(&self, _name: &[u8]) {}
    /// The processor's features as programs are told them: AT_HWCAP and AT_HWCAP2.
    fn hwcap(&self) -> [u64; 2] {
        janua_arch::hwcap()
    }
    /// Where rewritten call sites jump, when the gate wants them rewritten.
    fn call_entry(&self) -> Option<usize> {
        None
    }
    /// Where code that is rewritten goes in place of an instruction that loads the vector registers from memory and could load what
    /// locks the kernel's memory with them; `None` where it may do that itself.
    fn restore_entry(&self) -> Option<usize> {
        None
    }
    /// How a library in user code calls the kernel from the calling thread, in the words of [`janua_abi::invasive::record::door`]:
    /// the way and what it needs.
    fn door(&self) -> (usize, [usize; 3]) {
        (janua_abi::invasive::record::door::INSTRUCTION, [0; 3])
    }
    /// Whether user code may not have these bytes in executable memory, since they would let it past what keeps it out of the
    /// kernel.
    fn forbids_code(&self, _code: &[u8]) -> bool {
        false
    }
    /// Address of the vDSO in every guest space, when there is one.
    fn vdso(&self) -> Option<usize>;
    /// The ranges of the vDSO's data and of its code in every guest space, for /proc/self/maps.
    fn vdso_ranges(&self) -> Option<[(usize, usize); 2]> {
        None
    }
    /// Ends the machine: `code` is the sandbox's exit code.
    fn power_off(&self, code: u8) -> !;
    /// Tells the outside.
    fn notify_outside(&self, event: Outside);
}

/// The numbers of the processors guests may use, rising.
pub fn processors(machine: &dyn Machine) -> impl Iterator<Item = usize> {
    (0..)
        .flat_map(move |word| (0..64).filter(move |bit| machine.allowed(word) >> bit & 1 != 0).map(move |bit| word * 64 + bit))
        .take(machine.cpus())
}

/// Whose use of the machine is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The calling thread.
    Caller,
    /// All threads of the calling thread's task, those that have ended among them.
    CallersTask,
    /// One thread.
    Thread(ThreadId),
    /// All threads of a thread's task, those that have ended among them.
    Task(ThreadId),
}

/// What threads have used of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, nanoseconds: in user code, and in the system. Where the machine cannot see the border between a program
    /// and a kernel that lies in the same process, the kernel's work on the program's behalf is user time.
    pub user: Nanos,
    pub system: Nanos,
    /// Page faults that found the page in memory, and those that had to fetch it.
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Times the processor was given up to wait, and times it was taken away.
    pub waits: u64,
    pub preemptions: u64,
}

/// How a thread has had the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// Nanoseconds it had one, and was ready for one.
    pub ran: Nanos,
    pub waited: Nanos,
    /// How often it got one.
    pub times: u64,
}

/// What is resident of one mapping, in the words of proc_pid_smaps(5).
#[derive(Clone, Copy, Debug)]
pub struct Residency {
    pub start: usize,
    pub end: usize,
    /// KiB, in the order of [`Residency::NAMES`].
    pub amounts: [u64; Residency::NAMES.len()],
}

impl Residency {
    /// The lines of /proc/PID/smaps that come with a mapping.
    pub const NAMES: [&'static str; 18] = [
        "Rss",
        "Pss",
        "Pss_Dirty",
        "Shared_Clean",
        "Shared_Dirty",
        "Private_Clean",
        "Private_Dirty",
        "Referenced",
        "Anonymous",
        "LazyFree",
        "AnonHugePages",
        "ShmemPmdMapped",
        "FilePmdMapped",
        "Shared_Hugetlb",
        "Private_Hugetlb",
        "Swap",
        "SwapPss",
        "Locked",
    ];
}

/// How much memory a machine has, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub total: u64,
    pub free: u64,
    /// What could be had without swapping: free, and what caches would give back.
    pub available: u64,
}

/// What the outside (the supervisor, a console) should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// The first program was stopped by this signal.
    Stopped(u32),
    /// The first program ended with this wait status; the sandbox is about to end.
    Ended(u32),
    /// What the outside has asked for.
    Answer(Answer),
}
