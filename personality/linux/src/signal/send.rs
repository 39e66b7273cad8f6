//! Sending: who gets a signal, and what happens at once.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::process::rlimit;
use janua_abi::linux::signal::*;
use janua_kernel::thread::work;

use super::queue::{Full, Queue};
use super::{STOPS, is_signal};
use crate::process::{Group, Report, State};
use crate::signal::SigSet;
use crate::{Kernel, Seat, Task, Thread, ptrace};

/// A signal of the kernel's own, without a sender.
pub fn kernel_signal(signal: u32) -> SigInfo {
    SigInfo::new(signal, si::KERNEL)
}

/// Sends the calling thread a signal for what its call ran into (SIGPIPE, SIGXFSZ). As on Linux the sender is its own process.
pub fn send_self(thread: &Thread, signal: u32) {
    let info = SigInfo::by_process(signal, si::USER, thread.task.pid, thread.cred().uid);
    // What makes submissions for a thread takes no signals itself.
    let seat = thread.kernel.tree.lock().thread(thread.tid());
    // Only real-time signals can fail.
    let _ = send_thread(seat.as_deref().map_or(thread, |seat| &**seat), info);
}

/// Sends a signal to a thread. Fails only for a real-time signal over RLIMIT_SIGPENDING.
pub fn send_thread(thread: &Thread, info: SigInfo) -> Result<(), Full> {
    send(&thread.task, Target::Thread(thread), info).map(drop)
}

/// Sends a signal to a process: whichever thread does not block it takes it. Fails as [`send_thread`].
pub fn send_task(task: &Arc<Task>, info: SigInfo) -> Result<(), Full> {
    send(task, Target::Process, info).map(drop)
}

/// The same, but `runner` of that process takes it if it can: who used the processor time that the signal is for.
pub fn send_runner(task: &Arc<Task>, runner: Option<&Thread>, info: SigInfo) {
    // The kernel's signals are not real-time ones, which alone can fail.
    let _ = send(task, Target::preferring(runner), info);
}

/// Sends a timer's signal: false when it is ignored.
pub fn send_timer(task: &Arc<Task>, target: Target, info: SigInfo) -> bool {
    let (result, queued) = send_locked(task, &mut task.group.lock(), target, info, true);
    queued.finish();
    !matches!(result, Ok(Sent::Ignored))
}

/// Sends a signal to a process by number; false when there is none.
pub fn send_process(kernel: &Kernel, pid: u32, info: SigInfo) -> bool {
    let task = kernel.tree.lock().process(pid).cloned();
    match task {
        Some(task) => {
            // A full queue is the receiver's loss, as with any kernel signal.
            let _ = send_task(&task, info);
            true
        }
        None => false,
    }
}

/// Sends a signal to every member of a process group; false when it has none.
pub fn send_group(kernel: &Kernel, pgrp: u32, info: SigInfo) -> bool {
    let members: Vec<Arc<Task>> = kernel.tree.lock().group(pgrp).cloned().collect();
    for member in &members {
        let _ = send_task(member, info);
    }
    crate::place::forward_group(kernel, pgrp, &info);
    !members.is_empty()
}

/// What is left to do of a signal once locks are gone: those who wait for it otherwise than by being interrupted, and the parent of a
/// process that goes on by it.
#[must_use]
pub struct Queued {
    task: Arc<Task>,
    arrived: bool,
    continued: bool,
}

impl Queued {
    pub fn finish(self) {
        if self.arrived {
            self.task.signalled.wake_all();
        }
        if self.continued {
            crate::task::notify_parent(&self.task, Report::Continued);
        }
    }
}

/// Sends a process a signal while the caller holds the tree, for whom the rest is to do after. A full queue is the receiver's loss.
pub fn queue(task: &Arc<Task>, info: SigInfo) -> Queued {
    send_locked(task, &mut task.group.lock(), Target::Process, info, false).1
}

/// Whom a signal is sent to.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    /// This thread alone.
    Thread(&'a Thread),
    /// Any thread of the process that can take it.
    Process,
    /// The same, this one before all others.
    Runner(&'a Thread),
}

impl<'a> Target<'a> {
    pub fn preferring(runner: Option<&'a Thread>) -> Self {
        runner.map_or(Self::Process, Self::Runner)
    }

    /// The thread that alone is to take it.
    fn only(self) -> Option<&'a Thread> {
        match self {
            Self::Thread(thread) => Some(thread),
            Self::Process | Self::Runner(_) => None,
        }
    }
}

/// What became of a signal.
enum Sent {
    /// It waits to be taken, or has had its effect.
    Pending,
    /// Its process does not hear it.
    Ignored,
}

