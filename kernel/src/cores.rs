//! Syscall cores: threads of the kernel's own that take the turns of the modules that are on them.
//!
//! A core that has nothing to do *looks* for calls for a while before it sleeps: a call handed over then is begun at once and without a host call. That
//! somebody looks can be seen ([`Core::claim`]), and who claims it has the core for one call. A core that has looked in vain lets longer pass before
//! it looks again, so that one nobody has use for burns nothing.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::Result;
use janua_port::machine::processors;
use janua_port::{Machine, Nanos, Spun};
use janua_rt::executor::Turn;
use janua_rt::wake::{self, Raised};
use janua_rt::{AtomicU64, Mutex};

use crate::module::Module;

/// How long a call may hold up its core before another thread takes the core's turns, nanoseconds: it blocks, or is long work. Also how often the
/// load of the modules is compared.
const LONG: Nanos = 10_000_000;

/// How long a core looks for the next call, nanoseconds: about what it costs to sleep and to be woken.
const LOOK: Nanos = 20_000;

/// Turns of one module before those of the next on the same core.
const TURNS: u32 = 32;

/// Calls made at home after which a core is woken to look for calls: at first, and at most, when it has looked in vain again and again.
const PATIENCE: u32 = 64;
const MOST_PATIENCE: u32 = 1 << 20;

/// Turns between two comparisons below which no module is moved.
const MOVED_FOR: u64 = 256;

/// One of the threads modules run on.
pub(crate) struct Core {
    machine: &'static dyn Machine,
    pub number: usize,
    /// Its wake word ([`wake`]).
    word: AtomicU32,
    /// It looks for calls, and nobody has claimed it.
    looks: AtomicBool,
    /// Which of the threads that it has had takes the turns.
    leader: AtomicU32,
    /// Whether the leader is in a turn, and how many it has taken.
    busy: AtomicBool,
    turns: AtomicU64,
    /// Looks, and those without a call.
    looked: AtomicU64,
    vain: AtomicU64,
    /// Calls made at home since it was last asked to look, and after how many that is.
    passed: AtomicU32,
    patience: AtomicU32,
    /// The processor it was on last.
    processor: AtomicUsize,
    /// The one it is to stay on, and whether it does.
    own: Option<usize>,
    pinned: AtomicBool,
    /// Its threads that have been relieved and still are where they were held up.
    held: AtomicU32,
}

impl Core {
    pub fn new(machine: &'static dyn Machine, number: usize, own: Option<usize>) -> Core {
        Core {
            machine,
            number,
            word: AtomicU32::new(wake::QUIET),
            looks: AtomicBool::new(false),
            leader: AtomicU32::new(0),
            busy: AtomicBool::new(false),
            turns: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            vain: AtomicU64::new(0),
            passed: AtomicU32::new(0),
            patience: AtomicU32::new(PATIENCE),
            processor: AtomicUsize::new(0),
            own,
            pinned: AtomicBool::new(false),
            held: AtomicU32::new(0),
        }
    }

    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// There is something in the queue of a module that is on this core.
    pub fn ring(&self) {
        if wake::raise(&self.word) == Raised::Unpark {
            self.machine.park().unpark(&self.word, 1);
        }
    }

    /// Whether the core looks for calls, and now for the caller's.
    pub fn claim(&self) -> bool {
        self.looks.load(Ordering::Relaxed) && self.looks.swap(false, Ordering::AcqRel)
    }

