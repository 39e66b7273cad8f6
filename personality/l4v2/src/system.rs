//! The state of one kernel, its start, and its end.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{self, Write};
use core::future::poll_fn;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;

use janua_abi::linux::{Errno, Result};
use janua_kernel::module::Modules;
use janua_kernel::stats::Stats;
use janua_kernel::table::Table;
use janua_kernel::thread::work;
use janua_kernel::trace::Tracer;
use janua_port::outside as outer;
use janua_port::{Account, Machine, Nanos, Space};
use janua_rt::Mutex;

use crate::config::Config;
use crate::memory::Memory;
use crate::registers::Registers;
use crate::state::{Key, Place, State};
use crate::{Kernel, Thread, load, table};

/// Exit code of a system that cannot be started: a module is none.
pub const NOT_A_SYSTEM: u8 = 126;
/// Exit code when the kernel lacks what the system needs.
pub const NO_ROOM: u8 = 125;
/// Exit code of a system in which every thread waits for good, and threads have been stopped by exceptions: as if by SIGSEGV.
pub const STOPPED: u8 = 128 + 11;

/// One per kernel.
pub struct System {
    pub config: Config,
    state: Mutex<State>,
    pub memory: Memory,
    over: AtomicBool,
}

/// The state, held. When it is let go, time slices are looked at if threads compete.
pub struct Held<'a>(janua_rt::MutexGuard<'a, State>);

impl Deref for Held<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.settle();
    }
}

impl System {
    pub fn state(&self) -> Held<'_> {
        Held(self.state.lock())
    }
}

/// What a task has of its own.
pub struct L4Task {
    pub number: u16,
    /// The address space; there from before the first thread runs.
    pub space: Mutex<Option<Arc<dyn Space>>>,
}

/// What a thread has of its own.
pub struct L4Thread {
    pub key: Key,
    /// eax, ebx and ecx at its start.
    pub initial: [u32; 3],
    pub room: Room,
}

/// Room for a thread among those that the system may have (`--pids`), given back with the thread.
pub struct Room(&'static Account);

impl Room {
    /// EAGAIN.
    pub fn take(machine: &dyn Machine) -> Result<Room> {
        let threads = &machine.accounts().tasks;
        if threads.take(1) { Ok(Room(threads)) } else { Err(Errno::EAGAIN) }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.give(1);
    }
}

/// The thread is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// What handlers ask of the calling thread.
pub trait ThreadExt {
    fn state(&self) -> Held<'_>;
    /// Notes where its user code stopped, for who looks at it meanwhile.
    fn note(&self, registers: &Registers);
}

impl ThreadExt for Thread {
    fn state(&self) -> Held<'_> {
        self.kernel.system.state()
    }

    fn note(&self, registers: &Registers) {
        if let Some(tcb) = self.state().get_mut(self.key) {
            tcb.at = Place { eip: registers.eip, esp: registers.esp, eflags: registers.eflags };
        }
    }
}

/// Waits until the thread has the turn.
pub async fn turn(thread: &Thread) -> core::result::Result<(), Gone> {
    poll_fn(|_| {
        if thread.work() & work::KILL != 0 {
            return Poll::Ready(Err(Gone));
        }
        let mut state = thread.state();
        let Some(tcb) = state.get(thread.key) else { return Poll::Ready(Err(Gone)) };
        if let Some(deadline) = tcb.deadline {
            if state.now() >= deadline {
                state.expire(thread.key);
            } else {
                thread.wake_at(deadline);
            }
        }
        if state.has_turn(thread.key) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

/// A line on the kernel's console.
pub fn say(machine: &dyn Machine, what: fmt::Arguments<'_>) {
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(line, "janua: {what}");
    machine.console().write(line.as_bytes());
}

/// Ends the kernel.
pub fn end(kernel: &Kernel, code: u8) -> ! {
    if kernel.over.swap(true, Ordering::AcqRel) {
        outer::forever(kernel.machine)
    }
    if kernel.stats.is_on() {
        let report = kernel.stats.report(kernel.table.rows(), kernel.compat.rows());
        kernel.machine.console().write(report.as_bytes());
    }
    outer::over(kernel.machine, code)
}

/// The kernel's service: time slices, and the end of a system in which nothing can happen any more. When it wants to be called again.
pub fn serve(kernel: &Kernel) -> Option<Nanos> {
    let mut state = kernel.system.state.lock();
    let due = state.tick();
    if !state.is_over() {
        return due;
    }
    let code = if state.failures > 0 { STOPPED } else { 0 };
    drop(state);
    end(kernel, code)
}

/// The outside asks for something by signals (bit n-1 is signal n). What would end a program ends the system.
pub fn outside(kernel: &Kernel, signals: u64) {
    /// SIGHUP, SIGINT, SIGQUIT, SIGTERM.
    const ENDING: [u8; 4] = [1, 2, 3, 15];
    if let Some(signal) = ENDING.into_iter().find(|signal| signals & 1 << (signal - 1) != 0) {
        end(kernel, 128 + signal);
    }
}

/// Starts a kernel, sigma0 and the root task. What cannot be is reported, and ends the machine's kernel. ENOMEM, EINVAL.
pub fn start(machine: &'static dyn Machine, config: &[u8]) -> Result<Arc<Kernel>> {
    let config = Config::decode(config)?;
    let layout = match load::plan(&config) {
        Ok(layout) => layout,
        Err(why) => {
            say(machine, format_args!("{why}"));
            outer::over(machine, NOT_A_SYSTEM)
        }
    };
    let object = machine.memory_object("physical memory")?;
    object.truncate(config.memory)?;
    let memory = Memory::new(object, layout.pages());
    let rows = table::ROWS;
    let compat = Table::new(rows);
    compat.register_all();
    let stats = Stats::new(0, rows.len());
    if config.stats {
        stats.turn_on();
    }
    let tracer = Tracer::default();
    if let Some(fd) = config.trace {
        tracer.write_to(machine, fd, config.trace_whole);
    }
    let state = Mutex::new(State::new(machine));
    let system = System { config, state, memory, over: AtomicBool::new(false) };
    let kernel =
        Arc::new(Kernel { machine, table: Table::new(&[]), compat, tracer, stats, modules: Modules::default(), system });
    load::start(&kernel, &layout)?;
    Ok(kernel)
}
