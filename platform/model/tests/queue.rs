//! A thread that waits for the ends of what it has submitted: a queue's ring, its completions and the waiter's wake-up in orders of events that
//! seeds choose. Nobody spins, so that a wake-up that is lost is a machine where nobody can run.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use janua_abi::linux::{Errno, Result};
use janua_kernel::stats::Stats;
use janua_kernel::task::Leave;
use janua_kernel::thread::work;
use janua_kernel::trace::Tracer;
use janua_kernel::{Kernel, Personality, Queue, Table, Task, Trapped};
use janua_platform_model::program::{CODE, DATA, Program};
use janua_platform_model::ring::{self, CANCEL, Ring};
use janua_platform_model::{Model, Outcome, Settings};
use janua_port::gate::{Completion, QueueGate, Submission};
use janua_port::outside::over;
use janua_port::{Backing, Frame, Machine, Prot, Trap};
use janua_rt::WaitQueue;
use janua_rt::executor::Turn;

type Thread = janua_kernel::Thread<Queued>;

const PAGE: usize = 4096;
const RIGHTS: Prot = Prot { read: true, write: true, exec: true };
const RING: u64 = DATA;
const ENTRIES: u64 = 8;

/// A kernel whose one thread has a queue.
struct Queued;

#[derive(Default)]
struct System {
    queue: OnceLock<Arc<Queue<Queued>>>,
    never: WaitQueue,
}

impl Personality for Queued {
    type System = System;
    type Task = ();
    type Thread = ();

    fn start(_thread: &Thread, frame: &mut Frame) -> Leave {
        *frame = Frame::start(CODE + Program::HEADERS as u64, 0);
        Leave::Resume
    }
    fn trap(thread: &Thread, _frame: &mut Frame, trap: Trap) -> Trapped {
        if let Trap::Exception(_) = trap {
            thread.set_work(work::KILL);
        }
        Trapped::Done
    }
    fn is_special(result: isize) -> bool {
        result == Errno::ERESTARTSYS.as_result()
    }
    fn leave(thread: &Thread, _frame: &mut Frame) -> Leave {
        if thread.work() & work::KILL != 0 { Leave::Exit } else { Leave::Resume }
    }
    fn trace_id(_thread: &Thread) -> u32 {
        0
    }
    fn stand_in(_thread: &Thread) -> Option<()> {
        Some(())
    }
}

/// The machine ends with this code.
fn off(thread: &Thread, _frame: &mut Frame, code: u32) -> isize {
    over(thread.machine(), code as u8)
}

/// Waits for so many completions, no longer than this: how many there are.
async fn reap(thread: &Thread, least: usize, nanos: u64) -> Result<usize> {
    let queue = thread.kernel.queue.get().ok_or(Errno::EINVAL)?.clone();
    let deadline = (nanos != 0).then(|| thread.machine().clock().monotonic() + nanos);
    queue.wait(thread, least, deadline).await.map_err(|cut| cut.errno(Errno::ETIMEDOUT))
}

async fn sleep(thread: &Thread, nanos: u64) -> Result<()> {
    let until = thread.machine().clock().monotonic() + nanos;
    thread.sleep_until(until).await.map_err(|cut| cut.errno(Errno::EINTR))
}

/// Waits for what never comes.
async fn forever(thread: &Thread) -> Result<()> {
    thread.wait_on(&thread.kernel.never, None, || None::<()>).await.map_err(|cut| cut.errno(Errno::EINTR))
}

fn value(_thread: &Thread, word: usize) -> Result<usize> {
    Ok(word)
}

fn close(thread: &Thread) -> Result<()> {
    thread.close_queues();
    Ok(())
}

const OFF: usize = 0;
const REAP: usize = 1;
const SLEEP: usize = 2;
const FOREVER: usize = 3;
const VALUE: usize = 4;
const CLOSE: usize = 5;

janua_kernel::calls! {
    pub static ROWS for Queued;
    0 off(code: u32) => frame off, home, Full;
    1 reap(least: usize, nanos: u64) => wait reap, home, Full;
    2 sleep(nanos: u64) => wait sleep, time, Full;
    3 forever() => wait forever, ipc, Full;
    4 value(word: usize) => plain value, task, Full;
    5 close() => plain close, home, Full;
}

/// A ring that a module looks into: nobody rings for the guest but when the ring says that it has to.
struct Watched {
    ring: Arc<Ring>,
    rests: AtomicBool,
    times: AtomicU32,
}

