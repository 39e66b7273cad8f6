//! Modules: threads of the kernel's own that run calls away from the threads that made them.
//!
//! A call whose row's place is no home is built and polled by a module, in the slot of its thread, which sleeps until the result is there and takes it
//! back to user mode ([`crate::Seat`]). Submissions of queues are theirs too, each in a slot of its own ([`crate::queue`]). A kernel has no modules
//! unless [`Modules::start`] was called, or [`Modules::start_stepped`] where the machine has no threads for them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::Result;
use janua_port::Machine;
use janua_port::machine::ThreadId;
use janua_rt::atomic::AtomicU32;
use janua_rt::executor::{Executor, Fifo, Job, Ran, Turn};
use janua_rt::wake::{self, Raised};
use janua_rt::{AtomicU64, OnceArc};

use crate::place::{Place, Places};
use crate::thread::WakeState;

/// A thread with its slot, as a module sees it; or a queue, which it looks into.
pub(crate) trait Remote: Send + Sync {
    /// Builds the call or polls it.
    fn run(self: Pin<&Self>) -> Ran;
    fn wake(&self) -> &WakeState;
}

/// A call that is away.
#[derive(Clone)]
pub(crate) struct Away(pub Pin<Arc<dyn Remote>>);

impl Job for Away {
    fn id(&self) -> usize {
        core::ptr::from_ref(&*self.0).addr()
    }
    fn word(&self) -> &AtomicU32 {
        &self.0.wake().word
    }
    fn run(&self) -> Ran {
        self.0.as_ref().run()
    }
}

/// How long a call may hold up its module before another thread takes the module's turns, nanoseconds: it blocks, or is long work.
const LONG: u64 = 10_000_000;

/// One module: a queue of calls and the thread that takes its turns.
pub(crate) struct Module {
    machine: &'static dyn Machine,
    /// It may reach user memory from where it runs ([`Modules::start`]).
    pub direct: bool,
    executor: Executor<Away, Fifo<Away>>,
    /// Which of the threads that it has had takes the turns.
    leader: AtomicU32,
    /// Whether the leader is in a turn, and how many it has taken.
    busy: AtomicBool,
    turns: AtomicU64,
}

impl Module {
    fn new(machine: &'static dyn Machine, direct: bool) -> Module {
        Module {
            machine,
            direct,
            executor: Executor::new(Fifo::default()),
            leader: AtomicU32::new(0),
            busy: AtomicBool::new(false),
            turns: AtomicU64::new(0),
        }
    }

    /// Puts a call into the queue.
    pub fn submit(&self, call: Away) {
        if self.executor.submit(call) {
            self.machine.park().unpark(self.executor.word(), 1);
        }
    }

    /// Forgets the time a call has asked for, which is over by no doing of the module's.
    pub fn forget(&self, call: &Away) {
        self.executor.forget(call);
    }

    /// A thread of the module's, from when it takes the lead until another does.
    fn run(&self, mine: u32, watch: &Watch) {
        let (machine, word) = (self.machine, self.executor.word());
        // Only now, so that a thread that could not be started has taken nothing over. Several may have been: one of them leads.
        let before = mine.wrapping_sub(1);
        if mine != 0 && self.leader.compare_exchange(before, mine, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        let leads = || self.leader.load(Ordering::Acquire) == mine;
        while leads() {
            wake::rearm(word);
            self.busy.store(true, Ordering::SeqCst);
            watch.look(machine);
            let mut deadline = None;
            while leads() {
                self.turns.fetch_add(1, Ordering::Relaxed);
                if let Turn::Idle(next) = self.executor.turn(machine.clock().monotonic()) {
                    deadline = next;
                    break;
                }
            }
            if leads() {
                self.busy.store(false, Ordering::SeqCst);
                self.executor.park(deadline, |word, deadline| machine.park().park(word, wake::PARKED, deadline));
            }
        }
        // A wake-up meant for the new leader may have come to this one, and the last turn may have left a call in the queue or a time.
        let _ = wake::raise(word);
        machine.park().unpark(word, u32::MAX);
    }

    /// Starts a thread of the module's.
    fn start(self: &Arc<Self>, mine: u32, watch: &Arc<Watch>) -> Result<()> {
        let (module, watch) = (self.clone(), watch.clone());
        self.machine.spawn_kernel("module", Box::new(move || module.run(mine, &watch)))
    }

    /// Has another thread take the turns.
    fn relieve(self: &Arc<Self>, watch: &Arc<Watch>) {
        // Where no more threads can be had it goes on alone, and later than it should.
        let _ = self.start(self.leader.load(Ordering::Acquire).wrapping_add(1), watch);
    }
}

/// What watches over modules that are held up. It sleeps while all are idle.
struct Watch {
    word: AtomicU32,
}

impl Watch {
    /// By a module that has something to do.
    fn look(&self, machine: &dyn Machine) {
        if !wake::is_raised(&self.word) && wake::raise(&self.word) == Raised::Unpark {
            machine.park().unpark(&self.word, 1);
        }
    }

