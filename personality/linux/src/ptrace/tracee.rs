//! Who traces whom, and what a tracer and its tracee share.
//!
//! A [`Tracee`] is made when a thread begins to be traced and outlives the thread until its end has been waited for. The family tree
//! knows it by tracer and by number, the thread has it for itself. Links change under the tree's lock; the lock of
//! [`State`] is a small one that is held last.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use janua_abi::linux::ptrace::option;
use janua_abi::linux::signal::{SIG_IGN, SIGCHLD, SIGKILL, SigInfo, sa, si};
use janua_abi::linux::{Errno, Result};
use janua_kernel::thread::work;
use janua_rt::{Mutex, WaitQueue};

use super::debug::DebugRegisters;
use super::stop::Own;
use crate::processor::regs::Registers;
use crate::signal::{self, send};
use crate::task::exit::Letters;
use crate::task::{CAP_SYS_PTRACE, Tree, exit, uid_of};
use crate::thread::ThreadExt;
use crate::{Kernel, Seat, Task, Thread};

/// How a tracee runs on after a stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    #[default]
    Run,
    /// To the next call, or the end of the one it is in.
    Calls,
    /// One instruction.
    Step,
    /// To the next call, which the tracer makes instead (PTRACE_SYSEMU); or one instruction, if that comes first.
    Emulate,
    EmulateStep,
}

impl How {
    pub fn steps(self) -> bool {
        matches!(self, How::Step | How::EmulateStep)
    }

    pub fn emulates(self) -> bool {
        matches!(self, How::Emulate | How::EmulateStep)
    }
}

/// What kind of stop it is, as far as that matters for what may be asked and for how it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signal is about to be delivered.
    Signal,
    /// The whole process has been stopped, or the tracer wanted a stop.
    Group,
    /// PTRACE_EVENT_*, or a single step that a call or the start of a handler has ended.
    Event,
    /// Before a call, and after it.
    Entry,
    Exit,
    /// PTRACE_EVENT_EXIT: the thread is about to end, which a kill does not hurry.
    Last,
}

/// A stop that a tracee is in.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    pub kind: Kind,
    /// What wait(2) reports of it, as an exit code.
    pub code: u32,
    /// `None` where Linux has none: then it is a stop of the whole process.
    pub info: Option<SigInfo>,
}

/// Bytes that the tracee is to write to its own memory, and how that went. Goes with the stop.
pub struct Poke {
    pub addr: usize,
    pub bytes: Vec<u8>,
    pub done: Option<Result<()>>,
}

/// What tracer and tracee exchange.
#[derive(Default)]
pub struct State {
    /// False once it is let go.
    pub attached: bool,
    pub options: u32,
    pub how: How,
    pub stop: Option<Stop>,
    /// The one that is just over, as the tracer has left it.
    pub last: Option<Stop>,
    /// PTRACE_LISTEN: the stop goes on, but nothing can be asked until something happens.
    pub listening: bool,
    /// PTRACE_INTERRUPT, or a change of a stop of the process: a stop is due.
    pub trap: bool,
    /// It was stopped when its tracer came, who waits until it is so for him.
    pub settling: bool,
    /// The exit code that wait(2) has not fetched.
    pub report: Option<u32>,
    /// The wait status of a thread that is gone.
    pub ended: Option<u32>,
    /// The stop is over and this signal goes with it, 0 for none: for the tracee to take.
    pub resume: Option<u32>,
    pub registers: Registers,
    pub debug: DebugRegisters,
    pub message: u64,
    pub poke: Option<Poke>,
}

/// A thread that is, or was, traced.
pub struct Tracee {
    tid: AtomicU32,
    pub task: Arc<Task>,
    seat: Weak<Seat>,
    pub tracer: u32,
    /// The tracer's thread.
    tracer_tid: AtomicU32,
    pub seized: bool,
    /// The tracer may trace everybody: a program that gains privileges is none of its concern.
    pub privileged: bool,
    pub state: Mutex<State>,
    /// Woken when a [`Poke`] is done, a stop is over, or it is no longer [`State::settling`].
    pub answered: WaitQueue,
}

/// The part of this in each thread.
#[derive(Default)]
pub struct Trace {
    on: AtomicBool,
    tracee: Mutex<Option<Arc<Tracee>>>,
    /// Only the thread itself uses it.
    pub own: Mutex<Own>,
    /// Something in `own` is due.
    pub due: AtomicBool,
}

impl Trace {
    /// Whether the thread is traced.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::SeqCst)
    }

    pub fn tracee(&self) -> Option<Arc<Tracee>> {
        if self.is_on() { self.tracee.lock().clone() } else { None }
    }
}

/// Who traces.
#[derive(Clone, Copy, Debug)]
pub struct Tracer {
    pub pid: u32,
    pub tid: u32,
    pub privileged: bool,
}

impl Tracer {
    pub fn of(thread: &Thread) -> Tracer {
        Tracer { pid: thread.process().pid, tid: thread.tid(), privileged: thread.capable(CAP_SYS_PTRACE) }
    }
}

