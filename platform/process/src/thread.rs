//! A guest thread: the kernel's thread that runs its calls, and the host thread in the guest's process that runs its code.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use janua_abi::linux::Result;
use janua_abi::linux::i386::UserDesc;
use janua_entry::hosted::{KICK, THREADS};
use janua_platform_linux::clock::{self, HostClock};
use janua_platform_linux::context::here;
use janua_platform_linux::sys::{self, nr};
use janua_platform_linux::{area, spawn, usage};
use janua_port::{Clock, GateId, Guest, Space};
use janua_rt::Mutex;

use crate::mirror::Mirror;
use crate::near::Choice;
use crate::space::ProcessSpace;
use crate::tracee::{self, Regs, Tracee};

/// A guest thread.
pub struct Thread {
    /// No other ever has it.
    id: u64,
    /// It has ended, or was never begun.
    ended: AtomicBool,
    /// The area of its thread in the kernel's process, and the host's number of its host thread; 0 before it has them.
    area: AtomicUsize,
    tid: AtomicUsize,
    wanted: Mutex<Wanted>,
    /// By which gate its last call came ([`GateId::number`]).
    by: AtomicU8,
    in_guest: AtomicU8,
    /// Its host thread runs user code, or is about to; or it is in a call by its mailbox, and is not stopped.
    runs: Arc<AtomicBool>,
    pub space: Mutex<Arc<dyn Space>>,
    mirror: Mutex<Arc<Mirror>>,
    /// Only the thread itself may use it: the host lets nobody else.
    pub tracee: Mutex<Tracee>,
    pub guest: Mutex<Option<Arc<dyn Guest>>>,
    /// The entries of its descriptor table, for a fork.
    pub areas: Mutex<[Option<UserDesc>; 2]>,
    pub faults: AtomicU64,
    pub ran: Ran,
    /// Where it runs.
    choice: Choice,
}

/// What was asked of a thread in the kernel before there was one.
#[derive(Default)]
struct Wanted {
    cpus: Option<Vec<u64>>,
    nice: Option<i32>,
}

/// How long user code ran, as the kernel sees it from outside: for where the host does not report a thread in another process.
#[derive(Default)]
pub struct Ran {
    /// Nanoseconds, and since when it runs; 0 while it does not.
    total: AtomicU64,
    since: AtomicU64,
}

impl Ran {
    /// User code is about to run. Nothing when it does already, as far as this knows.
    pub fn begin(&self) {
        if self.since.load(Ordering::Relaxed) == 0 {
            self.since.store(HostClock.monotonic(), Ordering::Relaxed);
        }
    }

    /// It has stopped.
    pub fn end(&self) {
        let since = self.since.swap(0, Ordering::Relaxed);
        if since != 0 {
            self.total.fetch_add(HostClock.monotonic().saturating_sub(since), Ordering::Relaxed);
        }
    }

    /// Nanoseconds until now.
    pub fn so_far(&self) -> u64 {
        let since = self.since.load(Ordering::Relaxed);
        let runs = if since == 0 { 0 } else { HostClock.monotonic().saturating_sub(since) };
        self.total.load(Ordering::Relaxed) + runs
    }
}

/// The guest thread of each area of the kernel's process.
// SAFETY: a section of zeroes as `.bss` is, which the link puts behind it (`image/linux/far.ld`).
#[unsafe(link_section = ".bss.far")]
static CURRENT: [AtomicPtr<Thread>; THREADS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; THREADS];

/// The guest thread that the calling thread is, if it is one's.
pub fn current() -> Option<&'static Thread> {
    let thread = CURRENT[here()].load(Ordering::Relaxed);
    // SAFETY: put there by the thread itself, which keeps it until it has taken it out again.
    unsafe { thread.as_ref() }
}

