//! The kernel on the model machine: enter, wait, wake, kick, stop and leave in orders of events that seeds choose.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use janua_abi::linux::Errno;
use janua_abi::linux::uring::setup;
use janua_platform_model::program::{DATA, Program, Reg, tree};
use janua_platform_model::{Model, Outcome, Settings};

mod common;
use common::{boot, random};

/// Numbers of x86-64's calls.
mod nr {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const LSEEK: usize = 8;
    pub const MMAP: usize = 9;
    pub const RT_SIGACTION: usize = 13;
    pub const RT_SIGRETURN: usize = 15;
    pub const PIPE: usize = 22;
    pub const SCHED_YIELD: usize = 24;
    pub const NANOSLEEP: usize = 35;
    pub const GETPID: usize = 39;
    pub const CLONE: usize = 56;
    pub const FORK: usize = 57;
    pub const VFORK: usize = 58;
    pub const EXECVE: usize = 59;
    pub const EXIT: usize = 60;
    pub const WAIT4: usize = 61;
    pub const KILL: usize = 62;
    pub const FSYNC: usize = 74;
    pub const FDATASYNC: usize = 75;
    pub const FTRUNCATE: usize = 77;
    pub const CREAT: usize = 85;
    pub const GETPPID: usize = 110;
    pub const FUTEX: usize = 202;
    pub const EXIT_GROUP: usize = 231;
    pub const FALLOCATE: usize = 285;
    pub const SCHED_SETATTR: usize = 314;
    pub const SCHED_GETATTR: usize = 315;
    pub const IO_URING_SETUP: usize = 425;
}

const SIGKILL: u64 = janua_abi::linux::signal::SIGKILL as u64;
const SIGUSR1: u64 = janua_abi::linux::signal::SIGUSR1 as u64;
const SIGCONT: u64 = janua_abi::linux::signal::SIGCONT as u64;
const SIGSTOP: u64 = janua_abi::linux::signal::SIGSTOP as u64;
const WUNTRACED: u64 = 2;
const WCONTINUED: u64 = 8;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_RESTART: u64 = 0x1000_0000;

/// Orders of events that each test is tried in: others every day.
fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let first = random::given().unwrap_or(0) * COUNT;
    (first..first + count).map(|seed| seed + 1)
}

/// How many for a test that is over soon.
const COUNT: u64 = 64;

/// Runs the first of these programs to its end in many orders of events: it ends with this code.
fn ends_with(code: u8, programs: &[(&str, Program)]) {
    for seed in seeds(COUNT) {
        let model = boot(Settings { seed, ..Settings::default() }, programs);
        let outcome = model.run();
        assert_eq!(outcome, Outcome::Off(code), "seed {seed}; written: {}", model.written());
    }
}

fn program() -> Program {
    Program::new()
}

trait More {
    fn exit(self, code: u64) -> Self;
    fn sleep(self, nanos: u64) -> Self;
    /// Waits for a child, which ends or stops with this status.
    fn wait(self, options: u64, status: i32, wrong: u64) -> Self;
    fn handle(self, signal: u64, handler: &str, flags: u64) -> Self;
}

/// Where programs keep what calls read or write.
const STATUS: u64 = DATA;
const TIME: u64 = DATA + 16;
const ACTION: u64 = DATA + 64;
const PIPE: u64 = DATA + 128;
const WORD: u64 = DATA + 256;
const BYTE: u64 = DATA + 512;
const SEEN: u64 = DATA + 1024;
const ATTR: u64 = DATA + 2048;

impl More for Program {
    fn exit(self, code: u64) -> Program {
        self.call(nr::EXIT_GROUP, &[code])
    }
    fn sleep(self, nanos: u64) -> Program {
        self.store_at(TIME, 0).store_at(TIME + 8, nanos).call(nr::NANOSLEEP, &[TIME, 0])
    }
    fn wait(self, options: u64, status: i32, wrong: u64) -> Program {
        self.store_at(STATUS, 0).call(nr::WAIT4, &[u64::MAX, STATUS, options, 0]).load_at(STATUS).expect(status, wrong)
    }
    fn handle(self, signal: u64, handler: &str, flags: u64) -> Program {
        // struct sigaction as the kernel has it: handler, flags, restorer, mask.
        self.set(Reg::Rbx, ACTION)
            .set_label(Reg::Rcx, handler)
            .store(Reg::Rbx, Reg::Rcx)
            .store_at(ACTION + 8, flags | SA_RESTORER)
            .set(Reg::Rbx, ACTION + 16)
            .set_label(Reg::Rcx, "restorer")
            .store(Reg::Rbx, Reg::Rcx)
            .store_at(ACTION + 24, 0)
            .call(nr::RT_SIGACTION, &[signal, ACTION, 0, 8])
            .expect(0, 90)
    }
}

