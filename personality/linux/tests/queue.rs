//! Submissions on the model machine: calls that a thread leaves in a ring of its memory, made beside its own in orders of events that seeds choose.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use janua_abi::linux::Errno;
use janua_kernel::Queue;
use janua_personality_linux::{Kernel, Linux};
use janua_platform_model::program::{DATA, Program, Reg, tree};
use janua_platform_model::ring::{self, CANCEL, Ring, link};
use janua_platform_model::{Model, Outcome, Settings};
use janua_port::gate::{Completion, QueueGate, Submission};
use janua_rt::executor::Turn;

mod common;
use common::{random, start_from};

/// Numbers of x86-64's calls.
mod nr {
    pub const READ: u64 = 0;
    pub const WRITE: u64 = 1;
    pub const RT_SIGACTION: u64 = 13;
    pub const RT_SIGPROCMASK: u64 = 14;
    pub const RT_SIGRETURN: u64 = 15;
    pub const PIPE: u64 = 22;
    pub const NANOSLEEP: u64 = 35;
    pub const GETPID: u64 = 39;
    pub const CLONE: u64 = 56;
    pub const FORK: u64 = 57;
    pub const EXECVE: u64 = 59;
    pub const EXIT: u64 = 60;
    pub const WAIT4: u64 = 61;
    pub const KILL: u64 = 62;
    pub const CHDIR: u64 = 80;
    pub const SETUID: u64 = 105;
    pub const EXIT_GROUP: u64 = 231;
    pub const PPOLL: u64 = 271;
    pub const SET_ROBUST_LIST: u64 = 273;
}

/// The first program's number, and that of its thread.
const FIRST: u32 = 2;

/// Where programs keep what calls read or write, and their rings.
const TIME: u64 = DATA + 16;
const LONG: u64 = DATA + 48;
const ACTION: u64 = DATA + 64;
const PIPE: u64 = DATA + 128;
const BYTE: u64 = DATA + 512;
const WORD: u64 = DATA + 520;
const SEEN: u64 = DATA + 1024;
const STATUS: u64 = DATA + 1032;
const STACK: u64 = DATA + 0x8000;
const RING: u64 = DATA + 0x1_0000;
/// Entries of the submissions' ring.
const ENTRIES: u64 = 8;

/// Ends of the pipe that programs make first.
const READER: u64 = 3;
const WRITER: u64 = 4;

const SIGUSR1: u64 = 10;
const SA_RESTORER: u64 = 0x0400_0000;

/// Rings that note what has been posted, and that nothing is taken while a completion waits for room.
struct Noting {
    ring: Arc<Ring>,
    log: Mutex<Vec<(u64, isize)>>,
    full: Mutex<bool>,
    refused: Mutex<u32>,
}

impl QueueGate for Noting {
    fn take(&self) -> Option<Submission> {
        assert!(!*self.full.lock().unwrap(), "a submission is taken though there is no room for its end");
        self.ring.take()
    }
    fn complete(&self, completion: Completion) -> bool {
        let posted = self.ring.complete(completion);
        *self.full.lock().unwrap() = !posted;
        match posted {
            true => self.log.lock().unwrap().push((completion.tag, completion.result)),
            false => *self.refused.lock().unwrap() += 1,
        }
        posted
    }
    fn unreaped(&self) -> usize {
        self.ring.unreaped()
    }
}

/// A model whose first thread has a queue.
struct Queued {
    model: &'static Model,
    gate: Arc<Noting>,
    queue: Arc<Queue<Linux>>,
}

impl Queued {
    fn boot(seed: u64, programs: &[(&str, Program)], workers: usize, completions: u64) -> Queued {
        let model = Model::new(Settings { seed, ..Settings::default() });
        let files: Vec<_> = programs.iter().map(|(name, program)| (*name, program.clone().executable())).collect();
        let kernel = start_from(model, tree(&files), files[0].0).expect("the kernel starts");
        kernel.modules.start_stepped(model);
        let seat = kernel.thread(FIRST).expect("the first thread");
        let ring = Ring::new(seat.shared_context().expect("it is there"), RING as usize, ENTRIES, completions);
        let gate = Arc::new(Noting { ring, log: Mutex::default(), full: Mutex::default(), refused: Mutex::default() });
        let queue = seat.open_queue(gate.clone(), workers).expect("a queue");
        Queued::work(model, &kernel, &gate.ring, &queue);
        Queued { model, gate, queue }
    }