    /// A call that could have been handed over is made at home. After enough of them the core is to look for the next.
    pub fn pass(&self) {
        // Not exact, and no locked instruction: several may count at once.
        let passed = self.passed.load(Ordering::Relaxed) + 1;
        if passed < self.patience.load(Ordering::Relaxed) {
            self.passed.store(passed, Ordering::Relaxed);
            return;
        }
        self.passed.store(0, Ordering::Relaxed);
        if !self.busy.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    /// A call was claimed for and not begun in time: the core has no processor.
    pub fn disappoint(&self) {
        let patience = self.patience.load(Ordering::Relaxed).max(PATIENCE);
        self.patience.store((patience * 2).min(MOST_PATIENCE), Ordering::Relaxed);
    }

    /// Spins for a call: whether there is something to do.
    fn look(&self) -> bool {
        self.looked.fetch_add(1, Ordering::Relaxed);
        self.looks.store(true, Ordering::Release);
        let mut spun = self.machine.park().spin(&self.word, wake::QUIET, LOOK);
        if !self.looks.swap(false, Ordering::AcqRel) && spun != Spun::Changed {
            // It has been claimed: the call is on its way.
            spun = self.machine.park().spin(&self.word, wake::QUIET, LOOK);
        }
        let patience = self.patience.load(Ordering::Relaxed);
        if spun == Spun::Changed {
            self.patience.store((patience / 2).max(PATIENCE), Ordering::Relaxed);
            return true;
        }
        self.vain.fetch_add(1, Ordering::Relaxed);
        self.patience.store((patience * 2).min(MOST_PATIENCE), Ordering::Relaxed);
        false
    }

    /// Takes turns of the modules on this core: whether there was one, and the time of the next.
    fn round(&self, modules: &[Arc<Module>]) -> (bool, Option<Nanos>) {
        let (mut ran, mut deadline) = (false, None);
        for module in modules.iter().filter(|module| module.is_on(self.number)) {
            for _ in 0..TURNS {
                match module.turn() {
                    Turn::Ran => {
                        self.turns.fetch_add(1, Ordering::Relaxed);
                        ran = true;
                    }
                    Turn::Idle(next) => {
                        deadline = deadline.into_iter().chain(next).min();
                        break;
                    }
                }
            }
            // It may have been moved while its last call was polled: the time that this asked for, and what woke it, are the new core's, which may have
            // looked before.
            if !module.is_on(self.number) {
                module.on().ring();
            }
        }
        (ran, deadline)
    }

    /// A part of [`Core::run`], for who calls it again and again.
    pub fn step(&self, cores: &Cores) -> bool {
        wake::rearm(&self.word);
        let (ran, _) = self.round(&cores.modules);
        self.looks.store(!ran, Ordering::Release);
        ran
    }

    /// A thread of the core's, from when it takes the lead until another does.
    fn run(&self, mine: u32, cores: &Cores) {
        let machine = self.machine;
        // Only now, so that a thread that could not be started has taken nothing over. Several may have been: one of them leads.
        let before = mine.wrapping_sub(1);
        if mine != 0 {
            self.held.fetch_add(1, Ordering::SeqCst);
            if self.leader.compare_exchange(before, mine, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                self.held.fetch_sub(1, Ordering::SeqCst);
                return;
            }
        }
        let leads = || self.leader.load(Ordering::Acquire) == mine;
        let mut tried = false;
        while leads() {
            tried = tried || self.settle();
            wake::rearm(&self.word);
            self.busy.store(true, Ordering::SeqCst);
            cores.watch(machine);
            let mut deadline = None;
            while leads() {
                let (ran, next) = self.round(&cores.modules);
                if !ran {
                    deadline = next;
                    break;
                }
            }
            if !leads() {
                break;
            }
            self.busy.store(false, Ordering::SeqCst);
            if cores.looks && self.look() {
                continue;
            }
            self.processor.store(machine.cpu(), Ordering::Relaxed);
            if wake::intend_to_park(&self.word) {
                machine.park().park(&self.word, wake::PARKED, deadline);
            }
        }
        self.held.fetch_sub(1, Ordering::SeqCst);
        // A wake-up meant for the new leader may have come to this one, and the last turn may have left a call in the queue or a time.
        let _ = wake::raise(&self.word);
        machine.park().unpark(&self.word, u32::MAX);
    }

    /// By a thread that leads: stays on the core's own processor from now on, if there is one. False while another of the core's threads is held up there
    /// and may want it: until then the host finds a processor for this one.
    fn settle(&self) -> bool {
        let Some(own) = self.own else { return true };
        if self.held.load(Ordering::SeqCst) != 0 {
            return false;
        }
        match self.machine.pin(own) {
            Ok(()) => self.pinned.store(true, Ordering::Relaxed),
            Err(errno) => {
                self.pinned.store(false, Ordering::Relaxed);
                let core = self.number;
                let text = format!("janua: --pin: syscall core {core} cannot be kept on processor {own}: {errno:?}\n");
                self.machine.console().write(text.as_bytes());
            }
        }
        true
    }

    /// Starts a thread of the core's.
    fn start(self: &Arc<Self>, mine: u32, cores: &Arc<Cores>) -> Result<()> {
        let (core, cores) = (self.clone(), cores.clone());
        self.machine.spawn_kernel("module", Box::new(move || core.run(mine, &cores)))
    }

    /// Has another thread take the turns.
    fn relieve(self: &Arc<Self>, cores: &Arc<Cores>) {
        // Where no more threads can be had it goes on alone, and later than it should.
        let _ = self.start(self.leader.load(Ordering::Acquire).wrapping_add(1), cores);
    }

    /// What it has done, for `--stats`.
    pub fn counts(&self) -> CoreCounts {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        CoreCounts {
            processor: self.processor.load(Ordering::Relaxed),
            turns: read(&self.turns),
            looked: read(&self.looked),
            vain: read(&self.vain),
            pinned: self.pinned.load(Ordering::Relaxed),
        }
    }
}

/// What a core has done.
pub(crate) struct CoreCounts {
    pub processor: usize,
    pub turns: u64,
    pub looked: u64,
    pub vain: u64,
    pub pinned: bool,
}

/// The numbers of so many cores, and the processors they are to stay on: the last, since programs ask for the first. One is left for guests.
pub(crate) fn processors_for(
    machine: &dyn Machine,
    pinned: bool,
    count: usize,
) -> impl Iterator<Item = (usize, Option<usize>)> {
    let mut own: Vec<usize> = if pinned { processors(machine).collect() } else { Vec::new() };
    if pinned && own.len() <= count {
        let text = format!(
            "janua: --pin: a processor for each of {count} syscall cores and one for the program are more than the {} there are: none is kept on one\n",
            own.len()
        );
        machine.console().write(text.as_bytes());
        own.clear();
    }
    (0..count).map(move |number| (number, own.iter().rev().nth(number).copied()))
}

/// The cores of a kernel, and who watches over those that are held up. The watcher sleeps while all are idle.
pub(crate) struct Cores {
    pub cores: Vec<Arc<Core>>,
    pub modules: Vec<Arc<Module>>,
    /// They look for calls before they sleep.
    looks: bool,
    word: AtomicU32,
    /// Held by who moves a module, from when it has been chosen until it is there.
    moving: Mutex<()>,
}

impl Cores {
    pub fn new(machine: &'static dyn Machine, cores: Vec<Arc<Core>>, modules: Vec<Arc<Module>>) -> Cores {
        Cores { cores, modules, looks: machine.cpus() > 1, word: AtomicU32::new(wake::QUIET), moving: Mutex::new(()) }
    }

