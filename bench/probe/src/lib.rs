//! The measured program of `janua bench`.
//!
//! It is guest code: it knows nothing of Janua and runs natively and inside alike, so that both are measured by the same
//! instructions. Times are taken with the time stamp counter, which no gate intercepts, and printed as ticks per operation; who
//! started it turns them into nanoseconds with [`ticks_per_second`].
//!
//! Printed, one line each: `begin ROW` before a row is measured; `row ROW TICKS...` with one number a sample; `skip ROW REASON`.

mod apart;
pub mod bare;
pub mod bare32;
mod calls;
mod calls_by_ring;
mod compat;
mod events;
mod files;
mod gate_ring;
mod gates;
mod intercept;
mod isolate;
mod meter;
mod pairs;
mod process;
mod queued;
mod ring;
pub mod scale;
mod seldom;
mod steps;
mod sys;
pub mod tasks;
mod tasks_by_ring;
mod tiny;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use meter::Meter;
pub use meter::ticks_per_second;

/// Why a row was not measured.
#[derive(Debug)]
pub struct Skip(pub String);

impl Skip {
    /// A host call that failed.
    fn call(what: &str, errno: i64) -> Skip {
        Skip(format!("{what}: {}", std::io::Error::from_raw_os_error(errno as i32)))
    }

    /// The last error the C library reported.
    fn last(what: &str) -> Skip {
        Skip(format!("{what}: {}", std::io::Error::last_os_error()))
    }
}

/// The samples of a row, in ticks per operation.
type Samples = Result<Vec<f64>, Skip>;

/// Which table a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The cost of measuring.
    Timer,
    /// Ways into a kernel.
    Gate,
    /// `gettimeofday` by every way there is, as in the article "The evolution of x86 architecture system calls".
    Article,
    /// Plain function calls with 0 to 6 arguments: the `vanilla` of OctoPOS' Table 5.2.
    Function,
    /// Null calls with 0 to 6 arguments.
    Null,
    /// Files and descriptors.
    File,
    /// Memory.
    Memory,
    /// Waiting for one another.
    Pair,
    /// Processes, threads, signals.
    Process,
    /// Time.
    Time,
    /// What a kernel in another process does for a call of L4, step by step.
    Step,
    /// One operation among many things: a point of a curve.
    Scale(scale::Curve),
}

/// One thing that is measured.
pub struct Row {
    /// Its name in files and on the command line.
    pub name: &'static str,
    /// What one operation is, for people.
    pub title: &'static str,
    pub group: Group,
    /// How many processors it wants: 1 is measured pinned to one.
    pub cores: u8,
    /// Whether only the host is measured by it: the row is about its own mechanisms.
    pub host_only: bool,
    run: fn(&Meter) -> Samples,
}

impl Row {
    /// The number of things that a point of a curve is about: what its name ends with.
    pub fn point(&self) -> Option<usize> {
        point_of(self.name)
    }
}

/// As [`Row::point`], by the name.
pub fn point_of(name: &str) -> Option<usize> {
    name.rsplit_once('-')?.1.parse().ok()
}

/// Every row there is: [`ROWS`], and the curves of [`scale`].
pub fn all() -> impl Iterator<Item = &'static Row> + Clone {
    ROWS.iter().chain(scale::ROWS.iter().copied().flatten())
}

const fn row(name: &'static str, title: &'static str, group: Group, run: fn(&Meter) -> Samples) -> Row {
    Row { name, title, group, cores: 1, host_only: false, run }
}

const fn host(name: &'static str, title: &'static str, group: Group, run: fn(&Meter) -> Samples) -> Row {
    Row { name, title, group, cores: 1, host_only: true, run }
}

const fn two(name: &'static str, title: &'static str, group: Group, run: fn(&Meter) -> Samples) -> Row {
    Row { name, title, group, cores: 2, host_only: false, run }
}

const fn host_two(name: &'static str, title: &'static str, group: Group, run: fn(&Meter) -> Samples) -> Row {
    Row { name, title, group, cores: 2, host_only: true, run }
}