    /// The kernel's own thread, which looks into the rings.
    fn work(model: &'static Model, kernel: &Arc<Kernel>, ring: &Arc<Ring>, queue: &Arc<Queue<Linux>>) {
        let (watched, modules) = (ring.clone(), kernel.clone());
        let (ring, queue, kernel) = (ring.clone(), Arc::downgrade(queue), kernel.clone());
        let step = move || {
            if ring.has_changed() {
                ring.look();
                queue.upgrade().inspect(|queue| queue.ring());
            }
            match kernel.modules.step() {
                Turn::Ran => Some(0),
                Turn::Idle(due) => due,
            }
        };
        model.work(move || modules.modules.is_due() || watched.has_changed(), step);
    }

    fn ends_with(&self, code: u8, seed: u64) {
        assert_eq!(self.model.run(), Outcome::Off(code), "seed {seed}; posted: {:?}", self.log());
    }

    fn log(&self) -> Vec<(u64, isize)> {
        self.gate.log.lock().unwrap().clone()
    }

    fn sorted(&self) -> Vec<(u64, isize)> {
        let mut log = self.log();
        log.sort_unstable();
        log
    }
}

/// Orders of events: others every day.
fn seeds() -> impl Iterator<Item = u64> {
    const COUNT: u64 = 64;
    let first = random::given().unwrap_or(0) * COUNT;
    (first..first + COUNT).map(|seed| seed + 1)
}

fn err(errno: Errno) -> isize {
    errno.as_result()
}

trait More {
    /// A program with a pipe.
    fn begin() -> Self;
    fn make(self, number: u64, words: &[u64]) -> Self;
    /// Leaves submission n in the ring.
    fn submit(self, n: u64, number: u64, words: &[u64], tag: u64) -> Self;
    /// Goes on when so many completions have been posted.
    fn posted(self, count: i32) -> Self;
    fn reaped(self, count: u64) -> Self;
    fn sleep(self, nanos: u64) -> Self;
    fn exit(self, code: u64) -> Self;
}

impl More for Program {
    fn begin() -> Program {
        Program::new().make(nr::PIPE, &[PIPE]).expect(0, 90)
    }
    fn make(self, number: u64, words: &[u64]) -> Program {
        self.call(number as usize, words)
    }
    fn submit(self, n: u64, number: u64, words: &[u64], tag: u64) -> Program {
        let at = RING + Ring::submission(ENTRIES, n) as u64;
        let entry = [number].into_iter().chain((0..6).map(|word| words.get(word).copied().unwrap_or(0))).chain([tag]);
        let filled = entry.zip((at..).step_by(8)).fold(self, |program, (word, at)| program.store_at(at, word));
        filled.store_at(RING + ring::at::SUBMITTED as u64, n + 1)
    }
    fn posted(self, count: i32) -> Program {
        let again = format!("until {count} posted");
        self.label(&again).load_at(RING + ring::at::POSTED as u64).jump_unless(count, &again)
    }
    fn reaped(self, count: u64) -> Program {
        self.store_at(RING + ring::at::REAPED as u64, count)
    }
    fn sleep(self, nanos: u64) -> Program {
        self.store_at(TIME, 0).store_at(TIME + 8, nanos).make(nr::NANOSLEEP, &[TIME, 0])
    }
    fn exit(self, code: u64) -> Program {
        self.make(nr::EXIT_GROUP, &[code])
    }
}

const READ: [u64; 3] = [READER, BYTE, 1];
const WRITE: [u64; 3] = [WRITER, WORD, 1];

#[test]
fn several_calls_of_a_thread_are_under_way_and_end_in_any_order() {
    let program = |nanos| {
        Program::begin()
            .store_at(WORD, 7)
            .store_at(TIME + 8, nanos)
            .submit(0, nr::READ, &READ, 1)
            .submit(1, nr::NANOSLEEP, &[TIME, 0], 2)
            .submit(2, nr::GETPID, &[], 3)
            .make(nr::GETPID, &[])
            .expect(FIRST as i32, 1)
            .posted(2)
            .load_at(BYTE)
            .expect(0, 2)
            .submit(3, nr::WRITE, &WRITE, 4)
            .posted(4)
            .load_at(BYTE)
            .expect(7, 3)
            .exit(42)
    };
    let mut orders = BTreeSet::new();
    for seed in seeds() {
        let queued = Queued::boot(seed, &[("queue", program(500 * (1 + seed % 16)))], 4, 8);
        queued.ends_with(42, seed);
        assert_eq!(queued.sorted(), [(1, 1), (2, 0), (3, FIRST as isize), (4, 1)], "seed {seed}");
        orders.insert(queued.log().iter().map(|(tag, _)| *tag).collect::<Vec<_>>());
    }
    assert!(orders.iter().all(|order| order[..2] != [1, 4] && order[2..].contains(&1)), "{orders:?}");
    assert!(orders.len() > 1, "every seed is the same order: {orders:?}");
}