impl Tracee {
    pub fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    pub fn tracer_tid(&self) -> u32 {
        self.tracer_tid.load(Ordering::Relaxed)
    }

    pub fn seat(&self) -> Option<Arc<Seat>> {
        self.seat.upgrade()
    }

    /// The tracer of the tracee, for children that are traced as their parent is.
    pub fn tracer(&self) -> Tracer {
        Tracer { pid: self.tracer, tid: self.tracer_tid(), privileged: self.privileged }
    }

    /// Whether an option, or the event of this number, is asked for.
    pub fn wants(&self, option: u32) -> bool {
        self.state.lock().options & option != 0
    }

    /// Ends the stop the tracee is in, with a signal or 0. ESRCH when it is in none.
    pub fn resume(&self, signal: u32, how: How) -> Result<()> {
        {
            let mut state = self.state.lock();
            state.last = Some(state.stop.take().ok_or(Errno::ESRCH)?);
            state.poke = None;
            state.how = how;
            state.listening = false;
            state.report = None;
            state.resume = Some(signal);
        }
        self.wake();
        Ok(())
    }

    /// Has the tracee write to its memory, whatever the rights there are: `None` as long as it has not. EIO where nothing may be
    /// written, ESRCH when the tracee is not stopped. [`Tracee::answered`] is woken when it is worth asking again.
    pub fn force(&self, addr: usize, bytes: &[u8]) -> Option<Result<()>> {
        let mut state = self.state.lock();
        if state.stop.is_none() || !state.attached {
            return Some(Err(Errno::ESRCH));
        }
        match &state.poke {
            Some(poke) if poke.addr == addr && poke.bytes == bytes => {
                let done = poke.done?;
                state.poke = None;
                return Some(done);
            }
            // Somebody else's, who has not asked for it yet.
            Some(Poke { done: None, .. }) => return None,
            // Or never will.
            _ => state.poke = Some(Poke { addr, bytes: bytes.to_vec(), done: None }),
        }
        drop(state);
        if let Some(seat) = self.seat() {
            seat.waker().wake_by_ref();
        }
        None
    }

    /// Has the tracee look at what has changed for it.
    pub fn wake(&self) {
        if let Some(seat) = self.seat() {
            seat.waker().wake_by_ref();
        }
        self.answered.wake_all();
    }

    /// The tracee has begun a stop for its tracer, or goes on without one: the tracer need not wait for it any more.
    pub fn settled(&self) {
        if core::mem::take(&mut self.state.lock().settling) {
            self.answered.wake_all();
        }
    }

    /// A stop is due, also for one that only listens.
    pub fn trap(&self) {
        let seat = self.seat();
        // Before it may go on, or it would get to its next call first; and once more below, if it has found nothing due meanwhile.
        if let Some(seat) = &seat {
            seat.set_work(work::STOP);
        }
        let listening = {
            let mut state = self.state.lock();
            state.trap = true;
            if state.listening {
                state.listening = false;
                state.last = state.stop.take();
                state.resume = Some(0);
            }
            state.resume.is_some()
        };
        if let Some(seat) = seat {
            seat.interrupt(work::STOP);
        }
        if listening {
            self.answered.wake_all();
        }
    }
}

/// Begins to trace a thread. EPERM when it is traced already.
pub fn link(tree: &mut Tree, seat: &Arc<Seat>, tracer: Tracer, seized: bool, options: u32) -> Result<Arc<Tracee>> {
    if tree.tracee(seat.tid()).is_some() || tree.process(tracer.pid).is_none() {
        return Err(Errno::EPERM);
    }
    let tracee = Arc::new(Tracee {
        tid: AtomicU32::new(seat.tid()),
        task: seat.task.clone(),
        seat: Arc::downgrade(seat),
        tracer: tracer.pid,
        tracer_tid: AtomicU32::new(tracer.tid),
        seized,
        privileged: tracer.privileged,
        state: Mutex::new(State { attached: true, options, ..State::default() }),
        answered: WaitQueue::new(),
    });
    tree.insert_tracee(&tracee);
    *seat.trace.tracee.lock() = Some(tracee.clone());
    seat.trace.on.store(true, Ordering::SeqCst);
    Ok(tracee)
}

/// Ends the tracing. The tracee still has to be let go by [`release`].
pub fn unlink(tree: &mut Tree, tracee: &Arc<Tracee>) {
    tree.remove_tracee(tracee);
    tracee.state.lock().attached = false;
    if let Some(seat) = tracee.seat() {
        seat.trace.on.store(false, Ordering::SeqCst);
        *seat.trace.tracee.lock() = None;
    }
}

/// Lets a tracee go on by itself after [`unlink`], with a signal or 0. A stop of its process is its own again.
pub fn release(tracee: &Arc<Tracee>, signal: u32) {
    let _ = tracee.resume(signal, How::Run);
    tracee.wake();
    let Some(seat) = tracee.seat() else { return };
    let group = tracee.task.group.lock();
    if group.stop.is_some() {
        seat.interrupt(work::STOP);
    }
    if !group.threads.iter().any(|other| other.trace.is_on())
        && let Some(mm) = tracee.task.mm()
    {
        mm.allow_rewriting();
    }
}

