//! Threads: what each has, and the table of them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_entry::bare::Save;
use janua_paging::PAGE;
use janua_port::machine::{ThreadId, Usage};
use janua_port::{Frame, Guest, Nanos, Space};
use janua_rt::rbed::{self, Account, Fair};

use crate::lock::Mutex;
use crate::{clock, compat, core as cores, fpu, promise, tables};

/// Address room for a kernel stack, bytes. Its lowest page stays unmapped: an overflow is a double fault, not a riddle.
const STACK_ROOM: usize = 64 * 1024;
/// Most threads at a time.
const MOST: usize = 8192;

/// [`Thread::on`] of a thread on whose stack no core is.
pub const NOWHERE: usize = usize::MAX;
/// [`Thread::since`] of a thread that does not run.
const STOPPED: u64 = u64::MAX;

/// What belongs to a thread alone: touched by itself, or by the scheduler while it does not run.
pub struct Own {
    /// Stack pointer while it does not run.
    pub sp: usize,
    pub save: Save,
    pub fpu: fpu::Area,
    /// FS and GS bases of user code while it does not run.
    pub fs: u64,
    pub gs: u64,
    /// What 32-bit code has besides.
    pub compat: compat::State,
}

/// A thread of the machine.
pub struct Thread {
    /// Its place in the table, which is another's after its end.
    pub id: ThreadId,
    /// A number no other thread ever has.
    pub serial: u64,
    pub own: UnsafeCell<Own>,
    /// `None` for threads of the kernel's own.
    pub guest: Option<Arc<dyn Guest>>,
    /// What a kernel thread does.
    pub body: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// The space it runs in; kernel threads have none.
    pub space: Mutex<Option<Arc<dyn Space>>>,
    stack: Option<usize>,
    /// The core that runs it or is still on its stack, which alone may run it; or [`NOWHERE`].
    pub on: AtomicUsize,
    /// The core it ran on last, or in whose queue it is.
    pub last: AtomicUsize,
    /// The cores it may run on; those that exist count.
    pub affinity: AtomicU64,
    /// What its core's queue knows of it, while it sleeps.
    pub account: Mutex<Account>,
    /// Its weight, of best effort, from when it next comes to a queue on.
    weight: AtomicU32,
    /// What it was promised.
    pub promise: promise::Word,
    /// It will not run again.
    pub ended: AtomicBool,
    /// Processor time used up to when it last began to run, and when that was.
    used: AtomicU64,
    /// The most that [`Thread::used`] has returned.
    shown: AtomicU64,
    since: AtomicU64,
    /// Page faults that brought a page, times it waited, and times the core was taken from it.
    pub faults: AtomicU64,
    pub waits: AtomicU64,
    pub preemptions: AtomicU64,
}

// SAFETY: `own` is the one part without a lock: the running thread itself or the scheduler touch it, on the core that `on` names.
unsafe impl Send for Thread {}
// SAFETY: as above.
unsafe impl Sync for Thread {}

struct Table {
    threads: Vec<Option<Arc<Thread>>>,
    free: Vec<usize>,
    /// Stacks that have pages, and how many stacks have ever been given out.
    stacks: Vec<usize>,
    next_stack: usize,
}

static TABLE: Mutex<Table> = Mutex::new(Table { threads: Vec::new(), free: Vec::new(), stacks: Vec::new(), next_stack: 0 });

impl Table {
    /// A stack with its pages. EAGAIN without memory or at the limit.
    fn take_stack(&mut self) -> Result<usize> {
        if let Some(stack) = self.stacks.pop() {
            return Ok(stack);
        }
        if self.next_stack == MOST {
            return Err(Errno::EAGAIN);
        }
        let stack = tables::STACKS + self.next_stack * STACK_ROOM;
        // Counted only when whole: pages of a failed attempt are found in place by the next.
        for page in (stack + PAGE..stack + STACK_ROOM).step_by(PAGE) {
            if !tables::map_stack_page(page) {
                return Err(Errno::EAGAIN);
            }
        }
        self.next_stack += 1;
        Ok(stack)
    }
}

/// Makes a thread that does not run yet. Without `stack` it is the one that runs already, on the boot stack.
pub fn make(
    frame: Frame,
    guest: Option<Arc<dyn Guest>>,
    body: Option<Box<dyn FnOnce() + Send>>,
    space: Option<Arc<dyn Space>>,
    entry: Option<extern "C" fn() -> !>,
) -> Result<Arc<Thread>> {
    let mut table = TABLE.lock();
    let stack = entry.map(|_| table.take_stack()).transpose()?;
    let index = table.free.pop().unwrap_or(table.threads.len());
    let mut sp = 0;
    if let (Some(stack), Some(entry)) = (stack, entry) {
        // As `switch_stack` leaves it: six registers, a return address; then the stack is aligned as after a call.
        let top = stack + STACK_ROOM;
        sp = top - 8 * 8;
        // SAFETY: the stack's pages are mapped and nobody uses it.
        unsafe {
            core::ptr::write_bytes(sp as *mut u8, 0, 8 * 8);
            ((top - 16) as *mut usize).write(entry as *const () as usize);
        }
    }
    let own = Own { sp, save: Save::new(frame), fpu: fpu::Area::initial(), fs: 0, gs: 0, compat: compat::State::default() };
    static SERIALS: AtomicU64 = AtomicU64::new(1);
    let thread = Arc::new(Thread {
        id: ThreadId(index as u64 + 1),
        serial: SERIALS.fetch_add(1, Ordering::Relaxed),
        own: UnsafeCell::new(own),
        guest,
        body: Mutex::new(body),
        space: Mutex::new(space),
        stack,
        on: AtomicUsize::new(NOWHERE),
        last: AtomicUsize::new(0),
        affinity: AtomicU64::new(u64::MAX),
        account: Mutex::new(Account::Fair(Fair::new(rbed::NORMAL))),
        weight: AtomicU32::new(rbed::NORMAL),
        promise: promise::Word::new(),
        ended: AtomicBool::new(false),
        used: AtomicU64::new(0),
        shown: AtomicU64::new(0),
        since: AtomicU64::new(STOPPED),
        faults: AtomicU64::new(0),
        waits: AtomicU64::new(0),
        preemptions: AtomicU64::new(0),
    });
    if index == table.threads.len() {
        table.threads.push(None);
    }
    table.threads[index] = Some(thread.clone());
    Ok(thread)
}