#[test]
fn a_signal_of_the_thread_does_not_interrupt_them() {
    let handled = Program::begin()
        .set(Reg::Rbx, ACTION)
        .set_label(Reg::Rcx, "handler")
        .store(Reg::Rbx, Reg::Rcx)
        .store_at(ACTION + 8, SA_RESTORER)
        .set(Reg::Rbx, ACTION + 16)
        .set_label(Reg::Rcx, "restorer")
        .store(Reg::Rbx, Reg::Rcx)
        .make(nr::RT_SIGACTION, &[SIGUSR1, ACTION, 0, 8])
        .expect(0, 91);
    let program = handled
        .submit(0, nr::READ, &READ, 1)
        .sleep(2000)
        .make(nr::KILL, &[u64::from(FIRST), SIGUSR1])
        .load_at(SEEN)
        .expect(1, 1)
        .sleep(2000)
        .make(nr::WRITE, &WRITE)
        .posted(1)
        .exit(42)
        .label("handler")
        .store_at(SEEN, 1)
        .ret()
        .label("restorer")
        .make(nr::RT_SIGRETURN, &[]);
    for seed in seeds() {
        let queued = Queued::boot(seed, &[("queue", program.clone())], 2, 8);
        queued.ends_with(42, seed);
        assert_eq!(queued.log(), [(1, 1)], "seed {seed}");
    }
}

/// With one worker the second call does not begin before the first has ended.
#[test]
fn what_waits_and_what_has_not_begun_can_be_cancelled() {
    let program = Program::begin()
        .store_at(LONG, 1_000_000)
        .submit(0, nr::READ, &READ, 1)
        .submit(1, nr::NANOSLEEP, &[LONG, 0], 2)
        .submit(2, CANCEL, &[2], 3)
        .submit(3, CANCEL, &[99], 4)
        .posted(3)
        .submit(4, CANCEL, &[1], 5)
        .submit(5, nr::GETPID, &[], 6)
        .posted(6)
        .make(nr::WRITE, &WRITE)
        .make(nr::READ, &READ)
        .expect(1, 1)
        .exit(42);
    for (seed, workers) in seeds().zip([1, 2, 8].into_iter().cycle()) {
        let queued = Queued::boot(seed, &[("queue", program.clone())], workers, 8);
        queued.ends_with(42, seed);
        let cancelled = err(Errno::ECANCELED);
        let ends = [(1, cancelled), (2, cancelled), (3, 0), (4, err(Errno::ENOENT)), (5, 0), (6, FIRST as isize)];
        assert_eq!(queued.sorted(), ends, "seed {seed}");
    }
}

#[test]
fn nothing_is_taken_while_there_is_no_room_for_completions() {
    let submitted = (0..6).fold(Program::begin(), |program, n| program.submit(n, nr::GETPID, &[], n));
    let reaped = (1..6).fold(submitted.posted(1).sleep(5000), |program, n| program.reaped(n).posted(n as i32 + 1));
    let program = reaped.exit(42);
    for seed in seeds() {
        let queued = Queued::boot(seed, &[("queue", program.clone())], 2, 1);
        queued.ends_with(42, seed);
        assert_eq!(queued.sorted(), (0..6).map(|tag| (tag, FIRST as isize)).collect::<Vec<_>>(), "seed {seed}");
        assert_ne!(*queued.gate.refused.lock().unwrap(), 0, "the ring was never full");
    }
}

#[test]
fn calls_that_are_the_threads_own_are_refused() {
    let own = [nr::FORK, nr::EXIT_GROUP, nr::SETUID, nr::RT_SIGPROCMASK, nr::PPOLL, nr::SET_ROBUST_LIST, nr::EXECVE];
    let numbers = own.into_iter().chain([5000]);
    let submitted =
        numbers.enumerate().fold(Program::begin(), |program, (n, number)| program.submit(n as u64, number, &[], number));
    let program = submitted.posted(own.len() as i32 + 1).exit(42);
    for seed in seeds() {
        let queued = Queued::boot(seed, &[("queue", program.clone())], 4, 8);
        queued.ends_with(42, seed);
        let mut ends: Vec<_> = own.iter().map(|number| (*number, err(Errno::EXDEV))).collect();
        ends.push((5000, err(Errno::ENOSYS)));
        ends.sort_unstable();
        assert_eq!(queued.sorted(), ends, "seed {seed}");
    }
}

