//! A thread that waits for the ends of what it has submitted: a queue's ring, its completions and the waiter's wake-up in orders of events that
//! seeds choose. Nobody spins, so that a wake-up that is lost is a machine where nobody can run.

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

/// A machine with this program, and its queue with so many workers and so much room for completions.
fn boot(seed: u64, program: &Program, workers: usize, completions: u64) -> &'static Model {
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
    let queue = seat.open_queue(ring.clone(), workers).expect("a queue");
    assert!(kernel.queue.set(queue.clone()).is_ok());
    let (modules, watched) = (kernel.clone(), ring.clone());
    let step = move || {
        if ring.has_changed() {
            ring.look();
            queue.ring();
        }
        match kernel.modules.step() {
            Turn::Ran => Some(0),
            Turn::Idle(due) => due,
        }
    };
    model.work(move || modules.modules.is_due() || watched.has_changed(), step);
    model
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