/// The thread of a number, as long as it lives.
pub fn find(id: ThreadId) -> Option<Arc<Thread>> {
    TABLE.lock().threads.get((id.0 as usize).checked_sub(1)?)?.clone()
}

/// All threads.
pub fn all() -> Vec<Arc<Thread>> {
    TABLE.lock().threads.iter().flatten().cloned().collect()
}

/// What the threads in a space use, those that live.
pub fn usage_in(space: &Arc<dyn Space>) -> Usage {
    let threads = all();
    let inside = threads.iter().filter(|thread| thread.space.lock().as_ref().is_some_and(|own| Arc::ptr_eq(own, space)));
    inside.fold(Usage::default(), |sum, thread| add(sum, thread.usage()))
}

/// The sum of two.
pub fn add(a: Usage, b: Usage) -> Usage {
    Usage {
        user: a.user + b.user,
        system: a.system + b.system,
        minor_faults: a.minor_faults + b.minor_faults,
        major_faults: a.major_faults + b.major_faults,
        waits: a.waits + b.waits,
        preemptions: a.preemptions + b.preemptions,
    }
}

/// Takes a thread out of the table at its end.
pub fn forget(thread: &Thread) {
    let mut table = TABLE.lock();
    let index = thread.id.0 as usize - 1;
    let gone = table.threads[index].take();
    table.free.push(index);
    drop(table);
    drop(gone);
}

impl Thread {
    /// The cores it may run on: a set that is never empty.
    pub fn allowed(&self) -> u64 {
        let all = u64::MAX >> (64 - cores::count());
        match self.affinity.load(Ordering::SeqCst) & all {
            0 => all,
            some => some,
        }
    }

    /// It runs from now on.
    pub fn start_clock(&self) {
        self.since.store(clock::now(), Ordering::Relaxed);
    }

    /// It no longer runs.
    pub fn stop_clock(&self) {
        let since = self.since.swap(STOPPED, Ordering::Relaxed);
        if since != STOPPED {
            let ran = clock::now().saturating_sub(since);
            self.used.fetch_add(ran, Ordering::Relaxed);
        }
    }

    /// Whether it runs: not one on whose stack a core waits for work.
    pub fn runs(&self) -> bool {
        self.since.load(Ordering::Relaxed) != STOPPED
    }

    /// Processor time used. While it begins or ends to run elsewhere, this may be short of what it used since it last began, but never of
    /// what this has returned before: a call that asks may run on another core than its thread, which is about to sleep.
    pub fn used(&self) -> Nanos {
        let used = self.used.load(Ordering::Relaxed);
        let now = match self.since.load(Ordering::Relaxed) {
            STOPPED => used,
            since => used + clock::now().saturating_sub(since),
        };
        self.shown.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Gives it a nice value, from when it next comes to a queue on.
    pub fn set_nice(&self, nice: i32) {
        self.weight.store(rbed::weight(nice), Ordering::Relaxed);
    }

    /// It is scheduled as its creator is, level with all on a core with this clock. What was promised to that is not its own, nor
    /// is the core of the promise.
    pub fn inherit(&self, creator: &Thread, clock: u64) {
        let affinity = if creator.promise.get().is_some() { u64::MAX } else { creator.affinity.load(Ordering::SeqCst) };
        self.affinity.store(affinity, Ordering::SeqCst);
        let weight = creator.weight.load(Ordering::Relaxed);
        self.weight.store(weight, Ordering::Relaxed);
        *self.account.lock() = Account::Fair(Fair::at(weight, clock));
    }

    /// Its account on a core's queue with the second clock, which was on one with the first. Away from the core of its promise it is best effort,
    /// until it gets there.
    pub fn account_on(&self, core: usize, from: u64, to: u64) -> Account {
        if let Some(promise) = self.promise.get().filter(|promise| promise.core == core) {
            return Account::Promise(promise.number);
        }
        let weight = self.weight.load(Ordering::Relaxed);
        match *self.account.lock() {
            Account::Fair(fair) => {
                let fair = if from == to { fair } else { fair.moved(from, to) };
                Account::Fair(fair.with_weight(weight))
            }
            Account::Promise(_) => Account::Fair(Fair::at(weight, to)),
        }
    }

    /// What it has used. The kernel's time on its behalf is not counted apart from its own.
    pub fn usage(&self) -> Usage {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Usage {
            user: self.used(),
            minor_faults: load(&self.faults),
            waits: load(&self.waits),
            preemptions: load(&self.preemptions),
            ..Usage::default()
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(stack) = self.stack {
            TABLE.lock().stacks.push(stack);
        }
    }
}