#[test]
fn they_have_the_threads_directory_and_files_of_their_beginning() {
    // "/tmp", and the name of a file that is only there.
    let program = Program::begin()
        .store_at(WORD, 0x706d_742f)
        .submit(0, nr::CHDIR, &[WORD], 1)
        .posted(1)
        .store_at(BYTE, 0x78)
        .make(85, &[BYTE, 0o600])
        .expect(5, 1)
        .submit(1, 4, &[BYTE, DATA + 0x4000], 2)
        .submit(2, 3, &[5], 3)
        .posted(3)
        .make(3, &[5])
        .expect(Errno::EBADF.as_result() as i32, 2)
        .exit(42);
    for seed in seeds() {
        let queued = Queued::boot(seed, &[("queue", program.clone())], 4, 8);
        queued.ends_with(42, seed);
        assert_eq!(queued.sorted(), [(1, 0), (2, 0), (3, 0)], "seed {seed}");
    }
}

const CLONE_THREAD: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000;

#[test]
fn a_threads_end_is_that_of_its_submissions() {
    let program = Program::begin()
        .store_at(LONG, 1_000_000)
        .submit(0, nr::READ, &READ, 1)
        .submit(1, nr::NANOSLEEP, &[LONG, 0], 2)
        .submit(2, nr::READ, &READ, 3)
        .make(nr::CLONE, &[CLONE_THREAD, STACK, 0, 0, 0])
        .jump_if(0, "other")
        .make(nr::EXIT, &[0])
        .label("other")
        .sleep(20_000)
        .make(nr::WRITE, &WRITE)
        .expect(1, 1)
        .make(nr::READ, &READ)
        .expect(1, 2)
        .sleep(20_000)
        .exit(42);
    for (seed, workers) in seeds().zip([1, 2, 8].into_iter().cycle()) {
        let queued = Queued::boot(seed, &[("queue", program.clone())], workers, 8);
        queued.ends_with(42, seed);
        assert_eq!(queued.log(), [], "seed {seed}");
        assert_eq!(Arc::strong_count(&queued.queue), 1, "seed {seed}: something still has the queue");
        queued.queue.ring();
    }
}

#[test]
fn the_end_of_the_process_is_too() {
    let program = Program::begin().submit(0, nr::READ, &READ, 1).submit(1, nr::READ, &READ, 2);
    let killed = program.clone().make(nr::KILL, &[u64::from(FIRST), 9]);
    for seed in seeds() {
        for (program, code) in [(program.clone().exit(42), 42), (killed.clone(), 137)] {
            let queued = Queued::boot(seed, &[("queue", program)], 2, 8);
            queued.ends_with(code, seed);
            assert_eq!(queued.log(), [], "seed {seed}");
        }
    }
}

#[test]
fn exec_ends_them_before_the_memory_goes() {
    // "/two"
    let one = Program::begin()
        .store_at(TIME + 8, 2000)
        .submit(0, nr::READ, &[READER, BYTE, 8], 1)
        .submit(1, nr::NANOSLEEP, &[TIME, 0], 2)
        .submit(2, nr::GETPID, &[], 3)
        .store_at(WORD, 0x6f77_742f)
        .make(nr::EXECVE, &[WORD, 0, 0])
        .exit(1);
    let two = Program::new()
        .sleep(20_000)
        .make(nr::WRITE, &WRITE)
        .expect(1, 2)
        .sleep(20_000)
        .load_at(BYTE)
        .expect(0, 3)
        .load_at(RING + ring::at::POSTED as u64)
        .expect(0, 4)
        .make(nr::READ, &READ)
        .expect(1, 5)
        .exit(42);
    for seed in seeds() {
        let queued = Queued::boot(seed, &[("one", one.clone()), ("two", two.clone())], 2, 8);
        queued.ends_with(42, seed);
        assert!(queued.log().iter().all(|(tag, _)| *tag != 1), "seed {seed}");
        assert_eq!(Arc::strong_count(&queued.queue), 1, "seed {seed}: something still has the queue");
    }
}