    /// Starts their threads. The machine's error when it has none to give.
    pub fn start(self: &Arc<Self>, machine: &'static dyn Machine) -> Result<()> {
        self.cores.iter().try_for_each(|core| core.start(0, self))?;
        let cores = self.clone();
        machine.spawn_kernel("watch", Box::new(move || cores.run(machine)))
    }

    /// By a core that has something to do.
    fn watch(&self, machine: &dyn Machine) {
        if !wake::is_raised(&self.word) && wake::raise(&self.word) == Raised::Unpark {
            machine.park().unpark(&self.word, 1);
        }
    }

    fn run(self: &Arc<Self>, machine: &dyn Machine) {
        let mut seen: Vec<u64> = self.cores.iter().map(|_| 0).collect();
        let mut loads: Vec<u64> = self.modules.iter().map(|_| 0).collect();
        loop {
            wake::rearm(&self.word);
            let mut busy = false;
            for (core, seen) in self.cores.iter().zip(&mut seen) {
                let turns = core.turns.load(Ordering::Relaxed);
                let before = core::mem::replace(seen, turns);
                busy |= before != turns;
                if core.busy.load(Ordering::SeqCst) {
                    busy = true;
                    if before == turns {
                        core.relieve(self);
                    }
                }
            }
            self.balance(&mut loads);
            if busy {
                // No wake-up is to cut this short: nothing is parked here.
                let until = machine.clock().monotonic() + LONG;
                machine.park().park(&self.word, self.word.load(Ordering::Relaxed), Some(until));
            } else if wake::intend_to_park(&self.word) {
                machine.park().park(&self.word, wake::PARKED, None);
            }
        }
    }