impl QueueGate for Watched {
    fn take(&self) -> Option<Submission> {
        let taken = self.ring.take();
        if taken.is_some() {
            self.rests.store(false, Ordering::Relaxed);
        }
        taken
    }
    fn complete(&self, completion: Completion) -> bool {
        self.ring.complete(completion)
    }
    fn unreaped(&self) -> usize {
        self.ring.unreaped()
    }
    fn is_watched(&self) -> bool {
        true
    }
    fn look(&self) -> usize {
        let changed = self.ring.has_changed();
        self.ring.look();
        usize::from(changed)
    }
    fn rest(&self) {
        self.rests.store(true, Ordering::Relaxed);
        self.times.fetch_add(1, Ordering::Relaxed);
    }
}

/// A machine with this program, and its queue with so many workers and so much room for completions.
fn boot(seed: u64, program: &Program, workers: usize, completions: u64) -> &'static Model {
    boot_with(seed, program, workers, completions, false).0
}

/// The same; how often nobody looked any more, if the queue is watched.
fn boot_with(
    seed: u64,
    program: &Program,
    workers: usize,
    completions: u64,
    is_watched: bool,
) -> (&'static Model, Arc<Watched>) {
    let model = Model::new(Settings { seed, spurious: seed.is_multiple_of(2), ..Settings::default() });
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
    kernel.modules.start_stepped(model);
    let task = Arc::new(Task { kernel: kernel.clone(), ext: () });
    let seat = janua_kernel::Seat::new(janua_kernel::Thread::new(task, ()));
    let (context, space) = model.spawn_first(seat.clone()).expect("a first thread");
    let code = program.clone().executable();
    for (at, len) in [(CODE, code.len().next_multiple_of(PAGE)), (DATA, PAGE)] {
        space.map(at as usize, len, RIGHTS, &Backing::Anon).expect("room");
    }
    seat.user().copy_out(CODE as usize, &code).expect("the code is mapped");
    let ring = Ring::new(context, RING as usize, ENTRIES, completions);
    let watched = Arc::new(Watched { ring: ring.clone(), rests: AtomicBool::new(false), times: AtomicU32::new(0) });
    let gate: Arc<dyn QueueGate> = if is_watched { watched.clone() } else { ring.clone() };
    let queue = seat.open_queue(gate, workers).expect("a queue");
    assert!(kernel.queue.set(queue.clone()).is_ok());
    let (modules, seen) = (kernel.clone(), watched.clone());
    let rings = move || seen.ring.has_changed() && (!is_watched || seen.rests.load(Ordering::Relaxed));
    let has_to_ring = rings.clone();
    let step = move || {
        if has_to_ring() {
            ring.look();
            queue.ring();
        }
        match kernel.modules.step() {
            Turn::Ran => Some(0),
            Turn::Idle(due) => due,
        }
    };
    model.work(move || modules.modules.is_due() || rings(), step);
    (model, watched)
}

fn submit(program: Program, n: u64, number: u64, word: u64, tag: u64) -> Program {
    let at = RING + Ring::submission(ENTRIES, n) as u64;
    let filled = program.store_at(at, number).store_at(at + 8, word).store_at(at + 56, tag);
    filled.store_at(RING + ring::at::SUBMITTED as u64, n + 1)
}

/// Orders of events.
const SEEDS: std::ops::Range<u64> = 1..65;

#[test]
fn who_waits_for_completions_is_woken() {
    let program = submit(Program::new(), 0, SLEEP as u64, 3000, 1);
    let program = submit(submit(program, 1, VALUE as u64, 7, 2), 2, SLEEP as u64, 500, 3);
    let program = program.call(REAP, &[3, 0]).expect(3, 1).call(OFF, &[42]);
    for (seed, workers) in SEEDS.zip([1, 2, 4].into_iter().cycle()) {
        assert_eq!(boot(seed, &program, workers, 8).run(), Outcome::Off(42), "seed {seed}");
    }
}

