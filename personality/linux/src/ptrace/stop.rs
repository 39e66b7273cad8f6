//! The tracee's side: where it stops, and how it goes on.
//!
//! A stop is begun on the return to user mode ([`before_leave`], [`signal_stop`], [`trap`]), before a call ([`call_begins`]) or within
//! one ([`event`]). The thread then waits in its slot ([`stopped`]), where it also writes to its memory for the tracer, and takes up its
//! registers afterwards.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::sync::atomic::Ordering;
use core::task::Poll;

use janua_abi::linux::Errno;
use janua_abi::linux::ptrace::{EVENTMSG_SYSCALL_ENTRY, EVENTMSG_SYSCALL_EXIT, event as number, option};
use janua_abi::linux::signal::{SIGTRAP, SigInfo, si};
use janua_kernel::Before;
use janua_kernel::thread::{watch, work};
use janua_port::Frame;

use super::debug::{DebugRegisters, Watch};
use super::tracee::{self, How, Kind, Stop, Tracee};
use crate::process::Report;
use crate::signal::{self, deliver};
use crate::task::{exit, notify_parent, stop};
use crate::thread::ThreadExt;
use crate::{Seat, Thread};

/// In a stop's code: it is one at a call (PTRACE_O_TRACESYSGOOD).
const AT_CALL: u32 = 0x80;

/// What the thread keeps for itself.
#[derive(Default)]
pub struct Own {
    /// The stop it is in, or has just left, and under whom.
    inside: Option<(Stop, Arc<Tracee>)>,
    /// The trap flag in its frame is ours.
    forced: bool,
    /// What it looks at after each instruction.
    watch: Option<Watch>,
    /// The call it is stopped before is not to be made (PTRACE_SYSEMU).
    emulated: bool,
    /// It has begun a new program; its number before.
    exec: Option<u32>,
    /// A call has ended.
    exit: bool,
    /// A single step has led to a handler's first instruction.
    step: bool,
    /// PTRACE_EVENT_EXIT has been.
    last: bool,
    /// Registers that were changed within a call are taken up at its end.
    late: Option<Arc<Tracee>>,
}

/// Begins a stop of the calling thread, which then has to wait. False when nobody traces it any more, or it is to end.
fn begin(thread: &Thread, frame: &mut Frame, stop: Stop, message: Option<u64>) -> bool {
    let Some(tracee) = thread.trace.tracee() else { return false };
    if stop.kind != Kind::Last && thread.work() & work::KILL != 0 {
        return false;
    }
    if let Some(mm) = thread.process().mm() {
        // With the program's own code in place it can go on there, wherever it was.
        if mm.use_own_code().is_ok() {
            frame.set_program_counter(mm.pc_shown(frame.program_counter()));
        }
    }
    let mut own = thread.trace.own.lock();
    if core::mem::take(&mut own.forced) {
        frame.set_stepped(false);
    }
    {
        let mut state = tracee.state.lock();
        if !state.attached {
            return false;
        }
        state.registers.save(thread, frame);
        state.stop = Some(stop);
        state.report = Some(stop.code);
        state.resume = None;
        state.listening = false;
        if let Some(message) = message {
            state.message = message;
        }
    }
    own.inside = Some((stop, tracee.clone()));
    thread.trace.due.store(true, Ordering::Relaxed);
    drop(own);
    tracee.settled();
    let code = if stop.kind == Kind::Group { si::CLD_STOPPED } else { si::CLD_TRAPPED };
    tracee::notify(&thread.kernel, &tracee, code, (stop.code & 0x7f) as i32);
    true
}

/// Information of a stop that is no signal's.
fn notice(thread: &Thread, signal: u32, code: u32) -> Option<SigInfo> {
    Some(SigInfo::by_process(signal, code as i32, thread.tid(), thread.cred().uid))
}