/// Notifies the tracer of a stop or an end: SIGCHLD, and its waits.
pub fn notify(kernel: &Kernel, tracee: &Tracee, code: i32, status: i32) {
    let Some(tracer) = kernel.tree.lock().process(tracee.tracer).cloned() else { return };
    let action = tracer.actions().get(SIGCHLD);
    let is_end = code != si::CLD_TRAPPED && code != si::CLD_STOPPED;
    if action.handler != SIG_IGN && (is_end || action.flags & sa::NOCLDSTOP == 0) {
        let info = SigInfo::child(SIGCHLD, code, tracee.tid(), uid_of(&tracee.task), status, 0, 0);
        let _ = signal::send_task(&tracer, info);
    }
    tracer.children.wake_all();
}

/// A thread that does not lead its process is gone: its tracer may wait for it.
pub fn thread_ended(thread: &Thread, status: u32) {
    let Some(tracee) = thread.trace.tracee().filter(|tracee| tracee.tid() != tracee.task.pid) else { return };
    end(&thread.kernel, &tracee, status);
}

/// Notes the end of a tracee. Where its tracer does not want to know it is its parent's again at once.
fn end(kernel: &Kernel, tracee: &Arc<Tracee>, status: u32) {
    let mut letters = Letters::default();
    {
        let mut tree = kernel.tree.lock();
        let ignores = tree.process(tracee.tracer).is_none_or(|tracer| {
            let action = tracer.actions().get(SIGCHLD);
            action.handler == SIG_IGN || action.flags & sa::NOCLDWAIT != 0
        });
        let mut state = tracee.state.lock();
        state.stop = None;
        state.report = None;
        state.ended = Some(status);
        state.registers = Registers::default();
        let attached = state.attached;
        drop(state);
        if !attached {
            // Its tracer has ended meanwhile, and has seen to it.
            return;
        }
        if ignores {
            unlink(&mut tree, tracee);
            if tracee.tid() == tracee.task.pid {
                // Before anybody finds it untraced.
                exit::reap(&mut tree, &tracee.task, &mut letters);
            }
            drop(tree);
            letters.deliver();
            return;
        }
    }
    tracee.answered.wake_all();
    let (code, short) = exit::cause(status);
    notify(kernel, tracee, code, short);
}

/// A whole process has ended: when its first thread is traced by its parent, that learns of it as of any child.
pub fn parent_learns(tree: &mut Tree, task: &Task) {
    if let Some(tracee) = tree.tracee(task.pid).filter(|tracee| tracee.tracer == task.parent()).cloned() {
        unlink(tree, &tracee);
        tracee.answered.wake_all();
    }
}

/// The same when it is traced by somebody else, who learns of it first.
pub fn process_ended(task: &Arc<Task>, status: u32) {
    let kernel = &task.kernel;
    let Some(tracee) = kernel.tree.lock().tracee(task.pid).cloned() else { return };
    end(kernel, &tracee, status);
}

/// Ends what a thread traces, since it ends itself; with `whole` all that its process traces.
pub fn tracer_ends(thread: &Thread, whole: bool) {
    let kernel = &thread.kernel;
    let (pid, tid) = (thread.process().pid, thread.tid());
    let mut letters = Letters::default();
    let gone: Vec<Arc<Tracee>> = {
        let mut tree = kernel.tree.lock();
        let gone: Vec<_> = tree.tracees(pid).filter(|tracee| whole || tracee.tracer_tid() == tid).cloned().collect();
        for tracee in &gone {
            unlink(&mut tree, tracee);
            if tracee.tid() == tracee.task.pid && tracee.task.ended().is_some() {
                exit::reap(&mut tree, &tracee.task, &mut letters);
            }
        }
        gone
    };
    letters.deliver();
    for tracee in gone {
        if tracee.wants(option::EXITKILL) {
            let _ = send::send_task(&tracee.task, signal::kernel_signal(SIGKILL));
        }
        release(&tracee, 0);
    }
}

/// A thread goes on under its process' number, since it has called exec: so do its tracer and those it traces.
pub fn renumber(tree: &mut Tree, thread: &Thread, old: u32) {
    let pid = thread.process().pid;
    if let Some(leader) = tree.tracee(pid).cloned() {
        unlink(tree, &leader);
        leader.answered.wake_all();
    }
    if let Some(tracee) = thread.trace.tracee() {
        tree.remove_tracee(&tracee);
        tracee.tid.store(pid, Ordering::Relaxed);
        tree.insert_tracee(&tracee);
    }
    for tracee in tree.tracees(pid).filter(|tracee| tracee.tracer_tid() == old) {
        tracee.tracer_tid.store(pid, Ordering::Relaxed);
    }
}
