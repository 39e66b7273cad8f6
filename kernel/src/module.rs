//! Modules: where calls run that are not made by the threads they are of.
//!
//! A module is a queue of calls with a policy, their timers and wake-ups ([`janua_rt::executor`]), for all calls or for those of one kind. It is on one of the
//! kernel's syscall cores ([`crate::cores`]), which takes its turns, and may be moved to another at any time.
//!
//! A call whose row's place is no home is built and polled by a module, in the slot of its thread, which waits until the result is there and takes it
//! back to user mode ([`crate::Seat`]). Submissions of queues are theirs too, each in a slot of its own ([`crate::queue`]). A kernel has no modules
//! unless [`Modules::start`] was called, or [`Modules::start_stepped`] where the machine has no threads for them.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_abi::linux::Result;
use janua_port::Machine;
use janua_port::machine::ThreadId;
use janua_port::outside::ModuleInfo;
use janua_rt::atomic::AtomicU32;
use janua_rt::executor::{Executor, Job, Policy, Ran, Turn};
use janua_rt::wake;
use janua_rt::{AtomicU64, OnceArc};

use crate::cores::{Core, Cores, processors_for};
use crate::offload::Offload;
use crate::place::{Place, Places};
use crate::task::Personality;
use crate::thread::{Thread, WakeState};

/// A thread with its slot, as a module sees it; or a queue, which it looks into.
pub(crate) trait Remote: Send + Sync {
    /// Builds the call or polls it.
    fn run(self: Pin<&Self>) -> Ran;
    fn wake(&self) -> &WakeState;
    /// [`Job::kind`], [`Job::nice`].
    fn kind(&self) -> usize {
        0
    }
    fn nice(&self) -> i8 {
        0
    }
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
    fn kind(&self) -> usize {
        self.0.kind()
    }
    fn nice(&self) -> i8 {
        self.0.nice()
    }
}

/// One module: a queue of calls, on one core.
pub(crate) struct Module {
    machine: &'static dyn Machine,
    pub name: String,
    /// It may reach user memory from where it runs ([`Modules::start`]).
    pub direct: bool,
    /// Calls are sent here only when that is likely to be worth it, and go back home when they wait.
    pub adaptive: bool,
    policy: Policy,
    full: usize,
    executor: Executor<Away>,
    cores: Arc<[Arc<Core>]>,
    /// Which of them it is on, and how often it has been moved.
    core: AtomicUsize,
    moved: AtomicU32,
    /// It has been put there by request, and stays whatever there is to do.
    pub kept: AtomicBool,
    turns: AtomicU64,
    /// Calls that were sent here, and of those the ones that went back without having been begun, or because they waited.
    sent: AtomicU64,
    taken_back: AtomicU64,
    waited: AtomicU64,
    /// Calls of its kinds that were made at home.
    at_home: AtomicU64,
    /// Turns with a chore ([`crate::chore`]).
    chores: AtomicU64,
}

fn count(word: &AtomicU64) {
    word.fetch_add(1, Ordering::Relaxed);
}

impl Module {
    fn new(machine: &'static dyn Machine, (at, name): (usize, String), plan: &Plan, cores: &Arc<[Arc<Core>]>) -> Module {
        let policy = plan.policy(at);
        Module {
            machine,
            name,
            direct: plan.direct,
            adaptive: plan.handover == Handover::Adaptive,
            policy,
            full: plan.full,
            executor: Executor::new(policy),
            cores: cores.clone(),
            core: AtomicUsize::new(at % cores.len().max(1)),
            moved: AtomicU32::new(0),
            kept: AtomicBool::new(false),
            turns: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            taken_back: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            at_home: AtomicU64::new(0),
            chores: AtomicU64::new(0),
        }
    }

    /// Which core it is on.
    pub fn core(&self) -> usize {
        self.core.load(Ordering::Acquire)
    }

    pub fn is_on(&self, core: usize) -> bool {
        self.core() == core
    }