/// The next completion comes when the one before it is taken.
#[test]
fn a_full_ring_goes_on_when_there_is_room() {
    let submitted = (0..6).fold(Program::new(), |program, n| submit(program, n, VALUE as u64, n, n));
    let taken = (0..6)
        .fold(submitted, |program, n| program.call(REAP, &[1, 0]).expect(1, 1).store_at(RING + ring::at::REAPED as u64, n + 1));
    let program = taken.call(REAP, &[1, 5000]).expect(Errno::ETIMEDOUT.as_result() as i32, 2).call(OFF, &[42]);
    for (seed, workers) in SEEDS.zip([1, 2, 4].into_iter().cycle()) {
        assert_eq!(boot(seed, &program, workers, 1).run(), Outcome::Off(42), "seed {seed}");
    }
}

#[test]
fn a_cancelled_wait_is_a_completion_and_what_never_ends_takes_no_time() {
    let forever = submit(submit(Program::new(), 0, FOREVER as u64, 0, 1), 1, FOREVER as u64, 0, 2);
    let cancelled = submit(submit(forever.clone(), 2, CANCEL, 1, 3), 3, CANCEL, 2, 4);
    let cancelled = cancelled.call(REAP, &[4, 0]).expect(4, 1).call(OFF, &[42]);
    let waits = forever.call(REAP, &[1, 0]).call(OFF, &[1]);
    for (seed, workers) in SEEDS.zip([1, 2, 4].into_iter().cycle()) {
        assert_eq!(boot(seed, &cancelled, workers, 8).run(), Outcome::Off(42), "seed {seed}");
        assert_eq!(boot(seed, &waits, workers, 8).run(), Outcome::Idle, "seed {seed}");
    }
}

/// Many more calls than there are workers, or than wait for one.
#[test]
fn places_are_used_again_and_again() {
    let rounds = (0..40).fold(Program::new(), |program, round| {
        let filled = (0..ENTRIES).fold(program, |program, n| submit(program, round * ENTRIES + n, SLEEP as u64, 100 * n, n));
        filled
            .call(REAP, &[ENTRIES, 0])
            .expect(ENTRIES as i32, 1)
            .store_at(RING + ring::at::REAPED as u64, (round + 1) * ENTRIES)
    });
    let program = rounds.call(OFF, &[42]);
    for (seed, workers) in (1..9).zip([1, 3, 8].into_iter().cycle()) {
        let model = boot(seed, &program, workers, ENTRIES);
        assert_eq!(model.run(), Outcome::Off(42), "seed {seed}");
    }
}

#[test]
fn who_waits_learns_that_the_queue_is_closed() {
    let program = submit(Program::new(), 0, FOREVER as u64, 0, 1).call(CLOSE, &[]).call(REAP, &[1, 0]).expect(0, 1);
    let program = program.call(OFF, &[42]);
    for seed in SEEDS {
        assert_eq!(boot(seed, &program, 2, 8).run(), Outcome::Off(42), "seed {seed}");
    }
}

/// The program submits, waits and goes on: it is found in time each time, so that it need not ring.
#[test]
fn a_watched_queue_is_served_unasked() {
    let rounds = (0..40).fold(Program::new(), |program, n| {
        let submitted = submit(submit(program, 2 * n, VALUE as u64, n, n), 2 * n + 1, SLEEP as u64, 1000, n);
        submitted.call(REAP, &[2, 0]).expect(2, 1).store_at(RING + ring::at::REAPED as u64, 2 * n + 2)
    });
    let program = rounds.call(OFF, &[42]);
    for (seed, workers) in SEEDS.take(8).zip([1, 2, 4].into_iter().cycle()) {
        let (model, gate) = boot_with(seed, &program, workers, ENTRIES, true);
        assert_eq!((model.run(), gate.times.load(Ordering::Relaxed)), (Outcome::Off(42), 0), "seed {seed}");
    }
}

/// Nothing is looked for without end, neither where nothing comes nor where what has come cannot be taken.
#[test]
fn nobody_looks_for_ever() {
    let nothing = submit(Program::new(), 0, FOREVER as u64, 0, 1).call(REAP, &[1, 0]).call(OFF, &[1]);
    let full =
        (0..4).fold(Program::new(), |program, n| submit(program, n, VALUE as u64, n, n)).call(REAP, &[2, 0]).call(OFF, &[1]);
    for seed in SEEDS.take(8) {
        for (program, completions) in [(&nothing, 8), (&full, 1)] {
            let (model, gate) = boot_with(seed, program, 2, completions, true);
            assert_eq!((model.run(), gate.times.load(Ordering::Relaxed)), (Outcome::Idle, 1), "seed {seed}");
        }
    }
}