/// Every row but those of curves, in the order of the tables.
pub const ROWS: &[Row] = &[
    row("timer", "rdtsc start to stop, nothing between", Group::Timer, meter::timer),
    row("loop", "one turn of the measuring loop", Group::Timer, gates::empty_loop),
    row("syscall", "getppid by syscall", Group::Gate, gates::syscall),
    two("syscall-2", "getppid by syscall, with another processor to spare", Group::Gate, gates::syscall),
    host_two("handover", "a word handed to another processor and back, both looking at it", Group::Gate, pairs::handover),
    host("handover-1", "the same on one processor, by futex", Group::Gate, pairs::futex_processes),
    two("syscall-2thr", "getppid by syscall, two threads at once", Group::Gate, gates::syscall_two_threads),
    row("int80", "getppid by int 0x80 from 64-bit code", Group::Gate, gates::int80),
    row("vsyscall", "time by the vsyscall page", Group::Gate, gates::vsyscall),
    row("vdso", "clock_gettime by the vDSO", Group::Gate, gates::vdso),
    row("clock", "clock_gettime by syscall", Group::Gate, gates::clock),
    row("signal", "signal round trip (tgkill to oneself, handler, sigreturn)", Group::Gate, gates::signal),
    host("sud", "Syscall User Dispatch round trip", Group::Gate, intercept::sud),
    host("seccomp", "seccomp RET_TRAP round trip", Group::Gate, intercept::seccomp),
    host("queued-3", "signal queued to oneself, ids asked for each time (OctoPOS’ guest layer)", Group::Gate, queued::asking),
    host("queued-1", "signal queued to oneself, ids known", Group::Gate, queued::knowing),
    host("sysemu", "ptrace SYSEMU round trip with registers read and set", Group::Gate, intercept::sysemu),
    host("syscall-stop", "ptrace entry and exit stop of one call", Group::Gate, intercept::syscall_stop),
    row("int80-32", "getppid by int 0x80 from 32-bit code", Group::Gate, compat::int80),
    host("sysenter-32", "getppid by sysenter from 32-bit code", Group::Gate, compat::sysenter),
    host("vsyscall-32", "getppid by __kernel_vsyscall", Group::Gate, compat::kernel_vsyscall),
    host("tod-int80", "int 80h", Group::Article, compat::tod_int80),
    host("tod-sysenter", "sysenter", Group::Article, compat::tod_sysenter),
    host("tod-syscall", "syscall", Group::Article, gates::tod_syscall),
    host("tod-vsyscall", "vsyscall", Group::Article, gates::tod_vsyscall),
    host("tod-vdso", "vDSO", Group::Article, gates::tod_vdso),
    host("tod-vdso32", "vDSO-32", Group::Article, compat::tod_vdso),
    row("call-0", "function call, 0 arguments", Group::Function, gates::function::<0>),
    row("call-1", "function call, 1 argument", Group::Function, gates::function::<1>),
    row("call-2", "function call, 2 arguments", Group::Function, gates::function::<2>),
    row("call-3", "function call, 3 arguments", Group::Function, gates::function::<3>),
    row("call-4", "function call, 4 arguments", Group::Function, gates::function::<4>),
    row("call-5", "function call, 5 arguments", Group::Function, gates::function::<5>),
    row("call-6", "function call, 6 arguments", Group::Function, gates::function::<6>),
    row("null-0", "null call, 0 arguments", Group::Null, gates::null::<0>),
    row("null-1", "null call, 1 argument", Group::Null, gates::null::<1>),
    row("null-2", "null call, 2 arguments", Group::Null, gates::null::<2>),
    row("null-3", "null call, 3 arguments", Group::Null, gates::null::<3>),
    row("null-4", "null call, 4 arguments", Group::Null, gates::null::<4>),
    row("null-5", "null call, 5 arguments", Group::Null, gates::null::<5>),
    row("null-6", "null call, 6 arguments", Group::Null, gates::null::<6>),
    row("read-zero-1", "read 1 byte of /dev/zero", Group::File, files::read_zero::<1>),
    row("read-zero-4k", "read 4 KiB of /dev/zero", Group::File, files::read_zero::<4096>),
    row("write-null-1", "write 1 byte to /dev/null", Group::File, files::write_null::<1>),
    row("write-null-4k", "write 4 KiB to /dev/null", Group::File, files::write_null::<4096>),
    row("pread-1", "pread 1 byte of a file in memory", Group::File, files::pread::<1>),
    row("pread-4k", "pread 4 KiB of a file in memory", Group::File, files::pread::<4096>),
    row("pwrite-1", "pwrite 1 byte to a file in memory", Group::File, files::pwrite::<1>),
    row("pwrite-4k", "pwrite 4 KiB to a file in memory", Group::File, files::pwrite::<4096>),
    row("open-close", "open and close a file in memory", Group::File, files::open_close),
    row("open-close-host", "open and close /etc/passwd", Group::File, files::open_close_host),
    row("stat", "stat a file in memory", Group::File, files::stat),
    row("stat-host", "stat /etc/passwd", Group::File, files::stat_host),
    row("creat-unlink", "create and unlink a file in memory", Group::File, files::creat_unlink),
    row("getdents", "list a directory of 100 names (open, getdents, close)", Group::File, files::getdents),
    row("eventfd", "write and read an eventfd", Group::File, calls::eventfd),
    row("epoll", "epoll_wait with one ready descriptor", Group::File, calls::epoll),
    row("ring-1", "io_uring: submit a nop and take its completion", Group::File, ring::nops::<1>),
    row("ring-32", "io_uring: 32 nops by one call", Group::File, ring::nops::<32>),
    row("ring-256", "io_uring: 256 nops by one call", Group::File, ring::nops::<256>),
    row("by-ring-1", "gate ring: submit a getppid and take its result", Group::File, calls_by_ring::getppid::<1>),
    row("by-ring-8", "gate ring: 8 getppid by one call", Group::File, calls_by_ring::getppid::<8>),
    row("by-ring-32", "gate ring: 32 getppid by one call", Group::File, calls_by_ring::getppid::<32>),
    row("by-ring-256", "gate ring: 256 getppid by one call", Group::File, calls_by_ring::getppid::<256>),
    row("xattr", "set and get an attribute of a file in memory", Group::File, seldom::xattr),
    row("lockf", "lock and unlock a part of a file (fcntl)", Group::File, seldom::lockf),
    row("sendfile-1", "lseek, and sendfile of 1 byte to a file in memory", Group::File, seldom::sendfile),
    row("smaps", "read /proc/self/smaps", Group::File, seldom::smaps),
    row("mmap-munmap", "mmap and munmap of 64 KiB, untouched", Group::Memory, calls::mmap_munmap),
    row("mmap-touch", "mmap, touch and munmap of one page", Group::Memory, calls::mmap_touch),
    row("fault", "first touch of a page of anonymous memory", Group::Memory, calls::fault),
    row("brk", "grow and shrink the heap by one page (brk)", Group::Memory, calls::brk),
    row("pipe", "pipe round trip, two processes, one core", Group::Pair, pairs::pipe),
    two("pipe-2", "pipe round trip, two processes, two cores", Group::Pair, pairs::pipe_apart),
    row("futex-thr", "futex round trip, two threads, one core", Group::Pair, pairs::futex_threads),
    two("futex-thr-2", "futex round trip, two threads, two cores", Group::Pair, pairs::futex_threads_apart),
    row("futex-proc", "futex round trip, two processes, one core", Group::Pair, pairs::futex_processes),
    two("futex-proc-2", "futex round trip, two processes, two cores", Group::Pair, pairs::futex_processes_apart),
    row("semop", "raise and lower a semaphore (System V)", Group::Pair, seldom::semop),
    row("unix", "socketpair round trip, two processes, one core", Group::Pair, pairs::unix),
    row("tcp", "loopback TCP round trip, two processes, one core", Group::Pair, pairs::tcp),
    two("tcp-2", "loopback TCP round trip, two processes, two cores", Group::Pair, pairs::tcp_apart),
    row("signal-self", "kill oneself with a handled signal", Group::Process, gates::signal),
    row("thread", "create and join a thread", Group::Process, process::thread),
    row("fork-wait", "fork, exit, wait", Group::Process, process::fork_wait),
    row("fork-exec-wait", "fork, exec of a static program, wait", Group::Process, process::fork_exec_wait),
    row("vfork-exec-wait", "vfork, exec of a static program, wait (posix_spawn)", Group::Process, process::spawn_wait),
    row("daemon", "start a daemon: two forks, setsid, a byte by a pipe", Group::Process, seldom::daemon),
    row("affinity", "set a thread's processors", Group::Process, seldom::affinity),
    // Behind the forks: what its threads leave in the C library's heaps makes each of those dearer.
    row("requeue", "move 64 waiters from one futex to another", Group::Process, seldom::requeue),
    row("clock-vdso", "clock_gettime by the C library", Group::Time, gates::vdso),
    row("clock-call", "clock_gettime by syscall", Group::Time, gates::clock),
    host("step-stop", "let a task go on (PTRACE_SYSEMU) until it stops at int 0x30 (wait4)", Group::Step, steps::stop),
    host("step-getregs", "read its registers (PTRACE_GETREGS)", Group::Step, steps::registers),
    host("step-setregs", "read its registers and set them (PTRACE_SETREGS)", Group::Step, steps::set_registers),
    host("step-siginfo", "ask what stopped it (PTRACE_GETSIGINFO)", Group::Step, steps::signal),
    host("step-peek", "read a word of its code (PTRACE_PEEKTEXT)", Group::Step, steps::code),
    host("step-all", "set registers, go on, stop, read registers, ask why", Group::Step, steps::all),
];