impl Thread {
    pub fn new(guest: Arc<dyn Guest>, space: Arc<dyn Space>, regs: Regs) -> Arc<Thread> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let mirror = ProcessSpace::of(&space).own.mirror().clone();
        let runs = Arc::new(AtomicBool::new(false));
        let tracee = Tracee::none(regs, runs.clone());
        Arc::new(Thread {
            choice: tracee.choice(),
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            ended: AtomicBool::new(false),
            area: AtomicUsize::new(0),
            wanted: Mutex::default(),
            tid: AtomicUsize::new(0),
            by: AtomicU8::new(0),
            in_guest: AtomicU8::new(0),
            runs,
            space: Mutex::new(space),
            mirror: Mutex::new(mirror),
            tracee: Mutex::new(tracee),
            guest: Mutex::new(Some(guest)),
            areas: Mutex::default(),
            faults: AtomicU64::new(0),
            ran: Ran::default(),
        })
    }

    /// The calling thread is its thread in the kernel from now on.
    pub fn enter(&self) {
        let here = here();
        {
            let wanted = self.wanted.lock();
            self.area.store(here, Ordering::Relaxed);
            // A mask or a value that the host refuses was refused to the guest's host thread as well.
            if let Some(cpus) = &wanted.cpus {
                let _ = usage::set_affinity(0, cpus);
            }
            if let Some(nice) = wanted.nice {
                let _ = usage::set_nice(0, nice);
            }
        }
        CURRENT[here].store(core::ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
    }

    /// And no longer.
    pub fn leave(&self) {
        CURRENT[here()].store(core::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Its number; 0 once it has ended.
    pub fn id(&self) -> u64 {
        if self.ended.load(Ordering::SeqCst) { 0 } else { self.id }
    }

    pub fn set_ended(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Whether the caller is it.
    pub fn is_caller(&self) -> bool {
        current().is_some_and(|current| core::ptr::eq(current, self))
    }

    /// The area of its thread in the kernel; 0 before it has one.
    pub fn area(&self) -> usize {
        self.area.load(Ordering::Relaxed)
    }

    /// Its thread in the kernel runs on these processors only, as soon as there is one.
    pub fn restrict(&self, cpus: &[u64]) -> Result<()> {
        self.choice.choose(cpus);
        let mut wanted = self.wanted.lock();
        if self.area() == 0 {
            wanted.cpus = Some(cpus.to_vec());
            return Ok(());
        }
        drop(wanted);
        usage::set_affinity(self.beside(), cpus)
    }

    /// The nice value of its thread in the kernel, as soon as there is one.
    pub fn set_nice(&self, nice: i32) -> Result<()> {
        let mut wanted = self.wanted.lock();
        if self.area() == 0 {
            wanted.nice = Some(nice);
            return Ok(());
        }
        drop(wanted);
        usage::set_nice(self.beside(), nice)
    }

    /// The host's number of its thread in the kernel.
    fn beside(&self) -> u32 {
        area::of(self.area()).host_tid.load(Ordering::Relaxed)
    }

    /// Nanoseconds that its thread in the kernel has used.
    pub fn used_in_kernel(&self) -> u64 {
        if self.area() == 0 {
            return 0;
        }
        let beside = self.beside();
        if self.is_caller() { clock::of_caller() } else { clock::of_other((beside, beside), false).unwrap_or(0) }
    }

    /// The host's number of its host thread; 0 when it has none.
    pub fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed) as u32
    }

    pub fn set_tid(&self, tid: u32) {
        self.tid.store(tid as usize, Ordering::Relaxed);
    }

    /// Pages have come by faults to it and its process, which has this page table.
    pub fn note_faults(&self, mirror: &Mirror, pages: u64) {
        self.faults.fetch_add(pages, Ordering::Relaxed);
        mirror.note_faults(pages);
    }

    /// Its space's page table.
    pub fn mirror(&self) -> Arc<Mirror> {
        self.mirror.lock().clone()
    }

    /// Whether its host thread is in the process of this table.
    pub fn is_in(&self, mirror: &Mirror) -> bool {
        self.tid() != 0 && core::ptr::eq(Arc::as_ptr(&self.mirror.lock()), mirror)
    }

    /// It goes on in another space.
    pub fn change_space(&self, space: Arc<dyn Space>) {
        *self.mirror.lock() = ProcessSpace::of(&space).own.mirror().clone();
        *self.space.lock() = space;
    }

    /// A host thread for it, in another process.
    pub fn next_tracee(&self, regs: Regs) -> Tracee {
        Tracee::next(regs, self.runs.clone(), &self.choice)
    }

    /// Whether its host thread may run user code without having come by its thread in the kernel first.
    pub fn may_run(&self) -> bool {
        self.runs.load(Ordering::SeqCst) && !tracee::is_stopped(self.tid())
    }

    pub fn set_runs(&self, runs: bool) {
        self.runs.store(runs, Ordering::SeqCst);
    }

    /// Sets the gate by which its guest's calls come from now on.
    pub fn set_gate(&self, guest: &dyn Guest, gate: GateId) {
        if self.by.swap(gate.number(), Ordering::Relaxed) != gate.number() {
            guest.set_gate(gate);
        }
    }

    pub fn set_in_guest(&self, value: u8) {
        self.in_guest.store(value, Ordering::SeqCst);
    }

    /// Stops its host thread, if that runs, or as soon as it does.
    pub fn interrupt(&self) {
        let (pid, tid) = (self.mirror().pid(), self.tid());
        if tid != 0 {
            let _ = sys::words(nr::TGKILL, [pid as usize, tid as usize, KICK as usize, 0, 0, 0]);
        }
    }

    /// [`janua_port::Context::kick`].
    pub fn kick(&self) {
        /// A kick is on its way.
        const KICKED: u8 = 2;
        if self.is_caller() {
            return;
        }
        spawn::barrier();
        if self.in_guest.compare_exchange(1, KICKED, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            self.interrupt();
        }
    }
}
