//! Calls that are handed to modules by many threads at once, on threads of the host's: every one is made once, whether its thread takes it back, the module is
//! moved, its queue is full, or the thread is killed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use janua_abi::linux::{Errno, Result};
use janua_kernel::chore::{Chore, Next};
use janua_kernel::module::{Division, Handover, Plan};
use janua_kernel::stats::Stats;
use janua_kernel::task::Leave;
use janua_kernel::thread::work;
use janua_kernel::trace::Tracer;
use janua_kernel::{Kernel, Personality, Places, Seat, Table, Task, Trapped};
use janua_platform_model::{Model, Settings};
use janua_port::guest::{Abi, Flow};
use janua_port::{Frame, Guest, Trap};
use janua_rt::WaitQueue;
use janua_rt::executor::Policy;

type Thread = janua_kernel::Thread<Handed>;

struct Handed;

/// What became of the calls, by their number.
#[derive(Default)]
struct System {
    begun: Vec<AtomicU32>,
    ended: Vec<AtomicU32>,
    rung: AtomicUsize,
    bell: WaitQueue,
}

impl System {
    fn ring(&self) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        self.bell.wake_all();
    }
}

impl Personality for Handed {
    type System = System;
    type Task = ();
    type Thread = ();

    fn start(_thread: &Thread, _frame: &mut Frame) -> Leave {
        Leave::Resume
    }
    fn trap(_thread: &Thread, _frame: &mut Frame, _trap: Trap) -> Trapped {
        Trapped::Done
    }
    fn is_special(_result: isize) -> bool {
        false
    }
    fn leave(thread: &Thread, _frame: &mut Frame) -> Leave {
        if thread.work() & work::KILL != 0 { Leave::Exit } else { Leave::Resume }
    }
    fn trace_id(_thread: &Thread) -> u32 {
        0
    }
}

fn note(thread: &Thread, call: usize) -> Result<usize> {
    let system = &thread.kernel.system;
    system.begun[call].fetch_add(1, Ordering::SeqCst);
    system.ended[call].fetch_add(1, Ordering::SeqCst);
    Ok(call)
}

/// Waits until the bell has rung, twice.
async fn wait(thread: &Thread, call: usize) -> Result<usize> {
    let system = &thread.kernel.system;
    system.begun[call].fetch_add(1, Ordering::SeqCst);
    for _ in 0..2 {
        let before = system.rung.load(Ordering::SeqCst);
        let rung = || (system.rung.load(Ordering::SeqCst) != before).then_some(());
        thread.wait_on(&system.bell, None, rung).await.map_err(|cut| cut.errno(Errno::EINTR))?;
    }
    system.ended[call].fetch_add(1, Ordering::SeqCst);
    Ok(call)
}

/// Waits until a time, in a module that goes to another core before that is known: a core that has looked for what there is by then.
async fn moved(thread: &Thread) -> Result<()> {
    let Kernel { modules, system, .. } = &*thread.kernel;
    assert!(modules.move_to(0, 1));
    modules.step_on(1);
    let never = || None::<()>;
    thread.wait_on(&system.bell, Some(1), never).await.map_err(|cut| cut.errno(Errno::ETIMEDOUT))
}

janua_kernel::calls! {
    pub static ROWS for Handed;
    0 note(call: usize) => plain note, task, Full;
    1 wait(call: usize) => wait wait, ipc, Full;
    2 file(call: usize) => plain note, fs, Full;
    3 home(call: usize) => plain note, home, Full;
    4 moved() => wait moved, ipc, Full;
}

/// Threads, calls of each, and syscall cores.
const THREADS: usize = 4;
const CALLS: usize = 60;
const CORES: usize = 2;

/// What a machine does with a thread from call to call: how many it made before it was killed.
fn drive(seat: &Seat<Handed>, first: usize) -> usize {
    let mut frame = Frame::default();
    for n in 0..CALLS {
        let call = first + n;
        (frame.orig_rax, frame.rdi) = (((call * 7 + n) % 4) as u64, call as u64);
        let mut flow = seat.call(&mut frame, Abi::Native);
        loop {
            match flow {
                Flow::Resume => break,
                Flow::Exit => return n,
                Flow::Wait(_) => {
                    while seat.wake_word().load(Ordering::SeqCst) == 0 {
                        thread::yield_now();
                    }
                    flow = seat.poll(&mut frame);
                }
            }
        }
        assert_eq!(frame.result(), call as isize, "the result of another call");
    }
    CALLS
}

fn kernel(machine: &'static Model, table: Table<Handed>, system: System) -> Arc<Kernel<Handed>> {
    Arc::new(Kernel {
        machine,
        table,
        compat: Table::new(&[]),
        tracer: Tracer::default(),
        stats: Stats::new(ROWS.len(), 0),
        modules: Default::default(),
        system,
    })
}

fn plan(division: Division, policies: Vec<Policy>, handover: Handover, full: usize) -> Plan {
    Plan { cores: CORES, division, policies, handover, places: Places::AWAY, direct: true, full, pinned: false }
}