#[test]
fn a_failed_exec_leaves_them_alone() {
    let program = Program::begin()
        .submit(0, nr::READ, &READ, 1)
        .store_at(WORD, 0x6f77_742f)
        .make(nr::EXECVE, &[WORD, 0, 0])
        .expect(Errno::ENOENT.as_result() as i32, 1)
        .make(nr::WRITE, &WRITE)
        .posted(1)
        .exit(42);
    for seed in seeds() {
        let queued = Queued::boot(seed, &[("queue", program.clone())], 2, 8);
        queued.ends_with(42, seed);
        assert_eq!(queued.log(), [(1, 1)], "seed {seed}");
    }
}

#[test]
fn a_forked_child_has_none_of_them() {
    let program = Program::begin()
        .store_at(WORD, 7)
        .submit(0, nr::READ, &READ, 1)
        .make(nr::FORK, &[])
        .jump_if(0, "child")
        .posted(1)
        .load_at(BYTE)
        .expect(7, 1)
        .make(nr::WAIT4, &[u64::MAX, STATUS, 0, 0])
        .load_at(STATUS)
        .expect(5 << 8, 2)
        .exit(42)
        .label("child")
        .submit(1, nr::GETPID, &[], 2)
        .make(nr::WRITE, &WRITE)
        .sleep(5000)
        .load_at(BYTE)
        .expect(0, 3)
        .load_at(RING + ring::at::POSTED as u64)
        .expect(0, 4)
        .exit(5);
    for seed in seeds() {
        let queued = Queued::boot(seed, &[("queue", program.clone())], 2, 8);
        queued.ends_with(42, seed);
        assert_eq!(queued.log(), [(1, 1)], "seed {seed}");
    }
}

#[test]
fn forged_counts_harm_nobody_else() {
    let program = Program::begin()
        .store_at(RING + ring::at::SUBMITTED as u64, u64::MAX)
        .sleep(2000)
        .store_at(RING + ring::at::SUBMITTED as u64, ENTRIES + 1)
        .reaped(77)
        .sleep(2000)
        .submit(0, nr::GETPID, &[], 1)
        .sleep(2000)
        .reaped(0)
        .posted(1)
        .exit(42);
    for seed in seeds() {
        let queued = Queued::boot(seed, &[("queue", program.clone())], 2, 8);
        queued.ends_with(42, seed);
        assert_eq!(queued.log(), [(1, FIRST as isize)], "seed {seed}");
    }
}

/// The write is linked to a read that waits, so that the second read finds what it wrote: with any number of workers.
#[test]
fn a_linked_call_begins_when_the_one_before_has_ended() {
    let program = Program::begin()
        .store_at(WORD, 7)
        .submit(0, nr::READ | link::LINK, &READ, 1)
        .submit(1, nr::WRITE | link::LINK, &WRITE, 2)
        .submit(2, nr::READ, &[READER, SEEN, 1], 3)
        .submit(3, nr::GETPID, &[], 4)
        .posted(1)
        .sleep(2000)
        .load_at(RING + ring::at::POSTED as u64)
        .expect(1, 1)
        .store_at(WORD + 1, 8)
        .make(nr::WRITE, &[WRITER, WORD + 1, 1])
        .posted(4)
        .load_at(BYTE)
        .expect(8, 2)
        .load_at(SEEN)
        .expect(7, 3)
        .exit(42);
    for (seed, workers) in seeds().zip([2, 3, 8].into_iter().cycle()) {
        let queued = Queued::boot(seed, &[("queue", program.clone())], workers, 8);
        queued.ends_with(42, seed);
        assert_eq!(queued.log(), [(4, FIRST as isize), (1, 1), (2, 1), (3, 1)], "seed {seed}");
    }
}