fn send(task: &Arc<Task>, target: Target, info: SigInfo) -> Result<Sent, Full> {
    let (result, queued) = send_locked(task, &mut task.group.lock(), target, info, false);
    queued.finish();
    result
}

/// `of_timer`: it is a timer's own.
fn send_locked(
    task: &Arc<Task>,
    group: &mut Group,
    target: Target,
    info: SigInfo,
    of_timer: bool,
) -> (Result<Sent, Full>, Queued) {
    let mut queued = Queued { task: task.clone(), arrived: false, continued: false };
    (push(group, target, info, of_timer, &mut queued), queued)
}

fn push(group: &mut Group, target: Target, info: SigInfo, of_timer: bool, queued: &mut Queued) -> Result<Sent, Full> {
    let task = &*queued.task.clone();
    let signal = info.signal();
    // An exit signal may be any eight bits (clone(2)).
    if !is_signal(signal) {
        return Ok(Sent::Pending);
    }
    if group.threads.is_empty() || matches!(group.state, State::Exiting(_) | State::Dead(_)) {
        group.killed |= signal == SIGKILL;
        return Ok(Sent::Pending);
    }
    if crate::place::forward(task, &info) {
        return Ok(Sent::Pending);
    }
    // A stop and a continuation cancel each other, whatever becomes of them after (signal(7)).
    if STOPS.has(signal) {
        discard(task, group, SigSet::of(SIGCONT));
    } else if signal == SIGCONT {
        discard(task, group, STOPS);
        queued.continued = resume(group);
    }
    if signal == SIGKILL {
        exit_group_locked(group, SIGKILL);
        return Ok(Sent::Pending);
    }
    if is_ignored(task, group, target.only(), signal) {
        return Ok(Sent::Ignored);
    }
    let first = group.threads.first().cloned();
    let Some(user) = target.only().or(first.as_deref().map(|seat| &**seat)).map(|thread| thread.charge.lock().user().clone())
    else {
        return Ok(Sent::Pending);
    };
    let limit = task.limits.soft(rlimit::SIGPENDING);
    let add = |queue: &mut Queue| match of_timer {
        true => {
            queue.push_of_timer(info);
            Ok(())
        }
        false => queue.push(info, &user, limit),
    };
    match target.only() {
        Some(thread) => {
            let mut pending = thread.signals.pending.lock();
            add(&mut pending)?;
            thread.signals.pending_set.store(pending.set().0, Ordering::SeqCst);
        }
        None => {
            add(&mut group.pending)?;
            task.pending_set.store(group.pending.set().0, Ordering::SeqCst);
        }
    }
    match target {
        Target::Thread(thread) => {
            if takes(thread, signal) {
                thread.interrupt(work::INTERRUPT);
            }
        }
        // Unless it has ended since it was chosen: nobody else would look at the signal then.
        Target::Runner(thread) if takes(thread, signal) && group.threads.iter().any(|seat| core::ptr::eq(&***seat, thread)) => {
            thread.interrupt(work::INTERRUPT);
        }
        Target::Process | Target::Runner(_) => {
            if let Some(thread) = choose(group, signal) {
                thread.interrupt(work::INTERRUPT);
            }
        }
    }
    queued.arrived = true;
    Ok(Sent::Pending)
}

/// Whether a signal would have no effect. One that is blocked is kept: its action may change before it is unblocked.
fn is_ignored(task: &Task, group: &Group, target: Option<&Thread>, signal: u32) -> bool {
    if !task.actions.read().ignored().has(signal) {
        return false;
    }
    // Nor is one that a tracer wants to see.
    let blocked = |thread: &Thread| thread.trace.is_on() || thread.signals.blocked().union(thread.signals.waited()).has(signal);
    match target {
        Some(thread) => !blocked(thread),
        None => !group.threads.iter().any(|seat| blocked(seat)),
    }
}

/// Whether a thread would take this signal now. What sigtimedwait waits for is unblocked while it waits.
fn takes(thread: &Thread, signal: u32) -> bool {
    !thread.signals.blocked().has(signal)
}

/// The thread that is to take a signal sent to the process: the leader when it can, otherwise the first that can, one that
/// has nothing else to do before one that has.
fn choose(group: &Group, signal: u32) -> Option<Arc<Seat>> {
    let mut fallback = None;
    for seat in &group.threads {
        if takes(seat, signal) && seat.work() & work::KILL == 0 {
            if seat.work() & work::INTERRUPT == 0 {
                return Some(seat.clone());
            }
            fallback = fallback.or_else(|| Some(seat.clone()));
        }
    }
    fallback
}