fn round(division: Division, policies: Vec<Policy>, handover: Handover, full: usize, kills: bool) {
    let model = Model::new(Settings::default());
    let table = Table::new(ROWS);
    table.register_all();
    let counters = || (0..THREADS * CALLS).map(|_| AtomicU32::new(0)).collect();
    let kernel = kernel(model, table, System { begun: counters(), ended: counters(), ..System::default() });
    let plan = plan(division, policies.clone(), handover, full);
    kernel.modules.start_by_steps(model, &plan);
    let task = Arc::new(Task { kernel: kernel.clone(), ext: () });
    let seats: Vec<_> = (0..THREADS).map(|_| Seat::new(janua_kernel::Thread::new(task.clone(), ()))).collect();

    let names = division.names(CORES);
    let stop = AtomicBool::new(false);
    let made: Vec<usize> = thread::scope(|scope| {
        for core in 0..CORES {
            let (kernel, stop) = (&kernel, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if !kernel.modules.step_on(core) {
                        thread::yield_now();
                    }
                }
            });
        }
        scope.spawn(|| {
            for n in 0_usize.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                kernel.system.ring();
                // Where to, whatever they do; and by request, which a core that is not there refuses.
                kernel.modules.move_to(n % 6, n / 7 % CORES);
                let name = &names[n / 3 % names.len()];
                let core = [Some(0), None, Some(1), Some(CORES)][n % 4];
                assert_eq!(kernel.modules.place(name, core).is_ok(), core != Some(CORES));
                if kills && n == 40 {
                    seats[0].interrupt(work::KILL);
                }
                thread::yield_now();
            }
        });
        let homes: Vec<_> = seats.iter().enumerate().map(|(at, seat)| scope.spawn(move || drive(seat, at * CALLS))).collect();
        let made = homes.into_iter().map(|home| home.join().expect("no thread fails")).collect();
        stop.store(true, Ordering::Relaxed);
        made
    });
    for (at, made) in made.iter().enumerate() {
        assert!(*made == CALLS || at == 0 && kills, "a thread that was not killed made {made} calls");
        for n in 0..CALLS {
            let call = at * CALLS + n;
            let count = |counts: &[AtomicU32]| counts[call].load(Ordering::SeqCst);
            let (begun, ended) = (count(&kernel.system.begun), count(&kernel.system.ended));
            match n.cmp(made) {
                std::cmp::Ordering::Less => assert_eq!((begun, ended), (1, 1), "call {call}"),
                // The one it was killed in.
                std::cmp::Ordering::Equal => assert!(begun <= 1 && ended <= begun, "call {call}: {begun}, {ended}"),
                std::cmp::Ordering::Greater => assert_eq!(begun, 0, "call {call}, of a dead thread"),
            }
        }
    }
    let report = kernel.modules.report();
    assert!(report.contains("syscall core 1"), "{report}");
    for (name, policy) in names.iter().zip(policies.iter().chain(policies.last().into_iter().cycle())) {
        let is = |line: &str| line.split_whitespace().take(2).eq([name.as_str(), policy.name()]);
        assert!(report.lines().any(is), "{name}, {}\n{report}", policy.name());
    }
}

#[test]
fn every_call_is_made_once() {
    // Each of the two kinds of handover with each division; queues of one call, and a kill, with each handover.
    for n in 0..12 {
        let division = [Division::One, Division::Kind][n % 2];
        // Of all, or of each its own.
        let policies = (0..n % 7).map(|at| Policy::ALL[(at + n) % 3]).collect();
        let handover = [Handover::Always, Handover::Adaptive][n / 2 % 2];
        round(division, policies, handover, if n % 3 == 0 { 1 } else { Plan::FULL }, n % 4 % 3 == 0);
    }
}

/// What a core leaves in a module that has gone to another one meanwhile, a time or a call that was woken, is the other's to find.
#[test]
fn what_is_left_in_a_module_that_has_moved_is_not_lost() {
    let model = Model::new(Settings::default());
    let table = Table::new(ROWS);
    table.register_all();
    let kernel = kernel(model, table, System::default());
    kernel.modules.start_by_steps(model, &plan(Division::One, vec![Policy::Fifo], Handover::Always, Plan::FULL));
    let task = Arc::new(Task { kernel: kernel.clone(), ext: () });
    let seat = Seat::new(janua_kernel::Thread::new(task, ()));
    let mut frame = Frame { orig_rax: 4, ..Frame::default() };
    assert!(matches!(seat.call(&mut frame, Abi::Native), Flow::Wait(_)));
    assert!(kernel.modules.step_on(0), "it has been polled, and waits");
    assert!(kernel.modules.is_due(), "the core that has the module now does not know of the time");
}

