//! Where the two threads of a pair run: a guest's, and that of the kernel's which traces it.
//!
//! One of them runs while the other sleeps, so that one processor is enough, and waking a processor that is asleep is what costs most of a stop: 70 µs
//! instead of 8. The host looks for an idle one each time it wakes a thread. So both are kept where the kernel's thread is as long as stops follow one another; now and
//! then that one is set free for a moment, and goes where the host thinks best, its guest with it. A guest that does not stop for a while is set free by the
//! service thread ([`look`]).
//!
//! Once they are to run at the same time they need a processor each. The host would let them share one: whom it wakes it leaves where it has run, behind
//! a thread that spins until it has its say. So the guest begins on another one, and is free once it has been heard of.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use janua_platform_linux::clock::HostClock;
use janua_platform_linux::{machine, usage};
use janua_port::{Clock, Machine, Nanos};
use janua_rt::Mutex;

/// How long a pair stays where it is before the host may choose anew.
const STAYS: Nanos = 10_000_000;
/// How long a guest may run where it is put.
const RUNS: Nanos = 4_000_000;
/// Words of a set of processors.
const WORDS: usize = 16;

/// What the service thread knows of a guest's thread.
struct Shared {
    tid: AtomicU32,
    /// Since when it runs; 0 while it does not.
    since: AtomicU64,
    bound: AtomicBool,
    /// It did not run when the service thread looked last.
    idle: AtomicBool,
    /// It chooses its processors itself.
    chosen: AtomicBool,
}

/// Those that are bound, or were a moment ago.
static BOUND: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());
/// The service thread looks at them.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// What the kernel's thread of a pair knows of it.
pub struct Near {
    shared: Arc<Shared>,
    /// The processor it is bound to itself, and until when.
    cpu: Option<usize>,
    until: Nanos,
    /// The guest's thread may be bound to one.
    narrow: bool,
    /// It is kept off the caller's.
    apart: bool,
}

/// Those who choose the processors of a pair.
#[derive(Clone)]
pub struct Choice(Arc<Shared>);

impl Choice {
    /// The guest's thread runs on these processors from now on: where it is, of all there are, is still the pair's to choose.
    pub fn choose(&self, cpus: &[u64]) {
        let all = all().iter().enumerate().all(|(word, all)| all & !cpus.get(word).unwrap_or(&0) == 0);
        self.0.chosen.store(!all, Ordering::Relaxed);
        self.0.bound.store(false, Ordering::Relaxed);
    }
}

fn all() -> [u64; WORDS] {
    core::array::from_fn(|word| machine::get().allowed(word))
}

fn free(tid: u32) {
    let _ = usage::set_affinity(tid, &all());
}

impl Near {
    /// Of a thread that may be bound, as who has made it.
    pub fn new() -> Near {
        let shared = Shared {
            tid: AtomicU32::new(0),
            since: AtomicU64::new(0),
            bound: AtomicBool::new(false),
            idle: AtomicBool::new(false),
            chosen: AtomicBool::new(false),
        };
        Near { shared: Arc::new(shared), cpu: None, until: 0, narrow: true, apart: false }
    }

    /// Of a thread that goes on in another process: the next of its host threads.
    pub fn next(choice: &Choice) -> Near {
        Near { shared: choice.0.clone(), ..Near::new() }
    }

    pub fn choice(&self) -> Choice {
        Choice(self.shared.clone())
    }

    fn is_of_use(&self) -> bool {
        machine::get().cores() > 1 && !self.shared.chosen.load(Ordering::Relaxed)
    }

    /// The guest's thread is about to run, for a short time most likely: where the caller does.
    pub fn approach(&mut self, tid: u32) {
        if !self.is_of_use() {
            return;
        }
        let now = HostClock.monotonic();
        if self.cpu.is_some() && self.shared.bound.load(Ordering::Relaxed) {
            if now >= self.until {
                free(0);
                self.cpu = None;
            }
            return;
        }
        let cpu = machine::get().cpu();
        let mut one = [0; WORDS];
        let Some(word) = one.get_mut(cpu / 64) else { return };
        *word = 1 << (cpu % 64);
        if usage::set_affinity(0, &one).and_then(|()| usage::set_affinity(tid, &one)).is_err() {
            return;
        }
        (self.cpu, self.until, self.narrow, self.apart) = (Some(cpu), now + STAYS, true, false);
        self.shared.tid.store(tid, Ordering::Relaxed);
        if !self.shared.bound.swap(true, Ordering::Relaxed) {
            self.watch();
        }
    }

    #[cold]
    fn watch(&self) {
        {
            let mut bound = BOUND.lock();
            if !bound.iter().any(|other| Arc::ptr_eq(other, &self.shared)) {
                bound.push(self.shared.clone());
            }
        }
        if !WATCHED.swap(true, Ordering::SeqCst) {
            machine::wake_service();
        }
    }

    /// Both of them are about to run at once: whether the guest's thread has to move for that.
    pub fn part(&mut self, tid: u32) -> bool {
        if !self.is_of_use() {
            return false;
        }
        if core::mem::take(&mut self.narrow) {
            self.shared.bound.store(false, Ordering::Relaxed);
            let cpu = machine::get().cpu();
            let mut others = all();
            if let Some(word) = others.get_mut(cpu / 64) {
                *word &= !(1 << (cpu % 64));
            }
            self.apart = usage::set_affinity(tid, &others).is_ok();
            if !self.apart {
                free(tid);
            }
        }
        if self.cpu.take().is_some() {
            free(0);
        }
        self.apart
    }

    /// The guest's thread has been heard of, or not for long enough: it stays where it is as long as the host likes.
    pub fn settle(&mut self, tid: u32) {
        if core::mem::take(&mut self.apart) && !self.shared.chosen.load(Ordering::Relaxed) {
            free(tid);
        }
    }

    /// The guest's thread runs.
    pub fn runs(&self) {
        if self.cpu.is_some() {
            self.shared.since.store(HostClock.monotonic(), Ordering::Relaxed);
        }
    }

    /// It has stopped.
    pub fn stops(&self) {
        self.shared.since.store(0, Ordering::Relaxed);
    }
}

// Once it is gone there is nothing left to set free.
impl Drop for Near {
    fn drop(&mut self) {
        self.shared.since.store(0, Ordering::Relaxed);
        self.shared.bound.store(false, Ordering::Relaxed);
    }
}

/// Sets those free that have not stopped for a while: when to look again. By the service thread.
pub fn look() -> Option<Nanos> {
    if !WATCHED.load(Ordering::SeqCst) {
        return None;
    }
    let mut bound = BOUND.lock();
    let now = HostClock.monotonic();
    bound.retain(|shared| {
        let since = shared.since.load(Ordering::Relaxed);
        let was_idle = shared.idle.swap(since == 0, Ordering::Relaxed);
        let is_over = if since == 0 { was_idle } else { now.saturating_sub(since) > RUNS };
        if is_over && shared.bound.swap(false, Ordering::Relaxed) && since != 0 {
            free(shared.tid.load(Ordering::Relaxed));
        }
        shared.bound.load(Ordering::Relaxed)
    });
    if bound.is_empty() {
        WATCHED.store(false, Ordering::SeqCst);
        return None;
    }
    Some(now + RUNS)
}