/// Lets other threads look at process signals of `which` that this thread will not take.
pub fn retarget(task: &Task, thread: &Thread, which: SigSet) {
    let group = task.group.lock();
    retarget_locked(&group, thread, which.and(group.pending.set()));
}

/// The same under the group's lock, for pending signals `which`.
pub fn retarget_locked(group: &Group, thread: &Thread, which: SigSet) {
    let mut which = which;
    for seat in &group.threads {
        if which.is_empty() {
            return;
        }
        if !core::ptr::eq::<Thread>(&***seat, thread) {
            let takes = which.without(seat.signals.blocked());
            if !takes.is_empty() {
                seat.interrupt(work::INTERRUPT);
                which = which.without(takes);
            }
        }
    }
}

/// Forgets pending signals of a process and all its threads.
pub fn discard(task: &Task, group: &mut Group, which: SigSet) {
    group.pending.discard(which);
    task.pending_set.store(group.pending.set().0, Ordering::SeqCst);
    for seat in &group.threads {
        let mut pending = seat.signals.pending.lock();
        pending.discard(which);
        seat.signals.pending_set.store(pending.set().0, Ordering::SeqCst);
    }
}

/// Forgets what is pending of a timer of the process, or of all its timers.
pub fn forget_timer(task: &Task, id: Option<i32>) {
    let mut group = task.group.lock();
    group.pending.forget_timer(id);
    task.pending_set.store(group.pending.set().0, Ordering::SeqCst);
    for seat in &group.threads {
        let mut pending = seat.signals.pending.lock();
        pending.forget_timer(id);
        seat.signals.pending_set.store(pending.set().0, Ordering::SeqCst);
    }
}

/// Ends a job-control stop: whether the parent is to be notified.
fn resume(group: &mut Group) -> bool {
    for seat in &group.threads {
        seat.signals.stop_taken.store(false, Ordering::SeqCst);
    }
    let Some(stop) = group.stop.take() else { return false };
    for seat in &group.threads {
        seat.signals.stopped.store(false, Ordering::SeqCst);
        // A tracer has asked by the same flag, and before the thread may go on: it would get to its next call unseen.
        if !seat.trace.is_on() {
            seat.clear_work(work::STOP);
        }
        ptrace::continued(seat);
        seat.interrupt(0);
    }
    if stop.complete {
        group.report = Some(Report::Continued);
    }
    stop.complete
}

/// Has all threads of a process end with this wait status, unless that has been decided already. A stop is over.
pub fn exit_group_locked(group: &mut Group, status: u32) {
    if matches!(group.state, State::Running) {
        group.state = State::Exiting(status);
        group.stop = None;
        for seat in &group.threads {
            seat.interrupt(work::KILL);
        }
    } else if status == SIGKILL {
        group.threads.iter().for_each(|seat| ptrace::hurry(seat));
    }
}

/// A signal a thread's own instructions cause: it cannot be put off. When it is blocked or ignored the default action is
/// restored first, which ends the process.
pub fn force(thread: &Thread, info: SigInfo) {
    let signal = info.signal();
    let task = &thread.task;
    let group = task.group.lock();
    let actions = task.actions();
    let blocked = thread.signals.blocked();
    if blocked.has(signal) || actions.get(signal).handler == SIG_IGN {
        actions.set(signal, SigAction::default());
        thread.signals.store_blocked(blocked.without(SigSet::of(signal)));
    }
    {
        let mut pending = thread.signals.pending.lock();
        let user = thread.charge.lock().user().clone();
        // Its information must be kept, so the limit does not apply; an older one of the same number is replaced.
        pending.discard(SigSet::of(signal));
        let _ = pending.push(info, &user, u64::MAX);
        thread.signals.pending_set.store(pending.set().0, Ordering::SeqCst);
    }
    drop(group);
    thread.set_work(work::INTERRUPT);
}

/// The wait status of a death by signal that leaves no core file.
pub fn death_status(signal: u32) -> u32 {
    signal
}

/// A signal has a new action (sigaction(2)): forgets what is pending of it if it is ignored now.
pub fn discard_ignored(thread: &Thread, signal: u32) {
    let task = &thread.task;
    if task.actions().ignored().has(signal) {
        let mut group = task.group.lock();
        discard(task, &mut group, SigSet::of(signal));
        drop(group);
        crate::time::posix::ignored(task, signal);
    } else {
        crate::time::posix::heard(task, signal);
    }
}

/// Sends a signal from outside the sandbox (the supervisor, a console) to the first program.
pub fn from_outside(kernel: &Kernel, signal: u32) {
    send_process(kernel, crate::task::tree::FIRST, SigInfo::by_process(signal, si::USER, 0, 0));
}