/// A request names a module and a core, keeps the module there, and is refused with what there is.
#[test]
fn modules_are_placed_by_request() {
    let modules = janua_kernel::module::Modules::default();
    let why = modules.place("fs", Some(0)).expect_err("there are none");
    assert!(why.contains("no modules"), "{why}");
    assert!(modules.list().is_empty());
    let plan = plan(Division::Kind, vec![Policy::Cohort, Policy::Fifo], Handover::Always, Plan::FULL);
    modules.start_by_steps(Model::new(Settings::default()), &plan);
    let fs = || modules.list().swap_remove(0);
    assert_eq!((fs().name.as_str(), fs().core, fs().kept, fs().moved), ("fs", 0, false, 0));
    assert_eq!(modules.place("fs", Some(1)), Ok(()));
    assert_eq!((fs().core, fs().kept, fs().moved), (1, true, 1));
    for (name, core, says) in [
        ("fs", Some(2), "cores are 0 to 1"),
        ("fs", Some(usize::MAX), "cores are 0 to 1"),
        ("", None, "fs, mm, ipc, task, time, net"),
        ("all", Some(0), "fs, mm, ipc, task, time, net"),
    ] {
        let why = modules.place(name, core).expect_err(says);
        assert!(why.contains(says), "{why}");
    }
    assert_eq!((fs().core, fs().kept, fs().moved), (1, true, 1), "what is refused changes nothing");
    assert_eq!(modules.place("fs", Some(1)), Ok(()));
    assert_eq!(modules.place("fs", None), Ok(()));
    assert_eq!((fs().core, fs().kept, fs().moved), (1, false, 1));
}

/// Processors for syscall cores are asked of the machine; one that has too few, as this has, is no reason to stop.
#[test]
fn a_machine_of_one_processor_keeps_no_core_on_its_own() {
    let modules = janua_kernel::module::Modules::default();
    let model = Model::new(Settings::default());
    let plan = Plan { pinned: true, ..plan(Division::One, Vec::new(), Handover::Always, Plan::FULL) };
    modules.start_by_steps(model, &plan);
    assert!(!modules.report().contains("kept there"), "{}", modules.report());
    assert!(model.written().contains("--pin"), "{}", model.written());
}

/// A chore is done whenever it has been woken, by one core at a time and wherever its module is; and never again once it is over.
#[test]
fn a_chore_is_done_for_every_wake_up() {
    const LAST: u32 = 4000;
    let model = Model::new(Settings::default());
    let kernel = kernel(model, Table::new(ROWS), System::default());
    let task = Arc::new(Task { kernel: kernel.clone(), ext: () });
    let thread = janua_kernel::Thread::new(task, ());
    assert!(Chore::new(&thread, Box::new(|| Next::Over)).is_none(), "there are no modules yet");
    kernel.modules.start_by_steps(model, &plan(Division::One, Vec::new(), Handover::Always, Plan::FULL));

    #[derive(Default)]
    struct Seen {
        asked: AtomicU32,
        done: AtomicU32,
        turns: AtomicU32,
        inside: AtomicBool,
    }
    let seen = Arc::new(Seen::default());
    let body = {
        let seen = seen.clone();
        move || {
            assert!(!seen.inside.swap(true, Ordering::SeqCst), "two cores do it at once");
            let turns = seen.turns.fetch_add(1, Ordering::SeqCst);
            let asked = seen.asked.load(Ordering::SeqCst);
            seen.done.store(asked, Ordering::SeqCst);
            seen.inside.store(false, Ordering::SeqCst);
            match asked {
                LAST => Next::Over,
                // Its time has come.
                _ if turns % 3 == 0 => Next::At(0),
                _ => Next::Woken,
            }
        }
    };
    let chore = Chore::new(&thread, Box::new(body)).expect("there are modules");
    chore.wake();
    assert!(chore.reaches_memory() && !kernel.modules.step_on(0), "it has not begun");
    chore.begin();
    let over = || seen.done.load(Ordering::SeqCst) == LAST;
    thread::scope(|scope| {
        for core in 0..CORES {
            let kernel = &kernel;
            scope.spawn(move || {
                while !over() {
                    if !kernel.modules.step_on(core) {
                        thread::yield_now();
                    }
                }
            });
        }
        scope.spawn(|| {
            for n in 0_usize.. {
                if over() {
                    break;
                }
                kernel.modules.move_to(n % 2, n / 2 % CORES);
                thread::yield_now();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 0..LAST / 2 {
                    let mine = seen.asked.fetch_add(1, Ordering::SeqCst) + 1;
                    chore.wake();
                    // Now and then it is asleep by the next wake-up.
                    while n % 16 == 0 && seen.done.load(Ordering::SeqCst) < mine {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    let turns = seen.turns.load(Ordering::SeqCst);
    chore.wake();
    assert!(!kernel.modules.step_on(0) && !kernel.modules.step_on(1));
    assert_eq!(seen.turns.load(Ordering::SeqCst), turns, "it is over");
    let said = kernel.modules.report();
    let chores: u32 =
        said.lines().filter_map(|line| line.strip_prefix("all")?.split_whitespace().last()?.parse::<u32>().ok()).sum();
    assert_eq!(chores, turns, "{said}");
}
