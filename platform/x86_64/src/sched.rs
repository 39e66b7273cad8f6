//! Who runs: ready threads in turn, sleepers by the word they sleep on, deadlines.
//!
//! No wake-up is lost: a sleeper looks at its word and lies down under one lock, and a waker changes the word before it takes
//! that lock. The core goes idle, by halting, only on the stack of the thread that stopped last.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_port::{Nanos, Space};

use crate::lock::Mutex;
use crate::space::BareSpace;
use crate::thread::{self, Thread};
use crate::{apic, clock, core as cores, cpu, entry, tables};

/// How long a thread runs while others are ready.
pub const SLICE: Nanos = 10_000_000;

/// A sleeper's place: the address of its word, and a number that no two share.
type Place = (usize, u64);

struct Sleeper {
    thread: Arc<Thread>,
    deadline: Option<Nanos>,
}

struct Sched {
    current: Option<Arc<Thread>>,
    ready: VecDeque<Arc<Thread>>,
    sleepers: BTreeMap<Place, Sleeper>,
    deadlines: BTreeSet<(Nanos, Place)>,
    next: u64,
    /// A thread that has ended and whose stack was still in use.
    dead: Option<Arc<Thread>>,
}

static SCHED: Mutex<Sched> = Mutex::new(Sched {
    current: None,
    ready: VecDeque::new(),
    sleepers: BTreeMap::new(),
    deadlines: BTreeSet::new(),
    next: 0,
    dead: None,
});

impl Sched {
    /// Wakes those whose time has come.
    fn expire(&mut self) {
        if self.deadlines.is_empty() {
            return;
        }
        let now = clock::now();
        while let Some((deadline, place)) = self.deadlines.first().copied() {
            if deadline > now {
                break;
            }
            self.wake(place);
        }
    }

    fn wake(&mut self, place: Place) {
        if let Some(sleeper) = self.sleepers.remove(&place) {
            if let Some(deadline) = sleeper.deadline {
                self.deadlines.remove(&(deadline, place));
            }
            self.make_ready(sleeper.thread);
        }
    }

    fn make_ready(&mut self, thread: Arc<Thread>) {
        self.ready.push_back(thread);
        if self.ready.len() == 1 {
            // Whoever runs had the core to itself, perhaps without an end to its time.
            apic::arm(self.alarm());
        }
    }

    /// Nanoseconds until the timer is wanted.
    fn alarm(&self) -> Option<Nanos> {
        let deadline = self.deadlines.first().map(|(deadline, _)| deadline.saturating_sub(clock::now()).max(1));
        let slice = (!self.ready.is_empty()).then_some(SLICE);
        deadline.into_iter().chain(slice).min()
    }
}

/// Makes the calling flow of control, on the boot stack, the first thread.
pub fn init(first: Arc<Thread>) {
    SCHED.lock().current = Some(first);
}

/// The running thread.
pub fn current() -> Arc<Thread> {
    SCHED.lock().current.clone().expect("there is a thread from the start on")
}

/// Processor time the running thread has used.
pub fn used_by_current() -> Nanos {
    let thread = current();
    thread.used() + clock::now().saturating_sub(thread.since.load(Ordering::Relaxed))
}

/// A new thread is ready.
pub fn start(thread: Arc<Thread>) {
    SCHED.lock().make_ready(thread);
}

/// [`janua_port::Park::park`].
pub fn park(word: &AtomicU32, expected: u32, deadline: Option<Nanos>) {
    {
        let mut sched = SCHED.lock();
        if word.load(Ordering::SeqCst) != expected {
            return;
        }
        let place = (word.as_ptr() as usize, sched.next);
        sched.next += 1;
        let Some(thread) = sched.current.clone() else { return };
        sched.sleepers.insert(place, Sleeper { thread, deadline });
        if let Some(deadline) = deadline {
            sched.deadlines.insert((deadline, place));
        }
    }
    current().waits.fetch_add(1, Ordering::Relaxed);
    switch();
}