/// Each chain's end is that of none beside it. A chain goes on across moments at which the queue is empty.
#[test]
fn a_failed_link_cancels_the_rest() {
    let short = [READER, BYTE, 8];
    let program = Program::begin()
        .store_at(WORD, 7)
        .submit(0, nr::READ | link::LINK, &[99, BYTE, 1], 1)
        .submit(1, nr::WRITE | link::HARD, &WRITE, 2)
        .submit(2, nr::WRITE, &WRITE, 3)
        .posted(3)
        .submit(3, 5000 | link::HARD, &[], 4)
        .posted(4)
        .sleep(2000)
        .submit(4, nr::WRITE, &WRITE, 5)
        .posted(5)
        .make(nr::WRITE, &WRITE)
        .expect(1, 1)
        .submit(5, nr::READ | link::WHOLE, &short, 6)
        .submit(6, nr::WRITE, &WRITE, 7)
        .submit(7, nr::READ | link::HARD, &[99, BYTE, 1], 8)
        .posted(8)
        .submit(8, nr::WRITE | link::WHOLE, &WRITE, 9)
        .submit(9, nr::GETPID, &[], 10)
        .posted(10)
        .make(nr::READ, &short)
        .expect(1, 2)
        .exit(42);
    let (cancelled, bad) = (err(Errno::ECANCELED), err(Errno::EBADF));
    for (seed, workers) in seeds().zip([1, 2, 8].into_iter().cycle()) {
        let queued = Queued::boot(seed, &[("queue", program.clone())], workers, 16);
        queued.ends_with(42, seed);
        let pid = FIRST as isize;
        let ends = [(1, bad), (2, cancelled), (3, cancelled), (4, err(Errno::ENOSYS)), (5, cancelled)];
        let later = [(6, 1), (7, cancelled), (8, bad), (9, 1), (10, pid)];
        assert_eq!(queued.sorted(), [ends, later].concat(), "seed {seed}");
        assert_eq!(queued.log()[..5], ends, "seed {seed}");
    }
}

/// A call that was never made breaks its chain however hard the link is; one that is interrupted has a result.
#[test]
fn a_cancelled_link_cancels_the_rest() {
    let program = Program::begin()
        .store_at(LONG, 1_000_000)
        .submit(0, nr::NANOSLEEP | link::LINK, &[LONG, 0], 1)
        .submit(1, nr::GETPID | link::HARD, &[], 2)
        .submit(2, nr::GETPID | link::LINK, &[], 3)
        .submit(3, nr::GETPID, &[], 4)
        .submit(4, CANCEL, &[2], 5)
        .posted(4)
        .sleep(2000)
        .submit(5, CANCEL, &[1], 6)
        .posted(6)
        .submit(6, nr::NANOSLEEP | link::HARD, &[LONG, 0], 7)
        .submit(7, nr::GETPID, &[], 8)
        .sleep(2000)
        .submit(8, CANCEL, &[7], 9)
        .posted(9)
        .exit(42);
    let cancelled = err(Errno::ECANCELED);
    for (seed, workers) in seeds().zip([1, 2, 8].into_iter().cycle()) {
        let queued = Queued::boot(seed, &[("queue", program.clone())], workers, 16);
        queued.ends_with(42, seed);
        assert_eq!(queued.log()[..3], [(2, cancelled), (3, cancelled), (4, cancelled)], "seed {seed}");
        let ends = [cancelled, cancelled, cancelled, cancelled, 0, 0, cancelled, FIRST as isize, 0];
        assert_eq!(queued.sorted(), (1..).zip(ends).collect::<Vec<_>>(), "seed {seed}");
    }
}

/// Longer than what may wait for a worker.
#[test]
fn a_chain_may_be_of_any_length() {
    let linked = (0..200).fold(Program::begin(), |program, n| {
        let number = if n == 199 { nr::GETPID } else { nr::GETPID | link::LINK };
        let program = program.submit(n, number, &[], n);
        if n % ENTRIES == ENTRIES - 1 { program.posted(n as i32 + 1).reaped(n + 1) } else { program }
    });
    let held = (1..90).fold(Program::begin().submit(0, nr::READ | link::LINK, &READ, 0), |program, n| {
        let program = match n {
            // One is made and 64 wait: the rest of the ring is not taken before that one has ended.
            72 => program.sleep(5000).make(nr::WRITE, &WRITE).posted(72),
            _ if n % ENTRIES != 0 => program,
            _ if n < 72 => program.sleep(5000),
            _ => program.posted(n as i32),
        };
        program.submit(n, if n == 89 { nr::GETPID } else { nr::GETPID | link::LINK }, &[], n)
    });
    let held = held.posted(90).exit(42);
    for seed in seeds().take(8) {
        for (program, length) in [(linked.clone().exit(42), 200), (held.clone(), 90)] {
            let queued = Queued::boot(seed, &[("queue", program)], 2, 128);
            queued.ends_with(42, seed);
            let tags: Vec<_> = queued.log().iter().map(|(tag, _)| *tag).collect();
            assert_eq!(tags, (0..length).collect::<Vec<_>>(), "seed {seed}");
        }
    }
}