const USAGE: &str = "usage: janua probe [--samples N] ROW...   measure rows of `janua bench`
       janua probe --list                list them
       janua probe events [ROW COUNT]... rows of `janua bench events` by a bare futex
       janua probe --idle N              start N processes that wait, say `ready`, end when standard input does
";

/// The program, given its arguments without its name. Exit code 0 when every row was measured or skipped with a reason.
pub fn main(args: &[OsString]) -> ExitCode {
    let args: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let mut out = std::io::stdout().lock();
    let mut samples = 40;
    let mut names = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match *arg {
            "--list" => {
                for row in all() {
                    let _ = writeln!(out, "{:<16} {}", row.name, row.title);
                }
                return ExitCode::SUCCESS;
            }
            "task" => {
                drop(out);
                return tasks::main(rest.as_slice());
            }
            "events" => {
                drop(out);
                return events::main(rest.as_slice());
            }
            "--idle" => return tiny::idle(rest.next().and_then(|n| n.parse().ok()).unwrap_or(1)),
            "--samples" => match rest.next().and_then(|n| n.parse().ok()) {
                Some(number) if number > 0 => samples = number,
                _ => return refuse("--samples wants a number above 0"),
            },
            name => match all().find(|row| row.name == name) {
                Some(row) => names.push(row),
                None => return refuse(&format!("no row is called `{name}`")),
            },
        }
    }
    if names.is_empty() {
        return refuse("no row given");
    }
    let meter = Meter::new(samples);
    for row in names {
        let _ = writeln!(out, "begin {}", row.name);
        let _ = out.flush();
        let line = match (row.run)(&meter) {
            Ok(samples) => {
                let numbers: Vec<String> = samples.iter().map(|ticks| format!("{ticks:.2}")).collect();
                format!("row {} {}", row.name, numbers.join(" "))
            }
            Err(Skip(why)) => format!("skip {} {}", row.name, why.replace('\n', " ")),
        };
        let _ = writeln!(out, "{line}");
        let _ = out.flush();
    }
    ExitCode::SUCCESS
}

fn refuse(why: &str) -> ExitCode {
    eprint!("janua probe: {why}\n{USAGE}");
    ExitCode::from(125)
}

#[cfg(test)]
mod tests {
    use std::{io, path::Path, process};

    use super::all;

    /// Runs a program that has just been written. A child of another test, which runs in a thread beside this one, has the file open for
    /// writing until it executes something itself.
    pub fn output_of(program: &Path) -> io::Result<process::Output> {
        loop {
            match process::Command::new(program).output() {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                other => return other,
            }
        }
    }

    #[test]
    fn names_are_unique_and_plain() {
        for (at, row) in all().enumerate() {
            assert!(row.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "{}", row.name);
            assert!(all().take(at).all(|other| other.name != row.name), "{} twice", row.name);
        }
    }
}
