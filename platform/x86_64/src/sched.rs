//! Who runs where: ready threads on each core, the earliest deadline first ([`janua_rt::rbed`]); sleepers by the word they sleep on; their
//! timers.
//!
//! Each core has a queue of ready threads and a list of timers; a core without work takes from the queues of the others. A core
//! goes idle, by halting, on the stack of the thread that stopped last; until it has left that stack, only it can run that
//! thread ([`Thread::on`]), which costs nothing when the same thread goes on.
//!
//! No wake-up of a word is lost: a sleeper looks at its word and goes to sleep under the lock of the word's bucket, and a waker changes
//! the word before it takes that lock. No ready thread is overlooked: a core that goes idle notes it in `IDLE` and looks at
//! all queues after that; who makes a thread ready puts it into a queue first and looks at `IDLE` after. Who puts a thread
//! into an empty queue of another core always sends it an interrupt.
//!
//! An interrupt may come in the idle loop, on the stack of a thread that sleeps: its handler wakes threads, and never waits
//! itself ([`park`] would put the sleeping thread to sleep a second time, with the interrupt unanswered).
//!
//! Timers are looked at when they are due, or with slices of a set length ([`Slicing::Ticks`]) at the ends of those alone.
//!
//! Lock order: none of these locks is held while another is taken, but for a thread's account with that of a queue, and the heap's; and while
//! a promise changes ([`promise`]) any of them.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use janua_platform_bare::Slicing;
use janua_port::machine::ThreadId;
use janua_port::{Frame, Nanos, Space, Spun};
use janua_rt::rbed::{Account, Queue};

use crate::core::{self as cores, Core};
use crate::lock::Mutex;
use crate::space::BareSpace;
use crate::thread::{self, NOWHERE, Thread};
use crate::{apic, clock, cpu, entry, oom, promise, report, shoot, tables};

/// How long a thread runs while others are ready, unless it is set.
pub const SLICE: Nanos = 10_000_000;
/// Looks of [`spin`] between two at the queue and the clock.
const SPINS: u32 = 32;
/// How long a core runs one thread before it looks whether others have too much to do.
const LOOK: Nanos = 4 * SLICE;

/// The length of slices, and whether nothing is looked at but at their ends.
static LENGTH: AtomicU64 = AtomicU64::new(SLICE);
static TICKS: AtomicBool = AtomicBool::new(false);

/// Looks at the kernel's command line, before there are threads.
pub fn configure(command_line: &[u8]) {
    let word = command_line.split(|byte| *byte == b' ').find_map(|word| word.strip_prefix(Slicing::WORD.as_bytes()));
    let Some(word) = word else { return };
    match Slicing::from_word(word) {
        Some(Slicing::Tickless) => {}
        Some(Slicing::Ticks(length)) => {
            LENGTH.store(length, Ordering::Relaxed);
            TICKS.store(true, Ordering::Relaxed);
        }
        None => report::stop(format_args!("{}: neither `tickless` nor nanoseconds, {:?}", Slicing::WORD, Slicing::LENGTHS)),
    }
}

/// The length of slices.
pub fn slice() -> Nanos {
    LENGTH.load(Ordering::Relaxed)
}

fn ticks() -> bool {
    TICKS.load(Ordering::Relaxed)
}

/// What a core runs, and what it will.
pub struct Turn {
    running: AtomicU64,
    own: UnsafeCell<Own>,
    ready: Mutex<Ready>,
    /// The queue's clock, for who asks without its lock.
    clock: AtomicU64,
    /// Sleepers that went to sleep here until some time: that, in order, with the number of the sleep, and the word slept on.
    timers: Mutex<BTreeMap<(Nanos, u64), usize>>,
    /// How many slices had ended when it was looked last.
    slices: AtomicU64,
}

/// The queue of a core.
pub struct Ready {
    pub queue: Queue<Arc<Thread>>,
    /// The [`Thread::serial`] of what it counts as running; 0: nothing.
    pub runs: u64,
}

/// Whether a core may run a ready thread now.
fn fits(thread: &Thread, core: &Core) -> bool {
    match thread.on.load(Ordering::Acquire) {
        NOWHERE => thread.allowed() & core.bit() != 0,
        on => on == core.number,
    }
}

/// What only the core itself touches, with interrupts off.
struct Own {
    current: Option<Arc<Thread>>,
    /// Who ran before, until the core has left its stack; and whether it is still ready.
    previous: Option<(Arc<Thread>, bool)>,
    /// Runs when the running thread must leave the core and nobody else is ready.
    idle: Option<Arc<Thread>>,
}

