//! Calls that are handed to modules by many threads at once, on threads of the host's: every one is made once, whether its thread takes it back, the module is
//! moved, its queue is full, or the thread is killed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use janua_abi::linux::{Errno, Result};
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

fn round(division: Division, policy: Policy, handover: Handover, full: usize, kills: bool) {
    let model = Model::new(Settings::default());
    let table = Table::new(ROWS);
    table.register_all();
    let counters = || (0..THREADS * CALLS).map(|_| AtomicU32::new(0)).collect();
    let kernel = Arc::new(Kernel {
        machine: model,
        table,
        compat: Table::new(&[]),
        tracer: Tracer::default(),
        stats: Stats::new(ROWS.len(), 0),
        modules: Default::default(),
        system: System { begun: counters(), ended: counters(), ..System::default() },
    });
    let plan = Plan { cores: CORES, division, policy, handover, places: Places::AWAY, direct: true, full };
    kernel.modules.start_by_steps(model, &plan);
    let task = Arc::new(Task { kernel: kernel.clone(), ext: () });
    let seats: Vec<_> = (0..THREADS).map(|_| Seat::new(janua_kernel::Thread::new(task.clone(), ()))).collect();

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
                // Where to, whatever they do.
                kernel.modules.move_to(n % 6, n / 7 % CORES);
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
    assert!(report.contains("syscall core 1") && report.contains(policy.name()), "{report}");
}

#[test]
fn every_call_is_made_once() {
    // Each of the two kinds of handover with each division; queues of one call, and a kill, with each handover.
    for n in 0..12 {
        let division = [Division::One, Division::Kind][n % 2];
        let policy = Policy::ALL[n % 3];
        let handover = [Handover::Always, Handover::Adaptive][n / 2 % 2];
        round(division, policy, handover, if n % 3 == 0 { 1 } else { Plan::FULL }, n % 4 % 3 == 0);
    }
}

/// What a core leaves in a module that has gone to another one meanwhile, a time or a call that was woken, is the other's to find.
#[test]
fn what_is_left_in_a_module_that_has_moved_is_not_lost() {
    let model = Model::new(Settings::default());
    let table = Table::new(ROWS);
    table.register_all();
    let kernel = Arc::new(Kernel {
        machine: model,
        table,
        compat: Table::new(&[]),
        tracer: Tracer::default(),
        stats: Stats::new(ROWS.len(), 0),
        modules: Default::default(),
        system: System::default(),
    });
    let (division, policy, handover) = (Division::One, Policy::Fifo, Handover::Always);
    let plan = Plan { cores: CORES, division, policy, handover, places: Places::AWAY, direct: true, full: Plan::FULL };
    kernel.modules.start_by_steps(model, &plan);
    let task = Arc::new(Task { kernel: kernel.clone(), ext: () });
    let seat = Seat::new(janua_kernel::Thread::new(task, ()));
    let mut frame = Frame { orig_rax: 4, ..Frame::default() };
    assert!(matches!(seat.call(&mut frame, Abi::Native), Flow::Wait(_)));
    assert!(kernel.modules.step_on(0), "it has been polled, and waits");
    assert!(kernel.modules.is_due(), "the core that has the module now does not know of the time");
}