/// [`janua_port::Park::unpark`].
pub fn unpark(word: &AtomicU32, count: u32) {
    let address = word.as_ptr() as usize;
    let mut sched = SCHED.lock();
    for _ in 0..count {
        let Some((place, _)) = sched.sleepers.range((address, 0)..=(address, u64::MAX)).next() else { break };
        let place = *place;
        sched.wake(place);
    }
}

/// Lets other ready threads run first.
pub fn yield_now() {
    {
        let mut sched = SCHED.lock();
        sched.expire();
        if sched.ready.is_empty() {
            // Alone: on until the next deadline.
            apic::arm(sched.alarm());
            return;
        }
        if let Some(thread) = sched.current.clone() {
            sched.ready.push_back(thread);
        }
    }
    switch();
}

/// Ends the running thread.
pub fn end() -> ! {
    let thread = current();
    thread::forget(&thread);
    thread.used.store(used_by_current(), Ordering::Relaxed);
    thread.since.store(clock::now(), Ordering::Relaxed);
    let space = thread.space.lock().take();
    if let Some(space) = &space {
        BareSpace::of(space).thread_ended(thread.usage());
    }
    // SAFETY: the kernel's own root maps what the kernel uses; user memory is not touched again.
    unsafe { cpu::set_root(tables::kernel_root()) };
    drop(space);
    SCHED.lock().dead = Some(thread);
    switch();
    cpu::halt()
}

/// Waits for a ready thread.
fn next_ready() -> Arc<Thread> {
    loop {
        {
            let mut sched = SCHED.lock();
            sched.expire();
            if let Some(thread) = sched.ready.pop_front() {
                return thread;
            }
            apic::arm(sched.alarm());
        }
        cpu::wait_for_interrupt();
    }
}

/// Gives the core to the next ready thread. Returns when this thread's turn comes.
fn switch() {
    let old = current();
    let now = clock::now();
    old.used.fetch_add(now.saturating_sub(old.since.load(Ordering::Relaxed)), Ordering::Relaxed);
    let new = next_ready();
    new.since.store(clock::now(), Ordering::Relaxed);
    if Arc::ptr_eq(&old, &new) {
        return;
    }
    let (old_own, new_own) = (old.own.get(), new.own.get());
    // SAFETY: interrupts are off and there is one core: the old thread's own part is ours, the new one does not run. The pointers
    // stay good: the new thread is held by the scheduler, the old one by whoever will wake it, or by `dead` until another
    // thread runs.
    unsafe {
        if old.guest.is_some() {
            (*old_own).fpu.store();
            (*old_own).fs = cpu::rdmsr(cpu::MSR_FS_BASE);
            (*old_own).gs = cpu::rdmsr(cpu::MSR_KERNEL_GS_BASE);
        }
        if new.guest.is_some() {
            (*new_own).fpu.load();
            cpu::wrmsr(cpu::MSR_FS_BASE, (*new_own).fs);
            cpu::wrmsr(cpu::MSR_KERNEL_GS_BASE, (*new_own).gs);
            cores::set_frame_end((*new_own).save.end());
        }
        let root = new.space.lock().as_ref().map_or(tables::kernel_root(), |space| BareSpace::of(space).root());
        if root != cpu::root() {
            cpu::set_root(root);
        }
        let sp = (*new_own).sp;
        {
            let mut sched = SCHED.lock();
            apic::arm(sched.alarm());
            sched.current = Some(new);
        }
        drop(old);
        entry::switch_stack(&raw mut (*old_own).sp, sp);
    }
    arrived();
}

/// What a thread does first when it has been switched to.
pub fn arrived() {
    let dead = SCHED.lock().dead.take();
    drop(dead);
}

/// Moves the running thread to another space.
pub fn change_space(space: Arc<dyn Space>) {
    let root = BareSpace::of(&space).root();
    let old = current().space.lock().replace(space);
    // SAFETY: every space maps the kernel alike.
    unsafe { cpu::set_root(root) };
    drop(old);
}

/// The timer has fired in user code: others that are ready have their turn.
pub fn preempt() {
    if !SCHED.lock().ready.is_empty() {
        current().preemptions.fetch_add(1, Ordering::Relaxed);
    }
    yield_now();
}
