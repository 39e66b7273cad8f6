//! The machine as a whole.

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_arch::Frame;

use crate::{Accounts, Answer, BlockDevice, Clock, Compat, Console, Context, Guest, Host, MemoryObject, Nanos, Park, Space};

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

/// A thread to be started by [`Context::spawn`].
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

/// A thread, as the machine numbers it; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ThreadId(pub u64);

/// The space of a task that is to be born.
pub enum NewSpace {
    /// It holds what it is to hold: what the creator maps from now on is the creator's alone.
    Whole(Arc<dyn Space>),
    /// [`Context::spawn`] copies the creator's memory; until then its mappings stay as they are.
    Handle(Arc<dyn Space>),
}

/// Everything a platform offers.
pub trait Machine: Send + Sync {
    /// Time, and how much of the processor was used.
    fn clock(&self) -> &dyn Clock;
    /// Where the kernel's own messages go.
    fn console(&self) -> &dyn Console;
    /// Sleeping on a word.
    fn park(&self) -> &dyn Park;
    /// The outside by its descriptors, and its files and sockets where it has some; `None` where there is nothing but the console.
    fn host(&self) -> Option<&dyn Host>;
    /// An anonymous memory object without contents; `name` is for people. ENOMEM, ENFILE; ENODEV where nothing but anonymous memory is mapped.
    fn memory_object(&self, name: &str) -> Result<Arc<dyn MemoryObject>>;

    /// The machine's disk, where it has one of its own.
    fn disk(&self) -> Option<&'static dyn BlockDevice> {
        None
    }

    /// What 32-bit programs need, where the machine can run them.
    fn compat(&self) -> Option<&dyn Compat> {
        None
    }

    /// The first guest thread of the machine, in an empty address space; `Guest::start` loads the program.
    fn spawn_first(&self, guest: Arc<dyn Guest>) -> Result<(Arc<dyn Context>, Arc<dyn Space>)>;
    /// A thread of the kernel's own (services); it never runs user code.
    fn spawn_kernel(&self, name: &'static str, body: Box<dyn FnOnce() + Send>) -> Result<()>;
    /// Makes the kernel's service routine (timers, requests from the supervisor) run soon.
    fn wake_service(&self);
    /// The space a forked or sharing task lives in; `parent` is the creator's. ENOMEM.
    fn space_for(&self, kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<NewSpace>;

    /// What the processor has.
    fn isa(&self) -> Isa;

    /// How many processors guests may use.
    fn cpus(&self) -> usize;
    /// Which: 64 of them at a time, bit n of word w being processor 64 w + n. Without gaps unless the machine has some.
    fn allowed(&self, word: usize) -> u64 {
        match self.cpus().saturating_sub(word.saturating_mul(64)) {
            left @ 0..64 => (1 << left) - 1,
            _ => u64::MAX,
        }
    }
    /// The processor the caller runs on.
    fn cpu(&self) -> usize;
    /// Keeps the calling thread, one of the kernel's own ([`Machine::spawn_kernel`]), on one processor from now on. The host's error; ENOSYS where threads
    /// go where the machine likes.
    fn pin(&self, _processor: usize) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// What guests may have, and what they have.
    fn accounts(&self) -> &'static Accounts {
        &crate::accounts::UNLIMITED
    }
    /// Bytes of memory of their own that guests have resident, when the machine knows it, with their page tables where those may be many
    /// ([`Accounts::has_tables`]). `exact`: what several share is counted once, which takes longer; a result beyond this bound is a lower bound.
    fn resident_guests(&self, _exact: Option<usize>) -> Option<usize> {
        None
    }
    /// Memory guests may use.
    fn memory(&self) -> Memory;
    /// Random bytes from the machine's generator.
    fn random(&self, out: &mut [u8]);
    /// The ranges of the vDSO's data and of its code in every guest space, when there is one; the ELF image is the code's.
    fn vdso(&self) -> Option<[(usize, usize); 2]> {
        None
    }
    /// Reports to the outside. After [`Outside::Over`] it need not return.
    fn notify_outside(&self, event: Outside);
}

/// The numbers of the processors guests may use, rising.
pub fn processors(machine: &dyn Machine) -> impl Iterator<Item = usize> {
    (0..)
        .flat_map(move |word| (0..64).filter(move |bit| machine.allowed(word) >> bit & 1 != 0).map(move |bit| word * 64 + bit))
        .take(machine.cpus())
}

/// What a real-time thread asks for: so much time, in each period until the deadline, counted from the period's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Its worst-case time, nanoseconds.
    pub budget: Nanos,
    pub deadline: Nanos,
    pub period: Nanos,
}

/// What threads have used of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, nanoseconds: in user code, and in the system. Where the machine cannot see the border between a program
    /// and a kernel that is in the same process, the kernel's work on the program's behalf is user time.
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

/// What programs can learn of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Isa {
    pub fpu: Fpu,
    /// Its features: AT_HWCAP and AT_HWCAP2.
    pub hwcap: [u64; 2],
}

/// How a machine stores its threads' vector and floating-point registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fpu {
    /// Bytes of the whole, a constant of the machine; 0 when there are no such registers, and signal frames carry none.
    pub size: usize,
    /// The components that guests may have, as in XCR0; 0 where there is no such state.
    pub features: u64,
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
    /// The kernel is over, with this exit code: its carrier may end it. A machine that carries one kernel ends with it. Reported by
    /// [`crate::outside::over`].
    Over(u8),
}