    /// The caller rings the new core.
    pub fn move_to(&self, core: usize) {
        if self.core.swap(core, Ordering::AcqRel) != core {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often it has been moved.
    fn moved(&self) -> u32 {
        self.moved.load(Ordering::Relaxed)
    }

    /// How many turns it has had.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// By its core: polls its next call.
    pub fn turn(&self) -> Turn {
        let turn = self.executor.turn(self.machine.clock().monotonic());
        if turn == Turn::Ran {
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
        turn
    }

    /// Puts a call into the queue. Who moves the module meanwhile rings the new core after that.
    pub fn submit(&self, call: Away) {
        self.executor.submit(call);
        self.on().ring();
    }

    pub fn on(&self) -> &Core {
        // Never out of range.
        &self.cores[self.core() % self.cores.len()]
    }

    /// Whether a thread is to send its call here; if not, it is counted.
    fn wants(&self) -> bool {
        let core = self.on();
        // Where nobody looks, and no other thread would have the caller's processor meanwhile, the call would only be late.
        let wants = !self.adaptive || core.claim() || self.cores_to_spare() && self.machine.park().is_wanted();
        if !wants {
            core.pass();
        }
        let wants = wants && self.executor.queued() < self.full;
        if wants {
            count(&self.sent);
        } else {
            // Not exact, and no locked instruction on the way of a call made at home.
            self.at_home.store(self.at_home.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        wants
    }

    /// Whether no call waits for its turn here.
    pub fn is_idle(&self) -> bool {
        self.executor.queued() == 0
    }

    fn cores_to_spare(&self) -> bool {
        self.machine.cpus() > 1
    }

    /// A thread has its call back, which nobody had begun.
    pub fn withdraw(&self, call: &Away) {
        self.executor.withdraw(call);
        count(&self.taken_back);
        self.on().disappoint();
    }

    /// A call has been polled here, waits, and goes on at home.
    pub fn goes_home(&self) {
        count(&self.waited);
    }

    /// A turn is for a chore.
    pub fn did_chore(&self) {
        count(&self.chores);
    }

    /// Forgets the time a call has asked for, which is over by no doing of the module's.
    pub fn forget(&self, call: &Away) {
        self.executor.forget(call);
    }
}

/// Which calls a module is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Division {
    /// Each core has one module, for all calls of some of the threads.
    #[default]
    One,
    /// One for each kind, on as many cores as there are.
    Kind,
}

impl Division {
    /// The names of the modules on so many cores, in their order.
    pub fn names(self, cores: usize) -> Vec<String> {
        match self {
            Division::One if cores <= 1 => ["all".to_owned()].into(),
            Division::One => (0..cores).map(|core| format!("all{core}")).collect(),
            Division::Kind => Place::ALL[1..].iter().map(|place| place.name().to_owned()).collect(),
        }
    }
}

/// When calls are handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handover {
    /// When the module's core looks for calls, or another thread is ready to have the caller's processor; calls that wait go on at home.
    #[default]
    Adaptive,
    /// Always.
    Always,
}

/// How the modules of a kernel are to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Threads of the kernel's own that modules run on, at least 1.
    pub cores: usize,
    pub division: Division,
    /// Of each module, in the order of [`Division::names`]; the last is that of all that follow, too.
    pub policies: Vec<Policy>,
    pub handover: Handover,
    /// Calls made by threads go away if they are of these.
    pub places: Places,
    /// They reach user memory from where they run as far as the machine can; otherwise each access is the home thread's.
    pub direct: bool,
    /// Calls in a module's queue from which on a thread that has another makes it at home. What is woken is taken all the same: there is one call of each
    /// thread.
    pub full: usize,
    /// Each core's thread stays on a processor of its own, if there is one more for guests.
    pub pinned: bool,
}

impl Plan {
    /// A length of the queue that threads which run at once hardly reach.
    pub const FULL: usize = 256;

    fn policy(&self, module: usize) -> Policy {
        self.policies.get(module).or(self.policies.last()).copied().unwrap_or_default()
    }
}

/// The modules of a kernel, and the workers that do for them what blocks.
#[derive(Default)]
pub struct Modules {
    started: OnceArc<Started>,
    /// Where calls that may not stand still leave what blocks.
    pub offload: Offload,
}

struct Started {
    places: Places,
    /// Queues take calls of these.
    queued: Places,
    division: Division,
    cores: Arc<Cores>,
}

impl Started {
    fn new(machine: &'static dyn Machine, plan: &Plan) -> Started {
        let count = plan.cores.max(1);
        let cores: Vec<_> = processors_for(machine, plan.pinned, count)
            .map(|(number, own)| Arc::new(Core::new(machine, number, own)))
            .collect();
        let shared: Arc<[_]> = cores.clone().into();
        let module = |named| Arc::new(Module::new(machine, named, plan, &shared));
        let modules = plan.division.names(count).into_iter().enumerate().map(module).collect();
        Started {
            places: plan.places,
            queued: plan.places,
            division: plan.division,
            cores: Arc::new(Cores::new(machine, cores, modules)),
        }
    }

    fn of(&self, place: Place, thread: ThreadId) -> Option<&Arc<Module>> {
        let modules = &self.cores.modules;
        modules.get(match self.division {
            Division::One => usize::try_from(thread.0).unwrap_or(0) % modules.len().max(1),
            Division::Kind => (place as usize).checked_sub(1)?,
        })
    }
}

impl Modules {
    /// Starts modules, to which calls go from now on; threads that have begun already keep making theirs at home. The machine's error when it has no
    /// threads for them.
    pub fn start(&self, machine: &'static dyn Machine, plan: &Plan) -> Result<()> {
        let started = Started::new(machine, plan);
        started.cores.start(machine)?;
        let _ = self.started.set(Arc::new(started));
        Ok(())
    }

    /// One module without a thread, for a machine that has none to give: it does something when [`Modules::step`] is called. It serves queues alone,
    /// and reaches user memory from where it runs.
    pub fn start_stepped(&self, machine: &'static dyn Machine) {
        let plan = Plan {
            cores: 1,
            division: Division::One,
            policies: Vec::new(),
            handover: Handover::Always,
            places: Places::NONE,
            direct: true,
            full: Plan::FULL,
            pinned: false,
        };
        let started = Started { queued: Places::AWAY, ..Started::new(machine, &plan) };
        let _ = self.started.set(Arc::new(started));
    }

    /// Modules whose cores have no threads: each does something when [`Modules::step_on`] is called.
    pub fn start_by_steps(&self, machine: &'static dyn Machine, plan: &Plan) {
        let _ = self.started.set(Arc::new(Started::new(machine, plan)));
    }

    /// By who takes the turns of [`Modules::start_stepped`]'s module, and is none of the guests' threads: polls one call. When there was none, the
    /// module sleeps until [`Modules::is_due`].
    pub fn step(&self) -> Turn {
        let Some(cores) = self.started.get().map(|started| &started.cores) else { return Turn::Idle(None) };
        let (Some(module), Some(core)) = (cores.modules.first(), cores.cores.first()) else { return Turn::Idle(None) };
        wake::rearm(core.word());
        let turn = module.turn();
        if turn != Turn::Ran {
            // Asleep as far as wakers know, unless one was quicker.
            let _ = wake::intend_to_park(core.word());
        }
        turn
    }

    /// By who takes a core's turns: does what its modules have to do. Whether there was something; if not, the core looks for calls from now on.
    pub fn step_on(&self, core: usize) -> bool {
        let cores = self.started.get().map(|started| &started.cores);
        cores.is_some_and(|cores| cores.cores.get(core).is_some_and(|core| core.step(cores)))
    }

    /// Whether that module has been woken since it found nothing to do.
    pub fn is_due(&self) -> bool {
        let started = self.started.get();
        started.is_some_and(|started| started.cores.cores.iter().any(|core| wake::is_raised(core.word())))
    }

    /// The module for the queues and chores of a thread; `None` where there are no modules.
    pub(crate) fn for_queues_of(&self, thread: ThreadId) -> Option<&Arc<Module>> {
        self.started.get()?.of(Place::Fs, thread)
    }

    /// Whether a module would look into a queue of this thread's ([`Seat::open_queue`](crate::Seat::open_queue)).
    pub fn look_into_queues_of<P: Personality>(&self, thread: &Thread<P>) -> bool {
        self.for_queues_of(thread.id()).is_some_and(|module| module.direct)
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

    /// The module that a thread is to send its next call to, which is of this kind; `None` for one to be made at home.
    pub(crate) fn choose(&self, place: Place, thread: ThreadId) -> Option<&Arc<Module>> {
        let started = self.started.get()?;
        if !started.places.has(place) {
            return None;
        }
        started.of(place, thread).filter(|module| module.wants())
    }

    /// Moves a module to another core while both run. False where there is none of these numbers.
    pub fn move_to(&self, module: usize, core: usize) -> bool {
        self.started.get().is_some_and(|started| started.cores.move_to(module, core))
    }

    /// Has a module stay on a core from now on, or with `None` go where there is less to do again. Why not is for a person to read.
    pub fn place(&self, module: &str, core: Option<usize>) -> core::result::Result<(), String> {
        let started = self.started.get().ok_or("its calls are made at home: it has no modules (janua run --syscall-cores)")?;
        started.cores.place(module, core)
    }

    /// What there is to know of each module; nothing without modules.
    pub fn list(&self) -> Vec<ModuleInfo> {
        let info = |module: &Arc<Module>| ModuleInfo {
            name: module.name.clone(),
            core: module.core() as u32,
            kept: module.kept.load(Ordering::Relaxed),
            moved: module.moved(),
            turns: module.turns(),
        };
        self.started.get().map_or_else(Vec::new, |started| started.cores.modules.iter().map(info).collect())
    }

    /// What modules and cores have done, for `--stats`; empty without modules.
    pub fn report(&self) -> String {
        let mut text = String::new();
        let Some(started) = self.started.get() else { return text };
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let _ = writeln!(text, "module policy     core by      moved       away taken back  went home    at home     chores");
        for module in &started.cores.modules {
            let _ = writeln!(
                text,
                "{:<6} {:<9} {:>5} {:<7} {:>5} {:>10} {:>10} {:>10} {:>10} {:>10}",
                module.name,
                module.policy.name(),
                module.core(),
                if module.kept.load(Ordering::Relaxed) { "request" } else { "load" },
                module.moved(),
                read(&module.sent),
                read(&module.taken_back),
                read(&module.waited),
                read(&module.at_home),
                read(&module.chores),
            );
        }
        for core in &started.cores.cores {
            let counts = core.counts();
            let _ = writeln!(
                text,
                "syscall core {}: {} turns, on processor {}{}; looked for calls {} times, {} of them in vain",
                core.number,
                counts.turns,
                counts.processor,
                if counts.pinned { ", kept there" } else { "" },
                counts.looked,
                counts.vain
            );
        }
        text
    }
}