#[test]
fn a_program_writes_and_ends() {
    // "hi\n"
    let hello = program().store_at(BYTE, 0x0a_6968).call(nr::WRITE, &[1, BYTE, 3]).expect(3, 1).exit(42);
    let model = boot(Settings::default(), &[("hello", hello)]);
    assert_eq!(model.run(), Outcome::Off(42));
    assert_eq!(model.written(), "hi\n");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let child = program().call(nr::FORK, &[]).jump_if(0, "child").store_at(BYTE, 0x70).jump("write");
    let both = child.label("child").store_at(BYTE, 0x63).label("write");
    let many = (0..20).fold(both, |program, _| program.call(nr::WRITE, &[1, BYTE, 1]));
    let whole = many.call(nr::WAIT4, &[u64::MAX, 0, 0, 0]).exit(0);
    let run = |seed| {
        let model = boot(Settings { seed, ..Settings::default() }, &[("many", whole.clone())]);
        assert_eq!(model.run(), Outcome::Off(0));
        model.written()
    };
    let runs: Vec<String> = (1..20).map(run).collect();
    assert_eq!(runs, (1..20).map(run).collect::<Vec<_>>());
    assert!(runs.iter().any(|other| *other != runs[0]), "every seed is the same order");
}

#[test]
fn a_child_is_waited_for() {
    let parent = program()
        .call(nr::FORK, &[])
        .jump_if(0, "child")
        .wait(0, 7 << 8, 1)
        .call(nr::WAIT4, &[u64::MAX, STATUS, 0, 0])
        .expect(-10, 2)
        .exit(0)
        .label("child")
        .call(nr::GETPPID, &[])
        .expect(2, 3)
        .sleep(5_000)
        .exit(7);
    ends_with(0, &[("parent", parent)]);
}

/// Asks for so many milliseconds of each 100 (SCHED_DEADLINE), with these SCHED_FLAG_*; 0: for none any more.
fn ask_for(program: Program, milliseconds: u64, flags: u64) -> Program {
    const SIZE: u64 = 48;
    let (policy, period) = if milliseconds == 0 { (0, 0) } else { (6, 100_000_000) };
    let words = [SIZE | policy << 32, flags, 0, milliseconds * 1_000_000, period, period];
    let filled = (0..).zip(words).fold(program, |program, (at, word)| program.store_at(ATTR + 8 * at, word));
    filled.call(nr::SCHED_SETATTR, &[0, ATTR, 0])
}

#[test]
fn the_machine_promises_no_more_time_than_it_has() {
    const BUSY: i32 = -16;
    const RESET_ON_FORK: u64 = 1;
    let parent = ask_for(program(), 91, 0).expect(BUSY, 1);
    let parent = ask_for(parent, 60, 0).expect(0, 2).store_at(ATTR + 24, 0).call(nr::SCHED_GETATTR, &[0, ATTR, 48, 0]);
    let parent = parent.expect(0, 3).load_at(ATTR + 24).expect(60_000_000, 4).call(nr::FORK, &[]).expect(-11, 5);
    // What it has counts no longer when it asks for something else; what is refused leaves it.
    let parent = ask_for(parent, 91, RESET_ON_FORK).expect(BUSY, 6);
    let parent = ask_for(parent, 70, RESET_ON_FORK).expect(0, 7).call(nr::FORK, &[]).jump_if(0, "child");
    let parent = parent.wait(0, 0, 8);
    let parent = ask_for(parent, 0, 0).expect(0, 9).call(nr::FORK, &[]).jump_if(0, "greedy");
    // The child has gone with what it was promised, once its thread has ended.
    let parent = ask_for(parent.wait(0, 0, 10).sleep(50_000), 85, 0).expect(0, 11).exit(0);
    let child = ask_for(parent.label("child"), 30, 0).expect(BUSY, 12);
    let child = ask_for(ask_for(child, 15, 0).expect(0, 13), 20, 0).expect(0, 14).exit(0);
    let whole = ask_for(child.label("greedy"), 85, 0).expect(0, 15).exit(0);
    ends_with(0, &[("parent", whole)]);
}