// SAFETY: `own` is touched by its core alone, the rest is locked.
unsafe impl Sync for Turn {}

impl Turn {
    #[allow(clippy::new_without_default, reason = "used in statics")]
    pub const fn new() -> Turn {
        Turn {
            own: UnsafeCell::new(Own { current: None, previous: None, idle: None }),
            running: AtomicU64::new(0),
            ready: Mutex::new(Ready { queue: Queue::new(SLICE), runs: 0 }),
            clock: AtomicU64::new(0),
            timers: Mutex::new(BTreeMap::new()),
            slices: AtomicU64::new(0),
        }
    }

    /// The [`Thread::serial`] of the running thread, on the calling core; 0 before there are threads.
    #[inline]
    pub fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// Runs `act` on the calling core's own part; it must not switch threads.
    fn with<R>(&self, act: impl FnOnce(&mut Own) -> R) -> R {
        // SAFETY: called on the core this is of, with interrupts off, and nothing in `act` comes here again.
        act(unsafe { &mut *self.own.get() })
    }

    /// Does something with the queue, at this time.
    pub fn queue<R>(&self, act: impl FnOnce(&mut Ready, Nanos) -> R) -> R {
        let mut ready = self.ready.lock();
        let result = act(&mut ready, clock::now());
        self.clock.store(ready.queue.clock(), Ordering::Relaxed);
        result
    }

    /// Nanoseconds until the timer is wanted by the thread that runs.
    pub fn alarm(&self) -> Option<Nanos> {
        let now = clock::now();
        let (alone, due) = {
            let Ready { queue, .. } = &*self.ready.lock();
            (queue.is_empty(), if ticks() { queue.until_promise(now) } else { queue.until(now) })
        };
        let look = (alone && cores::count() > 1).then_some(LOOK);
        let tick = if ticks() && !alone { Some(self.next_tick(now)) } else { None };
        self.next_timer(now).into_iter().chain(due).chain(look).chain(tick).min()
    }

    /// Nanoseconds until a sleeper here is due, as far as it is seen to.
    fn next_timer(&self, now: Nanos) -> Option<Nanos> {
        let first = self.timers.lock().first_key_value().map(|((deadline, _), _)| *deadline)?;
        let due = first.max(now + 1);
        // Ends of slices at which nobody is due are passed over.
        let seen = if ticks() { due.next_multiple_of(slice()) } else { due };
        Some(seen - now)
    }

    /// Nanoseconds until the end of the slice.
    fn next_tick(&self, now: Nanos) -> Nanos {
        slice() - now % slice()
    }