    /// Moves a module to another core if that spreads the work better. `before`: the turns each had taken when they were last compared.
    fn balance(&self, before: &mut [u64]) {
        if self.cores.len() < 2 {
            return;
        }
        let load = |(module, before): (&Arc<Module>, &mut u64)| {
            let turns = module.turns();
            turns - core::mem::replace(before, turns)
        };
        let loads: Vec<u64> = self.modules.iter().zip(before).map(load).collect();
        let _moving = self.moving.lock();
        let place = |module: &Arc<Module>| (module.core(), module.kept.load(Ordering::Relaxed));
        let places: Vec<_> = self.modules.iter().map(place).collect();
        if let Some((module, core)) = better(&loads, &places, self.cores.len()) {
            self.move_to(module, core);
        }
    }

    /// Has a module stay on a core, or with `None` be moved by load again. Why not is for a person to read.
    pub fn place(&self, name: &str, core: Option<usize>) -> core::result::Result<(), String> {
        let _moving = self.moving.lock();
        let Some(at) = self.modules.iter().position(|module| module.name == name) else {
            let names: Vec<&str> = self.modules.iter().map(|module| &*module.name).collect();
            return Err(format!("it has no module of this name: its modules are {}", names.join(", ")));
        };
        match core {
            Some(core) if !self.move_to(at, core) => {
                let last = self.cores.len().saturating_sub(1);
                return Err(format!("it has no syscall core {core}: its cores are 0 to {last}"));
            }
            _ => self.modules[at].kept.store(core.is_some(), Ordering::Relaxed),
        }
        Ok(())
    }

    /// Moves a module to another core, whatever it does. False where there is none of these numbers.
    pub fn move_to(&self, module: usize, core: usize) -> bool {
        let (Some(module), Some(core)) = (self.modules.get(module), self.cores.get(core)) else { return false };
        module.move_to(core.number);
        // What is in its queue is the new core's: who rang the old one had left its call before.
        core.ring();
        true
    }
}

/// Which module is to go to which core, if that leaves the busiest core with less: `loads` and `places` by module, of each where it is and
/// whether it stays there.
fn better(loads: &[u64], places: &[(usize, bool)], cores: usize) -> Option<(usize, usize)> {
    let mut sums: Vec<u64> = (0..cores).map(|_| 0).collect();
    for (load, (place, _)) in loads.iter().zip(places) {
        *sums.get_mut(*place)? += load;
    }
    let (from, most) = sums.iter().copied().enumerate().max_by_key(|(_, sum)| *sum)?;
    let (to, least) = sums.iter().copied().enumerate().min_by_key(|(_, sum)| *sum)?;
    // By at least an eighth, or it would go to and fro.
    let gain = |load: u64| load > 0 && (least + load) + most / 8 < most;
    let moved = |at: &usize| places[*at] == (from, false) && gain(loads[*at]);
    let module = (0..loads.len()).filter(moved).max_by_key(|at| loads[*at])?;
    (most >= MOVED_FOR).then_some((module, to))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::better;

    /// Modules with these loads, each on its core and free to go.
    fn free(loads: &[u64], places: &[usize], cores: usize) -> Option<(usize, usize)> {
        let places: Vec<_> = places.iter().map(|place| (*place, false)).collect();
        better(loads, &places, cores)
    }

    #[test]
    fn a_module_goes_where_there_is_less_to_do() {
        assert_eq!(free(&[1000, 900, 0], &[0, 0, 1], 2), Some((0, 1)));
        assert_eq!(free(&[1000, 900, 0], &[0, 1, 1], 2), None, "it would only change places");
        assert_eq!(free(&[1000, 0], &[0, 1], 2), None, "one module is on one core");
        assert_eq!(free(&[100, 90, 0], &[0, 0, 1], 2), None, "too little to be worth it");
        assert_eq!(free(&[1000, 40, 30], &[0, 0, 0], 2), Some((1, 1)), "the large one has a core to itself in the end");
        assert_eq!(free(&[], &[], 2), None);
        assert_eq!(free(&[1000, 900, 800], &[0, 0, 1], 3), Some((0, 2)));
    }

    #[test]
    fn a_module_that_was_put_somewhere_stays() {
        assert_eq!(better(&[1000, 900, 0], &[(0, true), (0, false), (1, false)], 2), Some((1, 1)), "another goes");
        assert_eq!(better(&[1000, 900, 0], &[(0, true), (0, true), (1, false)], 2), None);
    }
}