#[test]
fn memory_after_a_fork_is_each_ones_own() {
    let parent = program()
        .store_at(WORD, 1)
        .call(nr::FORK, &[])
        .jump_if(0, "child")
        .wait(0, 0, 1)
        .load_at(WORD)
        .expect(1, 2)
        .exit(0)
        .label("child")
        .load_at(WORD)
        .expect(1, 3)
        .store_at(WORD, 2)
        .load_at(WORD)
        .expect(2, 4)
        .exit(0);
    ends_with(0, &[("parent", parent)]);
}

#[test]
fn a_fork_copies_memory_while_others_have_the_tree_of_processes() {
    let parent = program().call(nr::FORK, &[]).jump_if(0, "child").wait(0, 0, 1).exit(0).label("child").exit(0);
    let model = Model::new(Settings::default());
    let kernel = common::start_from(model, tree(&[("parent", parent.executable())]), "parent").unwrap();
    let copies = Arc::new(AtomicUsize::new(0));
    let counted = copies.clone();
    model.on_copy(move || {
        assert!(kernel.tree.try_lock().is_some());
        counted.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(model.run(), Outcome::Off(0));
    assert_eq!(copies.load(Ordering::Relaxed), 1);
}

#[test]
fn a_reader_of_a_pipe_waits_for_the_writer() {
    let parent = program()
        .call(nr::PIPE, &[PIPE])
        .expect(0, 1)
        .call(nr::FORK, &[])
        .jump_if(0, "child")
        .call(nr::CLOSE, &[4])
        .call(nr::READ, &[3, BYTE, 8])
        .expect(2, 2)
        .call(nr::READ, &[3, BYTE, 8])
        .expect(0, 3)
        .wait(0, 0, 4)
        .exit(0)
        .label("child")
        .sleep(3_000)
        .call(nr::WRITE, &[4, BYTE, 2])
        .expect(2, 5)
        .exit(0);
    ends_with(0, &[("pipe", parent)]);
}

#[test]
fn exec_replaces_the_program() {
    // "/second", NUL.
    let name = u64::from_le_bytes(*b"/second\0");
    let exec = |program: Program| {
        program.store_at(BYTE, name).store_at(WORD, BYTE).store_at(WORD + 8, 0).call(nr::EXECVE, &[BYTE, WORD, 0])
    };
    let parent = program().call(nr::VFORK, &[]).jump_if(0, "child").wait(0, 9 << 8, 1).exit(0).label("child");
    let first = exec(parent).exit(2);
    let second = program().load_at(WORD).expect(0, 3).call(nr::GETPID, &[]).expect(3, 4).exit(9);
    ends_with(0, &[("first", first), ("second", second.clone())]);
    let missing = exec(program()).expect(-2, 1).exit(0);
    ends_with(0, &[("alone", missing)]);
}

const FUTEX_WAIT: u64 = 0;
const FUTEX_WAKE: u64 = 1;
/// CLONE_VM, _FS, _FILES, _SIGHAND, _THREAD, _SYSVSEM.
const THREAD: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x4_0000;

#[test]
fn no_wake_up_of_a_futex_is_lost() {
    // Two threads pass a word to and fro, each waiting for its own value.
    let side = |program: Program, name: &str, mine: u64, others: u64, rounds: u64| {
        let (look, wait, done) = (format!("{name} looks"), format!("{name} waits"), format!("{name} is done"));
        program
            .set(Reg::R12, rounds)
            .label(&look)
            .load_at(WORD)
            .jump_if(mine as i32, &format!("{name} has it"))
            .label(&wait)
            .call(nr::FUTEX, &[WORD, FUTEX_WAIT, others, 0])
            .jump(&look)
            .label(&format!("{name} has it"))
            .store_at(WORD, others)
            .call(nr::FUTEX, &[WORD, FUTEX_WAKE, 1])
            .copy(Reg::Rax, Reg::R12)
            .add_to_rax(-1)
            .copy(Reg::R12, Reg::Rax)
            .jump_unless(0, &look)
            .label(&done)
    };
    let start = program().store_at(WORD, 1).call(nr::CLONE, &[THREAD, DATA + (1 << 19)]).jump_if(0, "other");
    let first = side(start, "first", 1, 2, 20)
        .label("end")
        .load_at(SEEN)
        .jump_if(1, "all")
        .call(nr::SCHED_YIELD, &[])
        .jump("end")
        .label("all")
        .exit(0)
        .label("other");
    let both = side(first, "second", 2, 1, 20).store_at(SEEN, 1).call(nr::EXIT, &[0]);
    ends_with(0, &[("futex", both)]);
}

#[test]
fn a_wait_for_a_futex_ends_in_time() {
    const ETIMEDOUT: i32 = -110;
    let wait = program()
        .store_at(TIME, 0)
        .store_at(TIME + 8, 10_000)
        .call(nr::FUTEX, &[WORD, FUTEX_WAIT, 0, TIME])
        .expect(ETIMEDOUT, 1)
        .call(nr::FUTEX, &[WORD, FUTEX_WAIT, 1, TIME])
        .expect(-11, 2)
        .exit(0);
    ends_with(0, &[("wait", wait)]);
}

/// The end of programs with handlers.
fn with_handler(program: Program) -> Program {
    program
        .label("handler")
        .copy(Reg::R13, Reg::Rdi)
        .set(Reg::Rbx, SEEN)
        .store(Reg::Rbx, Reg::R13)
        .ret()
        .label("restorer")
        .call_again(nr::RT_SIGRETURN)
}

#[test]
fn a_handler_runs_and_returns() {
    let own = program()
        .handle(SIGUSR1, "handler", 0)
        .set(Reg::R14, 77)
        .call(nr::GETPID, &[])
        .copy(Reg::Rdi, Reg::Rax)
        .set(Reg::Rsi, SIGUSR1)
        .call_again(nr::KILL)
        .expect(0, 1)
        .load_at(SEEN)
        .expect(SIGUSR1 as i32, 2)
        .copy(Reg::Rax, Reg::R14)
        .expect(77, 3)
        .exit(0);
    ends_with(0, &[("own", with_handler(own))]);
}

/// A program that waits in read(2) for its child, which sends it a signal first and writes later.
fn interrupted(flags: u64, after: impl FnOnce(Program) -> Program) -> Program {
    let parent = program()
        .handle(SIGUSR1, "handler", flags)
        .call(nr::PIPE, &[PIPE])
        .call(nr::FORK, &[])
        .jump_if(0, "child")
        .call(nr::READ, &[3, BYTE, 8]);
    let child = after(parent)
        .load_at(SEEN)
        .expect(SIGUSR1 as i32, 8)
        .exit(0)
        .label("child")
        // Long enough for the parent to wait.
        .sleep(1_000_000)
        .call(nr::GETPPID, &[])
        .copy(Reg::Rdi, Reg::Rax)
        .set(Reg::Rsi, SIGUSR1)
        .call_again(nr::KILL)
        .sleep(1_000_000)
        .call(nr::WRITE, &[4, BYTE, 2])
        .exit(0);
    with_handler(child)
}

#[test]
fn a_signal_cuts_a_call_short_or_it_starts_again() {
    ends_with(0, &[("eintr", interrupted(0, |program| program.expect(-4, 1)))]);
    ends_with(0, &[("restart", interrupted(SA_RESTART, |program| program.expect(2, 1)))]);
}

#[test]
fn a_killed_sleeper_ends() {
    let parent = program()
        .call(nr::PIPE, &[PIPE])
        .call(nr::FORK, &[])
        .jump_if(0, "child")
        .copy(Reg::R12, Reg::Rax)
        .sleep(2_000)
        .copy(Reg::Rdi, Reg::R12)
        .set(Reg::Rsi, SIGKILL)
        .call_again(nr::KILL)
        .expect(0, 1)
        .wait(0, SIGKILL as i32, 2)
        .exit(0)
        .label("child")
        .call(nr::READ, &[3, BYTE, 1])
        .exit(9);
    ends_with(0, &[("killer", parent)]);
}

#[test]
fn a_stopped_child_goes_on_when_it_is_continued() {
    let send =
        |program: Program, signal| program.copy(Reg::Rdi, Reg::R12).set(Reg::Rsi, signal).call_again(nr::KILL).expect(0, 1);
    let parent = program().call(nr::FORK, &[]).jump_if(0, "child").copy(Reg::R12, Reg::Rax);
    let stopped = send(parent, SIGSTOP).wait(WUNTRACED, (SIGSTOP << 8 | 0x7f) as i32, 2);
    let continued = send(stopped, SIGCONT).wait(WCONTINUED, 0xffff, 3);
    let ended = send(continued, SIGUSR1)
        .wait(0, SIGUSR1 as i32, 4)
        .exit(0)
        .label("child")
        .sleep(3_000)
        .call(nr::SCHED_YIELD, &[])
        .jump("child");
    ends_with(0, &[("shell", ended)]);
}

#[test]
fn faults_end_the_program_that_makes_them() {
    let parent = |child: fn(Program) -> Program, signal: i32| {
        let fork = program().call(nr::FORK, &[]).jump_unless(0, "parent");
        child(fork).exit(9).label("parent").wait(0, signal, 1).exit(0)
    };
    ends_with(0, &[("invalid", parent(Program::invalid, 4))]);
    ends_with(0, &[("unmapped", parent(|program| program.store_at(0x1000, 1), 11))]);
}

#[test]
fn who_uses_up_the_memory_is_ended_and_nobody_else() {
    const RIGHTS: u64 = 3;
    // Private, anonymous, not reserved.
    const PRIVATE: u64 = 0x4022;
    let parent = program()
        .call(nr::FORK, &[])
        .jump_if(0, "child")
        .wait(0, SIGKILL as i32, 1)
        .exit(0)
        .label("child")
        .call(nr::MMAP, &[0, 64 << 20, RIGHTS, PRIVATE, u64::MAX, 0])
        .copy(Reg::R14, Reg::Rax)
        .label("touch")
        .store(Reg::R14, Reg::R14)
        .copy(Reg::Rax, Reg::R14)
        .add_to_rax(4096)
        .copy(Reg::R14, Reg::Rax)
        .jump("touch");
    for seed in seeds(COUNT / 8) {
        let model = boot(Settings { seed, frames: 256, ..Settings::default() }, &[("eater", parent.clone())]);
        assert_eq!(model.run(), Outcome::Off(0), "seed {seed}; written: {}", model.written());
    }
}

#[test]
fn a_line_is_no_file() {
    let refused = |number, words: &[u64], errno: Errno| (number, words.to_vec(), -i32::from(errno.0.get()));
    let calls = [
        refused(nr::FSYNC, &[1], Errno::EINVAL),
        refused(nr::FDATASYNC, &[1], Errno::EINVAL),
        refused(nr::FTRUNCATE, &[1, 0], Errno::EINVAL),
        refused(nr::FALLOCATE, &[1, 0, 0, 1], Errno::ENODEV),
        refused(nr::LSEEK, &[1, 0, 0], Errno::ESPIPE),
        refused(nr::MMAP, &[0, 4096, 1, 2, 1, 0], Errno::ENODEV),
    ];
    for (number, words, errno) in calls {
        let code = program().call(number, &words).jump_if(errno, "refused").exit(1).label("refused").exit(0);
        let model = boot(Settings::default(), &[("line", code)]);
        assert_eq!(model.run(), Outcome::Off(0), "call {number}; written: {}", model.written());
    }
}

#[test]
fn a_host_that_has_no_file_left_is_an_error_of_the_call() {
    // "/tmp/f", NUL.
    let name = u64::from_le_bytes(*b"/tmp/f\0\0");
    let write = program()
        .store_at(BYTE, name)
        .call(nr::CREAT, &[BYTE, 0o600])
        .copy(Reg::Rdi, Reg::Rax)
        .set(Reg::Rsi, BYTE)
        .set(Reg::Rdx, 6)
        .call_again(nr::WRITE)
        .jump_if(6, "fine")
        .exit(1)
        .label("fine")
        .exit(0);
    let mut failed = 0;
    for after in 0..40 {
        let model = boot(Settings::default(), &[("write", write.clone())]);
        model.fail_host(after, Errno::ENFILE);
        match model.run() {
            Outcome::Off(0) => {}
            // The call, or the start of the program.
            Outcome::Off(1 | 126 | 127) => failed += 1,
            other => panic!("after {after}: {other:?}; written: {}", model.written()),
        }
    }
    assert!(failed > 0, "no host call failed");
}

#[test]
fn children_leave_nothing_behind() {
    let one = |program: Program, index: u32| {
        let (child, next) = (format!("child {index}"), format!("next {index}"));
        program.call(nr::FORK, &[]).jump_if(0, &child).wait(0, 0, 1).jump(&next).label(&child).exit(0).label(&next)
    };
    let mark = |program: Program| program.store_at(BYTE, 0x2e).call(nr::WRITE, &[1, BYTE, 1]);
    let warm = mark((0..4).fold(program(), one));
    let whole = mark((4..40).fold(warm, one)).exit(0);
    let model = boot(Settings::default(), &[("many", whole)]);
    let used_at = |marks: usize| {
        while model.written().len() < marks {
            assert_eq!(model.step(), None, "written: {}", model.written());
        }
        (model.in_use(), model.threads())
    };
    let (before, after) = (used_at(1), used_at(2));
    assert_eq!(before, after);
    assert_eq!(model.run(), Outcome::Off(0));
}

/// Where a program maps a ring, and where that has the count of submissions and of completions.
const RING: u64 = 0x5000_0000;
const SUBMITTED: u64 = RING + 64;
const COMPLETED: u64 = RING + 256;

/// A ring that the kernel looks into, as descriptor 3, and mapped.
fn ring(program: Program, flags: u64) -> Program {
    const PARAMS: u64 = DATA + 2048;
    const SHARED: u64 = 1;
    const FIXED: u64 = 16;
    let made = (0..15).fold(program, |program, word| program.store_at(PARAMS + word * 8, 0));
    made.store_at(PARAMS + 8, flags)
        .call(nr::IO_URING_SETUP, &[4, PARAMS])
        .expect(3, 70)
        .call(nr::MMAP, &[RING, 4096, 3, SHARED | FIXED, 3, 0])
}

/// Sleeps so long that who looks every 50 us meanwhile takes more steps than [`IDLE_STEPS`].
fn sleep_long(program: Program) -> Program {
    program.store_at(TIME, 1000).store_at(TIME + 8, 0).call(nr::NANOSLEEP, &[TIME, 0])
}

/// Steps that are plenty for programs that mostly sleep.
const IDLE_STEPS: usize = 500_000;

#[test]
fn a_ring_that_is_not_to_be_used_yet_is_not_looked_into() {
    let asleep = sleep_long(ring(program(), (setup::SQPOLL | setup::R_DISABLED).into())).exit(0);
    let model = boot(Settings::default(), &[("ring", asleep)]);
    assert_eq!(model.run_for(IDLE_STEPS), Outcome::Off(0));
}

#[test]
fn a_ring_whose_process_is_stopped_is_looked_into_for_a_while_and_served_when_it_goes_on() {
    let first = program().call(nr::FORK, &[]).jump_if(0, "maker").wait(0, 0, 1).exit(0).label("maker");
    let maker = ring(first, setup::SQPOLL.into())
        .call(nr::FORK, &[])
        .jump_if(0, "other")
        .wait(0, 0, 2)
        .load_at(COMPLETED)
        .expect(1, 3)
        .exit(0)
        .label("other")
        .call(nr::GETPPID, &[])
        .copy(Reg::R12, Reg::Rax);
    let send =
        |program: Program, signal| program.copy(Reg::Rdi, Reg::R12).set(Reg::Rsi, signal).call_again(nr::KILL).expect(0, 4);
    let stopped = send(maker, SIGSTOP).sleep(1_000_000).store_at(SUBMITTED, 1);
    // Stopped or not, it may be made before that: a thread that waits does what it is reminded of.
    let whole = send(sleep_long(stopped), SIGCONT).exit(0);
    for seed in seeds(COUNT / 8) {
        let model = boot(Settings { seed, ..Settings::default() }, &[("rings", whole.clone())]);
        assert_eq!(model.run_for(IDLE_STEPS), Outcome::Off(0), "seed {seed}");
    }
}