    /// How the queue counts best effort's time ([`janua_rt::rbed::Fair::moved`]).
    pub fn clock(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// The end of a slice ends the running thread's release.
    fn look_at_slice(&self) {
        if ticks() {
            let number = clock::now() / slice();
            if self.slices.swap(number, Ordering::Relaxed) != number {
                self.queue(|ready, now| ready.queue.end_release(now));
            }
        }
    }

    /// A thread runs from now on that was taken from nowhere.
    fn start(&self, core: &Core, thread: &Thread) {
        self.queue(|ready, now| {
            ready.queue.start(thread.account_on(core.number, 0, 0), now);
            ready.runs = thread.serial;
        });
    }

    /// The running thread no longer does.
    fn stop(&self, thread: &Thread) {
        self.queue(|ready, now| {
            ready.runs = 0;
            if let Some(account) = ready.queue.stop(now) {
                *thread.account.lock() = account;
            }
        });
    }

    /// Takes the thread that runs next, when none does.
    fn take(&self, core: &Core) -> Option<Arc<Thread>> {
        self.queue(|ready, now| {
            let next = ready.queue.take(now, |thread| fits(thread, core))?;
            Some(ready.run(next, core))
        })
    }

    /// Takes the thread that runs next in place of the running one, if that is to give way, or if it `yields` to any.
    fn exchange(&self, core: &Core, old: &Thread, yields: bool) -> Option<Arc<Thread>> {
        self.queue(|ready, now| {
            let fits = |thread: &Arc<Thread>| fits(thread, core);
            let (next, account) = match yields {
                true => ready.queue.give_way(now, fits)?,
                false => ready.queue.preempt(now, fits)?,
            };
            if let Some(account) = account {
                *old.account.lock() = account;
            }
            Some(ready.run(next, core))
        })
    }

    fn is_wanted_by(&self, core: &Core) -> bool {
        self.ready.lock().queue.has(|thread| fits(thread, core))
    }

    fn runs_promise(&self) -> bool {
        self.ready.lock().queue.runs_promise()
    }

    /// Wakes those of its sleepers whose time has come, or had at the end of the last slice.
    fn expire(&self) {
        loop {
            let due = {
                let mut timers = self.timers.lock();
                let Some(((deadline, number), address)) = timers.first_key_value().map(|(key, word)| (*key, *word)) else {
                    return;
                };
                let now = clock::now();
                if deadline > now - if ticks() { now % slice() } else { 0 } {
                    return;
                }
                timers.remove(&(deadline, number));
                (address, number)
            };
            let woken = bucket(due.0).lock().remove(&due);
            if let Some(thread) = woken {
                make_ready(thread, false);
            }
        }
    }
}

impl Ready {
    /// One that was taken runs.
    fn run(&mut self, thread: Arc<Thread>, core: &Core) -> Arc<Thread> {
        // From now on it is this core's.
        thread.on.store(core.number, Ordering::SeqCst);
        self.runs = thread.serial;
        thread
    }
}

/// Cores that have nothing to run, and halt or are about to.
static IDLE: AtomicU64 = AtomicU64::new(0);
/// Numbers sleeps.
static SLEEPS: AtomicU64 = AtomicU64::new(0);

/// A sleeper's place: the address of its word, and a number that no two sleeps share.
type Place = (usize, u64);
type Bucket = Mutex<BTreeMap<Place, Arc<Thread>>>;
const BUCKETS: usize = 64;
static SLEEPERS: [Bucket; BUCKETS] = [const { Mutex::new(BTreeMap::new()) }; BUCKETS];

/// Where those sleep that sleep on a word.
fn bucket(address: usize) -> &'static Bucket {
    &SLEEPERS[(address >> 2 ^ address >> 12) % BUCKETS]
}

/// Makes the calling flow of control, on the boot stack, the first thread, and gives the first core its idle thread.
pub fn init(first: Arc<Thread>) -> janua_abi::linux::Result<()> {
    enter_as(cores::here(), first)
}

/// Makes the calling flow of control a thread. EAGAIN without memory for the core's idle thread.
pub fn enter_as(core: &'static Core, thread: Arc<Thread>) -> janua_abi::linux::Result<()> {
    let idle = thread::make(Frame::start(0, 0), None, None, None, Some(idle_main))?;
    thread.on.store(core.number, Ordering::SeqCst);
    thread.start_clock();
    core.turn.ready.lock().queue.set_slice(slice());
    core.turn.start(core, &thread);
    core.turn.with(|own| {
        core.turn.running.store(thread.serial, Ordering::Relaxed);
        own.current = Some(thread);
        own.idle = Some(idle);
    });
    Ok(())
}

/// The running thread.
pub fn current() -> Arc<Thread> {
    cores::here().turn.with(|own| own.current.clone()).expect("there is a thread from the start on")
}

/// The running thread's number, from the start of threads on.
pub fn current_id() -> Option<ThreadId> {
    if cores::count() == 0 {
        return None;
    }
    cores::here().turn.with(|own| own.current.as_ref().map(|thread| thread.id))
}

/// A new thread is ready.
pub fn start(thread: Arc<Thread>) {
    make_ready(thread, false);
}

/// Puts a thread into a queue that has slept, or that `goes_on`, and gets the core's attention.
pub fn make_ready(thread: Arc<Thread>, goes_on: bool) {
    let here = cores::here();
    let allowed = thread.allowed();
    let stands = thread.on.load(Ordering::SeqCst);
    let home = if stands == NOWHERE { choose(&thread, allowed, here) } else { stands };
    let Some(core) = cores::get(home) else { return };
    let last = cores::get(thread.last.swap(home, Ordering::Relaxed)).unwrap_or(core);
    let wants_look = core.turn.queue(|ready, now| {
        if ready.runs == thread.serial {
            // On its way to sleep: its core looks into the queue once it has stopped.
            ready.queue.wake_running(thread);
            return false;
        }
        let account = thread.account_on(home, last.turn.clock(), ready.queue.clock());
        let was_empty = ready.queue.is_empty();
        ready.queue.enter(thread, account, now, goes_on);
        was_empty || matches!(account, Account::Promise(_)) && ready.queue.is_urgent()
    });
    // The thread must be seen in the queue by a core that is not seen idle here.
    fence(Ordering::SeqCst);
    if core.number == here.number {
        if wants_look {
            // The running thread had the core to itself, or gives way at once.
            apic::arm(core.turn.alarm());
        }
        if stands == NOWHERE {
            call_idle(allowed & !core.bit());
        }
    } else {
        let was_idle = IDLE.fetch_and(!core.bit(), Ordering::SeqCst) & core.bit() != 0;
        if was_idle || wants_look {
            apic::send(core.apic(), apic::RESCHEDULE);
        }
    }
}