/// Begins a stop that an event causes.
fn begin_event(thread: &Thread, frame: &mut Frame, event: u32, message: u64) -> bool {
    let code = SIGTRAP | event << 8;
    let kind = if event == number::EXIT { Kind::Last } else { Kind::Event };
    begin(thread, frame, Stop { kind, code, info: notice(thread, SIGTRAP, code) }, Some(message))
}

/// Begins a stop before or after a call.
fn begin_call(thread: &Thread, frame: &mut Frame, kind: Kind, tracee: &Tracee) -> bool {
    let code = SIGTRAP | if tracee.wants(option::TRACESYSGOOD) { AT_CALL } else { 0 };
    let message = if kind == Kind::Entry { EVENTMSG_SYSCALL_ENTRY } else { EVENTMSG_SYSCALL_EXIT };
    begin(thread, frame, Stop { kind, code, info: notice(thread, SIGTRAP, code) }, Some(message))
}

/// Whether the calling thread is in such a stop.
pub fn is_inside(thread: &Thread) -> bool {
    thread.trace.due.load(Ordering::Relaxed) && thread.trace.own.lock().inside.is_some()
}

/// Waits until the stop is over, and does what the tracer asks for meanwhile.
pub async fn stopped(thread: &Thread) {
    let inside = thread.trace.own.lock().inside.as_ref().map(|(stop, tracee)| (stop.kind, tracee.clone()));
    let Some((kind, tracee)) = inside else { return };
    poll_fn(|_| {
        serve(thread, &tracee);
        if is_over(thread, &tracee, kind) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn is_over(thread: &Thread, tracee: &Tracee, kind: Kind) -> bool {
    let mut state = tracee.state.lock();
    if state.resume.is_some() {
        return true;
    }
    let killed = match kind {
        Kind::Last => thread.kernel.ending.has_begun(),
        _ => thread.work() & work::KILL != 0,
    };
    if killed {
        state.last = state.stop.take();
        state.report = None;
    }
    let over = killed || !state.attached;
    drop(state);
    if over {
        tracee.answered.wake_all();
    }
    over
}

/// Writes to the thread's memory what the tracer wants there.
fn serve(thread: &Thread, tracee: &Tracee) {
    let due = {
        let state = tracee.state.lock();
        state.poke.as_ref().filter(|poke| poke.done.is_none()).map(|poke| (poke.addr, poke.bytes.clone()))
    };
    let Some((addr, bytes)) = due else { return };
    let mm = thread.process().mm();
    let done = mm.map_or(Err(Errno::EIO), |mm| mm.force_write(thread.user(), addr, &bytes));
    if let Some(poke) = &mut tracee.state.lock().poke {
        poke.done = Some(done);
    }
    tracee.answered.wake_all();
}

/// What a stop that is over leaves to do.
struct Ended {
    stop: Stop,
    /// The signal that goes with it, 0 for none.
    signal: u32,
    how: How,
}

/// Takes up the registers after a stop, if the thread has just been in one.
fn after(thread: &Thread, frame: &mut Frame) -> Option<Ended> {
    let (begun, tracee) = thread.trace.own.lock().inside.take()?;
    let ended = {
        let mut state = tracee.state.lock();
        let signal = state.resume.take().unwrap_or(0);
        state.registers.load(thread, frame);
        let stop = state.last.take().unwrap_or(begun);
        Ended { stop, signal, how: if state.attached { state.how } else { How::Run } }
    };
    go_on(thread, frame, ended.how);
    if ended.stop.kind == Kind::Group {
        thread.signals.stopped.store(false, Ordering::SeqCst);
    }
    Some(ended)
}

/// Has the thread go on as far as it is to.
fn go_on(thread: &Thread, frame: &mut Frame, how: How) {
    let debug = thread.trace.tracee().map(|tracee| tracee.state.lock().debug);
    let watch = debug.and_then(|debug| debug.watch(thread));
    let steps = how.steps() || watch.is_some();
    thread.trace.own.lock().watch = watch;
    if let Some(seat) = thread.seat() {
        seat.watch_calls(watch::TRACE, how != How::Run || steps);
    }
    if steps {
        step(thread, frame);
    }
}

/// Sets the trap flag, as ours unless it is the program's own.
fn step(thread: &Thread, frame: &mut Frame) {
    if !frame.is_stepped() {
        frame.set_stepped(true);
        thread.trace.own.lock().forced = true;
    }
}

/// An instruction of a traced thread has ended with the trap flag set: the `si_code` of the signal that comes of it, `None` if the thread
/// only looks at what it watches and goes on.
pub fn stepped(thread: &Thread, frame: &Frame) -> Option<i32> {
    let Some(tracee) = thread.trace.tracee() else { return Some(si::TRAP_TRACE) };
    let (hits, forced) = {
        let forced = thread.trace.own.lock().forced;
        let hits = look(thread, frame.program_counter() as u64);
        (hits.unwrap_or(0), forced && hits.is_some())
    };
    let mut state = tracee.state.lock();
    let step = state.how.steps() || !forced;
    if hits == 0 && !step {
        return None;
    }
    state.debug.trapped(hits, step);
    Some(if step { si::TRAP_TRACE } else { si::TRAP_HWBKPT })
}

/// Takes up watching again on return to user mode, where it has been interrupted. What the kernel has written does not count.
fn watch_again(thread: &Thread, frame: &mut Frame) {
    if look(thread, 0).is_some() {
        step(thread, frame);
    }
}

/// Looks at what the thread watches, if it does ([`Watch::look`]). Only the thread itself uses what it keeps, so that no lock has to be
/// held meanwhile.
fn look(thread: &Thread, pc: u64) -> Option<u64> {
    let mut watch = thread.trace.own.lock().watch.take()?;
    let hits = watch.look(thread, pc);
    thread.trace.own.lock().watch = Some(watch);
    Some(hits)
}

/// Takes the trap flag off, if it is ours: whether it was.
fn unstep(thread: &Thread, frame: &mut Frame) -> bool {
    let forced = core::mem::take(&mut thread.trace.own.lock().forced);
    if forced {
        frame.set_stepped(false);
    }
    forced
}

/// The registers with which a new thread begins are the calling one's, but for what stepping has made of them.
pub fn clean(thread: &Thread, frame: &mut Frame) {
    if thread.trace.due.load(Ordering::Relaxed) && thread.trace.own.lock().forced {
        frame.set_stepped(false);
    }
}

/// Before a call of a thread whose calls are watched.
pub fn call_begins(thread: &Thread, frame: &mut Frame) -> Before {
    if let Some(ended) = after(thread, frame) {
        if ended.signal != 0 {
            let _ = signal::send_thread(thread, signal::kernel_signal(ended.signal));
        }
        let emulated = core::mem::take(&mut thread.trace.own.lock().emulated);
        let skip = emulated || frame.number() as i32 == -1 || thread.work() & work::KILL != 0;
        return if skip { Before::Skip } else { Before::Make };
    }
    match thread.trace.tracee() {
        Some(tracee) => {
            let how = tracee.state.lock().how;
            let stops = how == How::Calls || how.emulates();
            if !stops || !begin_call(thread, frame, Kind::Entry, &tracee) {
                return Before::Make;
            }
            thread.trace.own.lock().emulated = how.emulates();
            Before::Wait
        }
        None => {
            if thread.is_watched_for(watch::TRACE) {
                go_on(thread, frame, How::Run);
            }
            Before::Make
        }
    }
}

/// After a call of a thread whose calls are watched.
pub fn call_ends(thread: &Thread) {
    thread.trace.own.lock().exit = true;
    thread.trace.due.store(true, Ordering::Relaxed);
}

/// The calling thread has begun a new program; `old` was its number before.
pub fn program_begins(thread: &Thread, old: u32) {
    if thread.trace.is_on() {
        let mut own = thread.trace.own.lock();
        own.exec = Some(old);
        own.watch = None;
        drop(own);
        if let Some(tracee) = thread.trace.tracee() {
            tracee.state.lock().debug = DebugRegisters::default();
        }
        thread.trace.due.store(true, Ordering::Relaxed);
    }
}

/// On the return to user mode, before all else: goes on after a stop, and begins those that are due. Whether the thread is to wait.
pub fn before_leave(thread: &Thread, frame: &mut Frame) -> bool {
    if !thread.trace.due.load(Ordering::Relaxed) && !thread.trace.is_on() {
        return false;
    }
    let late = thread.trace.own.lock().late.take();
    if let Some(tracee) = late {
        let result = frame.result();
        tracee.state.lock().registers.load(thread, frame);
        frame.set_result(result);
    }
    if let Some(ended) = after(thread, frame) {
        finish(thread, frame, &ended);
    }
    if thread.work() & work::KILL != 0 {
        return is_last(thread) && begin_event(thread, frame, number::EXIT, exit::thread_status(thread).into());
    }
    begin_due(thread, frame)
}

/// What comes of a stop's signal.
fn finish(thread: &Thread, frame: &mut Frame, ended: &Ended) {
    match ended.stop.kind {
        Kind::Signal => {
            let Some(info) = chosen(thread, ended) else { return };
            if thread.signals.blocked().has(info.signal()) {
                let _ = signal::send_thread(thread, info);
            } else {
                // A handler returns without the flag, and its first instruction is where the step ends.
                let step = unstep(thread, frame) && ended.how.steps();
                let before = frame.stack_pointer();
                deliver::take(thread, frame, &info);
                if step && frame.stack_pointer() != before {
                    thread.trace.own.lock().step = true;
                } else if step {
                    go_on(thread, frame, ended.how);
                }
            }
            signal::recompute(thread);
        }
        Kind::Entry | Kind::Exit if ended.signal != 0 => {
            let _ = signal::send_thread(thread, signal::kernel_signal(ended.signal));
        }
        _ => {}
    }
}

/// The signal that is delivered after all: the tracer may have put another in its place.
fn chosen(thread: &Thread, ended: &Ended) -> Option<SigInfo> {
    let info = ended.stop.info?;
    match ended.signal {
        0 => None,
        same if same == info.signal() => Some(info),
        other => {
            let parent = thread.process().parent();
            let uid = thread.kernel.process(parent).map_or(0, |parent| crate::task::uid_of(&parent));
            Some(SigInfo::by_process(other, si::USER, parent, uid))
        }
    }
}

/// Whether the thread's end is still to be reported, and is wanted.
fn is_last(thread: &Thread) -> bool {
    let wanted = thread.trace.tracee().is_some_and(|tracee| tracee.wants(option::TRACEEXIT));
    wanted && !core::mem::replace(&mut thread.trace.own.lock().last, true)
}

/// Begins a stop that a call, or a step, has made due.
fn begin_due(thread: &Thread, frame: &mut Frame) -> bool {
    let Some(tracee) = thread.trace.tracee() else {
        unstep(thread, frame);
        *thread.trace.own.lock() = Own::default();
        thread.trace.due.store(false, Ordering::Relaxed);
        return false;
    };
    let exec = thread.trace.own.lock().exec.take();
    if let Some(old) = exec {
        if tracee.wants(1 << number::EXEC) {
            if begin_event(thread, frame, number::EXEC, old.into()) {
                return true;
            }
        } else if !tracee.seized {
            let own = SigInfo::by_process(SIGTRAP, si::USER, thread.process().pid, thread.cred().uid);
            let _ = signal::send_thread(thread, own);
        }
    }
    let how = tracee.state.lock().how;
    if !how.steps() {
        unstep(thread, frame);
    }
    if core::mem::take(&mut thread.trace.own.lock().exit) {
        match how {
            How::Calls if begin_call(thread, frame, Kind::Exit, &tracee) => return true,
            How::Step => signal::force(thread, SigInfo::fault(SIGTRAP, si::TRAP_BRKPT, frame.program_counter() as u64)),
            _ => {}
        }
    }
    if core::mem::take(&mut thread.trace.own.lock().step) {
        let stop = Stop { kind: Kind::Event, code: SIGTRAP, info: notice(thread, SIGTRAP, SIGTRAP) };
        return begin(thread, frame, stop, None);
    }
    watch_again(thread, frame);
    false
}

/// A signal is about to be delivered: whether the tracer decides about it first, so that the thread is to wait.
pub fn signal_stop(thread: &Thread, frame: &mut Frame, info: &SigInfo) -> bool {
    thread.trace.is_on() && begin(thread, frame, Stop { kind: Kind::Signal, code: info.signal(), info: Some(*info) }, None)
}

/// The thread is to stop, with its process or because its tracer wants it to: whether it waits for its tracer.
pub fn trap(thread: &Thread, frame: &mut Frame) -> bool {
    let Some(tracee) = thread.trace.tracee() else { return false };
    let task = &thread.task;
    let (signal, complete, wanted) = {
        let mut group = task.group.lock();
        thread.clear_work(work::STOP);
        // Under the group's lock: what SIGCONT asks for from here on is asked of the stop that begins now.
        let wanted = core::mem::take(&mut tracee.state.lock().trap);
        match group.stop {
            Some(stop) => {
                thread.signals.stopped.store(true, Ordering::SeqCst);
                (Some(stop.signal), stop::check_complete(&mut group), wanted)
            }
            None => (None, false, wanted),
        }
    };
    if complete {
        notify_parent(task, Report::Stopped(0));
    }
    let stop = match signal {
        _ if tracee.seized && (wanted || signal.is_some()) => {
            let signal = signal.unwrap_or(SIGTRAP);
            let code = signal | number::STOP << 8;
            Stop { kind: Kind::Group, code, info: notice(thread, signal, code) }
        }
        Some(signal) if !tracee.seized => Stop { kind: Kind::Group, code: signal, info: None },
        _ => {
            tracee.settled();
            return false;
        }
    };
    begin(thread, frame, stop, tracee.seized.then_some(0))
}

/// A stop of the process is over: a tracee that was seized is to report it. Under the lock of the group.
pub fn continued(seat: &Seat) {
    if let Some(tracee) = seat.trace.tracee()
        && tracee.seized
    {
        tracee.trap();
    }
}

/// A thread that is about to end, and has stopped for that, looks whether all of the sandbox ends.
pub fn hurry(seat: &Seat) {
    if let Some(tracee) = seat.trace.tracee() {
        tracee.wake();
    }
}

/// Within a call: an event that the tracer wants to know of.
pub async fn event(thread: &Thread, event: u32, message: u64) {
    let Some(tracee) = thread.trace.tracee() else { return };
    if !tracee.wants(1 << event) {
        return;
    }
    let mut frame = thread.frame();
    // The call has no result yet.
    frame.set_result(Errno::ENOSYS.as_result());
    let forced = thread.trace.own.lock().forced;
    if !begin_event(thread, &mut frame, event, message) {
        return;
    }
    stopped(thread).await;
    let mut own = thread.trace.own.lock();
    own.inside = None;
    own.forced = forced;
    let changed = {
        let mut state = tracee.state.lock();
        state.resume = None;
        state.last = None;
        state.registers.is_changed()
    };
    own.late = changed.then_some(tracee);
    drop(own);
    call_goes_on(thread);
}

/// After a stop within a call: how the thread is to go on may have changed.
fn call_goes_on(thread: &Thread) {
    let how = thread.trace.tracee().map_or(How::Run, |tracee| tracee.state.lock().how);
    if let Some(seat) = thread.seat() {
        seat.watch_calls(watch::TRACE, how != How::Run || thread.trace.own.lock().watch.is_some());
    }
}