    fn run(self: &Arc<Self>, machine: &dyn Machine, modules: &[Arc<Module>]) {
        let mut seen: Vec<u64> = modules.iter().map(|_| 0).collect();
        loop {
            wake::rearm(&self.word);
            let mut busy = false;
            for (module, seen) in modules.iter().zip(&mut seen) {
                if !module.busy.load(Ordering::SeqCst) {
                    continue;
                }
                busy = true;
                let turns = module.turns.load(Ordering::Relaxed);
                if core::mem::replace(seen, turns) == turns {
                    module.relieve(self);
                }
            }
            if busy {
                // No wake-up is to cut this short: nothing is parked here.
                let until = machine.clock().monotonic() + LONG;
                machine.park().park(&self.word, self.word.load(Ordering::Relaxed), Some(until));
            } else if wake::intend_to_park(&self.word) {
                machine.park().park(&self.word, wake::PARKED, None);
            }
        }
    }
}

impl Started {
    fn of(&self, thread: ThreadId) -> Option<&Arc<Module>> {
        self.modules.get(usize::try_from(thread.0).unwrap_or(0) % self.modules.len().max(1))
    }
}

/// The modules of a kernel.
#[derive(Default)]
pub struct Modules {
    started: OnceArc<Started>,
}

struct Started {
    /// Calls made by threads go away if they are of these.
    places: Places,
    /// Queues take calls of these.
    queued: Places,
    modules: Vec<Arc<Module>>,
}

impl Modules {
    /// Starts `count` modules, to which calls of these places go from now on; threads that have begun already keep making theirs at home. `direct`: they reach user memory
    /// from where they run as far as the machine can; otherwise each access is the home thread's. The machine's error
    /// when it has no such threads.
    pub fn start(&self, machine: &'static dyn Machine, count: usize, places: Places, direct: bool) -> Result<()> {
        let modules: Vec<_> = (0..count).map(|_| Arc::new(Module::new(machine, direct))).collect();
        let watch = Arc::new(Watch { word: AtomicU32::new(wake::QUIET) });
        modules.iter().try_for_each(|module| module.start(0, &watch))?;
        let watched = modules.clone();
        machine.spawn_kernel("watch", Box::new(move || watch.run(machine, &watched)))?;
        let _ = self.started.set(Arc::new(Started { places, queued: places, modules }));
        Ok(())
    }

    /// One module without a thread, for a machine that has none to give: it does something when [`Modules::step`] is called. It serves queues alone,
    /// and reaches user memory from where it runs.
    pub fn start_stepped(&self, machine: &'static dyn Machine) {
        let module = Arc::new(Module::new(machine, true));
        let _ =
            self.started.set(Arc::new(Started { places: Places::NONE, queued: Places::AWAY, modules: alloc::vec![module] }));
    }

    /// By who takes the turns of [`Modules::start_stepped`]'s module, and is none of the guests' threads: polls one call. When there was none, the
    /// module sleeps until [`Modules::is_due`].
    pub fn step(&self) -> Turn {
        let Some(module) = self.started.get().and_then(|started| started.modules.first()) else { return Turn::Idle(None) };
        wake::rearm(module.executor.word());
        let turn = module.executor.turn(module.machine.clock().monotonic());
        if turn != Turn::Ran {
            module.executor.park(None, |_, _| ());
        }
        turn
    }

    /// Whether that module has been woken since it found nothing to do.
    pub fn is_due(&self) -> bool {
        let started = self.started.get();
        started.is_some_and(|started| started.modules.iter().any(|module| wake::is_raised(module.executor.word())))
    }

    /// The module for the queues of a thread; `None` where there are no modules.
    pub(crate) fn for_queues_of(&self, thread: ThreadId) -> Option<&Arc<Module>> {
        self.started.get()?.of(thread)
    }

    /// Whether queues take calls of a kind.
    pub(crate) fn takes_queued(&self, place: Place) -> bool {
        self.started.get().is_some_and(|started| started.queued.has(place))
    }

    /// Whether there are any.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.started.get().is_some()
    }

    /// Whether calls of a kind are made by a module.
    pub(crate) fn takes(&self, place: Place) -> bool {
        self.started.get().is_some_and(|started| started.places.has(place))
    }

    /// The module for a thread's calls of a kind; `None` for those made at home.
    pub(crate) fn of(&self, place: Place, thread: ThreadId) -> Option<&Arc<Module>> {
        let started = self.started.get()?;
        if !started.places.has(place) {
            return None;
        }
        started.of(thread)
    }
}