/// The core for a thread that may run anywhere it is allowed to: an idle one, at best where it was last; otherwise this one.
fn choose(thread: &Thread, allowed: u64, here: &Core) -> usize {
    let last = thread.last.load(Ordering::Relaxed);
    let idle = IDLE.load(Ordering::SeqCst) & allowed;
    if idle & 1 << last != 0 {
        last
    } else if idle != 0 {
        idle.trailing_zeros() as usize
    } else if allowed & here.bit() != 0 {
        here.number
    } else {
        allowed.trailing_zeros() as usize
    }
}

/// Makes one of the idle cores of a set look at the queues.
fn call_idle(set: u64) {
    let idle = IDLE.load(Ordering::SeqCst) & set;
    if idle == 0 {
        return;
    }
    let number = idle.trailing_zeros() as usize;
    if IDLE.fetch_and(!(1 << number), Ordering::SeqCst) & 1 << number != 0
        && let Some(core) = cores::get(number)
    {
        apic::send(core.apic(), apic::RESCHEDULE);
    }
}

/// Takes a thread to run, when none does: the core's own first, then one of the others'.
fn take(core: &Core) -> Option<Arc<Thread>> {
    core.turn.take(core).or_else(|| steal(core, None))
}

/// Takes a thread from another core's queue, to run in place of the old one, if there is one.
fn steal(core: &Core, old: Option<&Thread>) -> Option<Arc<Thread>> {
    let count = cores::count();
    let others = (1..count).filter_map(|step| cores::get((core.number + step) % count));
    let (thread, fair) = others.into_iter().find_map(|other| {
        other.turn.queue(|ready, _| {
            let clock = ready.queue.clock();
            let (thread, fair) = ready.queue.steal(|thread| fits(thread, core))?;
            thread.on.store(core.number, Ordering::SeqCst);
            Some((thread, fair.moved(clock, core.turn.clock())))
        })
    })?;
    if let Some(old) = old {
        core.turn.stop(old);
    }
    thread.last.store(core.number, Ordering::Relaxed);
    core.turn.queue(|ready, now| {
        ready.queue.start(Account::Fair(fair), now);
        ready.runs = thread.serial;
    });
    Some(thread)
}

/// [`janua_port::Park::park`].
pub fn park(word: &AtomicU32, expected: u32, deadline: Option<Nanos>) {
    let thread = current();
    if !thread.runs() {
        report::stop(format_args!("kernel fault: an interrupt handler waits"));
    }
    let place = (word.as_ptr() as usize, SLEEPS.fetch_add(1, Ordering::Relaxed));
    {
        let mut bucket = bucket(place.0).lock();
        if word.load(Ordering::SeqCst) != expected {
            return;
        }
        bucket.insert(place, thread.clone());
    }
    // From here on it may be woken; this core runs it then, since it is on its stack.
    let timer = deadline.map(|deadline| (cores::here(), (deadline, place.1)));
    if let Some((core, key)) = timer {
        core.turn.timers.lock().insert(key, place.0);
    }
    thread.waits.fetch_add(1, Ordering::Relaxed);
    drop(thread);
    switch();
    if let Some((core, key)) = timer {
        core.turn.timers.lock().remove(&key);
    }
}

/// [`janua_port::Park::unpark`].
pub fn unpark(word: &AtomicU32, count: u32) {
    let address = word.as_ptr() as usize;
    for _ in 0..count {
        let woken = {
            let mut bucket = bucket(address).lock();
            let place = bucket.range((address, 0)..=(address, u64::MAX)).next().map(|(place, _)| *place);
            place.and_then(|place| bucket.remove(&place))
        };
        let Some(thread) = woken else { break };
        make_ready(thread, false);
    }
}

