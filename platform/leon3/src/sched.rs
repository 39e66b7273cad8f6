//! Who runs: ready threads in turn, sleepers by the word they sleep on, deadlines.
//!
//! No wake-up is lost: a sleeper looks at its word and goes to sleep under one lock, and a waker changes the word before it takes
//! that lock. The core goes idle only on the stack of the thread that stopped last.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_arch::sparc::cpu;
use janua_arch::sparc::switch::{janua_fpu_load, janua_fpu_save, janua_switch};
use janua_entry::leon3::core::{JANUA_CORE, NONE};
use janua_port::Nanos;

use crate::clock;
use crate::lock::Mutex;
use crate::thread::Thread;

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

/// Switches from one thread to another since the start.
static SWITCHES: AtomicU32 = AtomicU32::new(0);

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
            // The running thread had the core to itself, perhaps without an end to its time.
            clock::arm(self.alarm());
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
    match SCHED.lock().current.clone() {
        Some(thread) => thread,
        None => crate::report::stop(format_args!("kernel fault: a thread was asked for before there was one")),
    }
}

/// Processor time the running thread has used.
pub fn used_by_current() -> Nanos {
    let thread = current();
    // SAFETY: the running thread's own part.
    let own = unsafe { &*thread.own.get() };
    own.used + clock::now().saturating_sub(own.since)
}

/// Switches from one thread to another since the start.
pub fn switches() -> u32 {
    SWITCHES.load(Ordering::Relaxed)
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
            clock::arm(sched.alarm());
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
    SCHED.lock().dead = Some(thread);
    switch();
    crate::report::stop(format_args!("kernel fault: a thread that had ended was resumed"))
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
            clock::arm(sched.alarm());
        }
        // SAFETY: the idle loop: no lock is held, and this stack has room for a handler.
        unsafe { cpu::wait_for_interrupt() };
    }
}

/// Gives the core to the next ready thread. Returns when this thread's turn comes.
fn switch() {
    let old = current();
    let now = clock::now();
    let old_own = old.own.get();
    // SAFETY: the running thread's own part.
    unsafe { (*old_own).used += now.saturating_sub((*old_own).since) };
    let new = next_ready();
    let new_own = new.own.get();
    // SAFETY: the new thread does not run: the scheduler's part.
    unsafe { (*new_own).since = clock::now() };
    if Arc::ptr_eq(&old, &new) {
        return;
    }
    SWITCHES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: interrupts are out and there is one core: the old thread's own part is ours, the new one does not run. The pointers
    // stay good: the new thread is held by the scheduler, the old one by what will wake it, or by `dead` until another
    // thread runs.
    unsafe {
        if old.guest.is_some() {
            janua_fpu_save((*old_own).fpu.as_mut_ptr());
        }
        if new.guest.is_some() {
            janua_fpu_load((*new_own).fpu.as_ptr());
        }
        // The old thread's windows may yet have to go to its user stack: `entry` is the switch's to change, the rest is for the
        // next trap from user code.
        JANUA_CORE.stack.store(new.entry_stack() as u32, Ordering::Relaxed);
        match new.guest.as_deref().and_then(|guest| guest.plain()) {
            Some(plain) => {
                JANUA_CORE.thread.store(plain.thread.cast_mut(), Ordering::Relaxed);
                JANUA_CORE.work.store(core::ptr::from_ref(plain.work).cast_mut(), Ordering::Relaxed);
                JANUA_CORE.calls.store(core::ptr::from_ref(plain.native).cast_mut(), Ordering::Relaxed);
            }
            None => JANUA_CORE.calls.store((&raw const NONE).cast_mut(), Ordering::Relaxed),
        }
        {
            let mut sched = SCHED.lock();
            clock::arm(sched.alarm());
            sched.current = Some(new);
        }
        drop(old);
        janua_switch(&raw mut (*old_own).context, &raw const (*new_own).context);
    }
    arrived();
}

/// What a thread does first when it has been switched to.
pub fn arrived() {
    let dead = SCHED.lock().dead.take();
    drop(dead);
}

/// The timer has fired in user code: others that are ready have their turn.
pub fn preempt() {
    yield_now();
}