/// Whether a ready thread waits for this core.
pub fn is_wanted() -> bool {
    let core = cores::here();
    core.turn.is_wanted_by(core)
}

/// [`janua_port::Park::spin`]. Interrupts are off, so what others ask of this core by them, and what is due on it, is seen to here.
pub fn spin(word: &AtomicU32, expected: u32, limit: Nanos) -> Spun {
    if cores::count() == 1 {
        return Spun::Unchanged;
    }
    let end = clock::now() + limit;
    loop {
        for _ in 0..SPINS {
            if word.load(Ordering::Acquire) != expected {
                return Spun::Changed;
            }
            shoot::relax();
        }
        if is_wanted() {
            return Spun::Wanted;
        }
        if clock::now() >= end {
            return Spun::Unchanged;
        }
    }
}

/// Lets other ready threads run first.
pub fn yield_now() {
    let core = cores::here();
    core.turn.expire();
    match core.turn.exchange(core, &current(), true) {
        Some(next) => switch_to(next, true),
        // Alone: on until the next deadline.
        None => apic::arm(core.turn.alarm()),
    }
}

/// Ends the running thread.
pub fn end() -> ! {
    {
        let thread = current();
        thread.ended.store(true, Ordering::Relaxed);
        promise::leave(&thread);
        thread::forget(&thread);
        let space = thread.space.lock().take();
        if let Some(space) = &space {
            BareSpace::of(space).own.thread_ended(thread.usage());
        }
        // The kernel's own tables map what the kernel uses; user memory is not touched again.
        tables::enter(None);
    }
    switch();
    cpu::halt()
}

/// Ended threads on whose stacks no core is any more. To let go of what they hold may take any lock of the kernel's, which the thread
/// that runs next may hold itself: a thread of its own does it ([`reap`]).
static ENDED: Mutex<Vec<Arc<Thread>>> = Mutex::new(Vec::new());
/// Changes when there is one more.
static ENDINGS: AtomicU32 = AtomicU32::new(0);

/// The kernel thread that lets go of ended threads.
pub fn reap() {
    loop {
        let seen = ENDINGS.load(Ordering::SeqCst);
        let ended = core::mem::take(&mut *ENDED.lock());
        drop(ended);
        park(&ENDINGS, seen, None);
    }
}

/// First code of a core's idle thread: it runs what becomes ready, and comes back here when a thread had to go.
extern "C" fn idle_main() -> ! {
    arrived();
    loop {
        switch();
    }
}

/// Waits for a ready thread.
fn next_ready(core: &'static Core) -> Arc<Thread> {
    loop {
        oom::look();
        core.turn.expire();
        if let Some(thread) = take(core) {
            return thread;
        }
        IDLE.fetch_or(core.bit(), Ordering::SeqCst);
        if let Some(thread) = take(core) {
            IDLE.fetch_and(!core.bit(), Ordering::SeqCst);
            return thread;
        }
        apic::arm(core.turn.next_timer(clock::now()));
        cpu::wait_for_interrupt();
        IDLE.fetch_and(!core.bit(), Ordering::SeqCst);
    }
}

/// The running thread waits: gives the core to the next ready thread. Returns when this thread's turn comes.
fn switch() {
    let core = cores::here();
    let old = current();
    old.stop_clock();
    core.turn.stop(&old);
    let new = next_ready(core);
    if Arc::ptr_eq(&old, &new) {
        old.start_clock();
        drop((old, new));
        leave_if_unwelcome();
        return;
    }
    drop(old);
    switch_to(new, false);
}

/// Gives the core to `new`, which [`take`] gave. `again`: the running thread is still ready. Returns when its turn comes again.
fn switch_to(new: Arc<Thread>, again: bool) {
    let core = cores::here();
    let Some(old) = core.turn.with(|own| own.current.take()) else { return };
    old.stop_clock();
    new.start_clock();
    new.last.store(core.number, Ordering::Relaxed);
    let (old_own, new_own) = (old.own.get(), new.own.get());
    // SAFETY: the old thread's own part is ours until this core has left its stack, the new one's since `take` gave it to this core.
    // Interrupts are off. The pointers stay good: both threads are held by the core, the old one until `arrived`.
    unsafe {
        if old.guest.is_some() {
            (*old_own).fpu.store();
            (*old_own).fs = cpu::rdmsr(cpu::MSR_FS_BASE);
            (*old_own).gs = cpu::rdmsr(cpu::MSR_KERNEL_GS_BASE);
            (*old_own).compat.store();
        }
        if new.guest.is_some() {
            (*new_own).fpu.load();
            (*new_own).compat.load();
            cpu::wrmsr(cpu::MSR_FS_BASE, (*new_own).fs);
            cpu::wrmsr(cpu::MSR_KERNEL_GS_BASE, (*new_own).gs);
            core.set_frame_end((*new_own).save.end());
        }
        core.exchange_pushed(&mut (*old_own).save.pushed, &(*new_own).save.pushed);
        match &*new.space.lock() {
            Some(space) => BareSpace::of(space).own.enter(),
            None => tables::enter(None),
        }
        let sp = (*new_own).sp;
        core.turn.with(|own| {
            core.turn.running.store(new.serial, Ordering::Relaxed);
            own.current = Some(new);
            own.previous = Some((old, again));
        });
        entry::switch_stack(&raw mut (*old_own).sp, sp);
    }
    arrived();
    leave_if_unwelcome();
}

/// What a thread does first when it has been switched to: the thread before may run elsewhere from now on.
pub fn arrived() {
    let core = cores::here();
    if let Some((previous, again)) = core.turn.with(|own| own.previous.take()) {
        previous.on.store(NOWHERE, Ordering::SeqCst);
        if again {
            make_ready(previous, true);
        } else if previous.ended.load(Ordering::Relaxed) {
            promise::end(&previous);
            ENDED.lock().push(previous);
            ENDINGS.fetch_add(1, Ordering::SeqCst);
            unpark(&ENDINGS, 1);
        }
    }
    if !core.turn.ready.lock().queue.is_empty() {
        call_idle(!core.bit());
    }
    apic::arm(core.turn.alarm());
}

/// Leaves the core when the running thread may not run here any more.
pub fn leave_if_unwelcome() {
    let core = cores::here();
    let unwelcome = core.turn.with(|own| own.current.clone().filter(|thread| thread.allowed() & core.bit() == 0));
    let Some(thread) = unwelcome else { return };
    core.turn.stop(&thread);
    drop(thread);
    let next = take(core).or_else(|| {
        let idle = core.turn.with(|own| own.idle.clone())?;
        idle.on.store(core.number, Ordering::SeqCst);
        core.turn.start(core, &idle);
        Some(idle)
    });
    match next {
        Some(next) => switch_to(next, true),
        None => core.turn.start(core, &current()),
    }
}

/// Restricts a thread to a set of cores; the caller's own thread is on one of them when this returns.
pub fn restrict(thread: &Arc<Thread>, allowed: u64) {
    if !promise::restrict(thread, allowed) {
        return;
    }
    if Arc::ptr_eq(thread, &current()) {
        leave_if_unwelcome();
    } else {
        nudge(thread);
        // It may be in a queue that only cores look into that it may not use: an idle one that it may use takes it from there, a
        // busy one when it looks around.
        call_idle(thread.allowed());
    }
}

/// Makes the core that runs a thread enter the kernel, unless it is this one.
pub fn nudge(thread: &Thread) {
    fence(Ordering::SeqCst);
    let on = thread.on.load(Ordering::SeqCst);
    if on != NOWHERE
        && on != cores::here().number
        && let Some(core) = cores::get(on)
    {
        apic::send(core.apic(), apic::RESCHEDULE);
    }
}

/// Moves the running thread to another space.
pub fn change_space(space: Arc<dyn Space>) {
    BareSpace::of(&space).own.enter();
    let old = current().space.lock().replace(space);
    drop(old);
}

/// Another core wants attention: threads came, or the running one must go.
pub fn attend() {
    apic::arm(cores::here().turn.alarm());
    leave_if_unwelcome();
}

/// The timer has fired in user code, or a device has, or a long call looks up, in which it cannot fire: others that are ready and have an
/// earlier deadline have their turn.
pub fn preempt() {
    oom::look();
    let core = cores::here();
    core.turn.expire();
    core.turn.look_at_slice();
    let next = match core.turn.is_wanted_by(core) {
        true => core.turn.exchange(core, &current(), false),
        // What was promised is not for others.
        false if core.turn.runs_promise() => None,
        // With nobody waiting here, one who waits elsewhere has waited for a whole turn.
        false => steal(core, Some(&current())),
    };
    match next {
        Some(next) => {
            current().preemptions.fetch_add(1, Ordering::Relaxed);
            switch_to(next, true);
        }
        None => apic::arm(core.turn.alarm()),
    }
}
