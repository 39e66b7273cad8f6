//! The end of threads and processes, and of the whole sandbox.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::signal::{SIG_IGN, SIGCHLD, SIGCONT, SIGHUP, SigInfo, sa, si};
use janua_abi::linux::time::TICK;
use janua_kernel::UserPtr;
use janua_kernel::thread::work;
use janua_object::fdtable::FdTable;
use janua_port::machine::Outside;
use janua_port::outside::over;

use super::clone::Place;
use super::tree::{DEBUGGER, FIRST, INIT, Tree};
use crate::process::{Report, State};
use crate::signal::send::{self, Queued};
use crate::signal::{self, SignalName};
use crate::thread::ThreadExt;
use crate::{Kernel, Task, Thread, futex, ptrace, time};

/// The end of the sandbox: begun when the first program ends, complete when no process lives.
pub struct Ending {
    /// The exit code, [`Ending::NOT_YET`] before the first program has ended.
    code: AtomicU32,
    /// Processes with threads.
    live: AtomicU32,
}

impl Default for Ending {
    fn default() -> Ending {
        Ending { code: AtomicU32::new(Ending::NOT_YET), live: AtomicU32::new(0) }
    }
}

impl Ending {
    const NOT_YET: u32 = u32::MAX;

    /// Whether no process may be born any more.
    pub fn has_begun(&self) -> bool {
        self.code.load(Ordering::SeqCst) != Ending::NOT_YET
    }

    /// Counts a process that has got its first thread.
    pub fn born(&self) {
        self.live.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes a process back that never ran.
    pub fn unborn(&self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

/// exit(2) as the call: ends the calling thread.
pub fn exit(thread: &Thread, code: i32) {
    thread.exit_status.store((code as u32 & 0xff) << 8, Ordering::Relaxed);
    thread.leaves.store(true, Ordering::Relaxed);
    thread.set_work(work::KILL);
}

/// exit_group(2).
pub fn exit_group(thread: &Thread, code: i32) {
    end_group(thread, (code as u32 & 0xff) << 8);
}

/// Ends the calling thread's whole process with a wait status.
pub fn end_group(thread: &Thread, status: u32) {
    send::exit_group_locked(&mut thread.process().group.lock(), status);
    thread.set_work(work::KILL);
}

/// The exit code outside for a wait status: the program's own, or 128 and the signal.
fn exit_code(status: u32) -> u8 {
    let signal = status & 0x7f;
    if signal != 0 { 128 + signal as u8 } else { (status >> 8) as u8 }
}

/// What a thread does with its memory before it loses it, by its end or by exec: gives up its robust locks, and stores 0 at
/// set_tid_address(2)'s address, for the thread that joins it.
pub fn leave_memory(thread: &Thread) {
    futex::robust::exit_robust_list(thread);
    let address = thread.clear_child_tid.swap(0, Ordering::Relaxed);
    let process = thread.process();
    let others = process.group.lock().threads.len() > 1 || process.mm().is_some_and(|mm| mm.is_shared());
    // Nobody is left to see it otherwise.
    if address != 0 && others {
        let _ = UserPtr::<u32>::new(address).write(thread.user(), &0);
        futex::wake::futex_wake_addr(thread, address);
    }
}

/// Ends the calling thread, and its process when it is the last. After this the thread must not return to user code.
pub fn end_thread(thread: &Thread) {
    crate::ring::leave(thread);
    thread.close_queues();
    crate::uring::leave(thread);
    leave_memory(thread);
    futex::robust::end(thread);
    super::clone::release_vfork(thread);
    let task = &thread.task;
    let used = crate::time::cpu::usage_of_caller(thread);
    let seat = thread.kernel.tree.lock().remove_thread(thread.tid());
    let mut counted = Some((Place::of(thread), thread.charge.lock().hand_over()));
    let mut stop_complete = false;
    let ended = {
        let mut group = task.group.lock();
        // By address: among many threads a look at each would fetch its memory. Most that end are young.
        if let Some(at) = group.threads.iter().rposition(|other| Arc::as_ptr(other) == seat.as_ptr()) {
            group.threads.remove(at);
        }
        if let (Some(_), [last]) = (&group.dump, &group.threads[..]) {
            last.interrupt(0);
        }
        task.usage.threads.add(used);
        task.usage.io.add(&thread.io);
        *task.last_comm.lock() = thread.comm();
        *task.last_cred.write() = Some(thread.cred());
        if thread.tid() == task.pid || group.threads.is_empty() {
            task.last_sched.keep(&thread.sched);
        }
        let own = thread.exit_status.load(Ordering::Relaxed);
        let pending = group.pending.set();
        send::retarget_locked(&group, thread, pending);
        if group.threads.is_empty() {
            *task.counted.lock() = counted.take();
        }
        match group.state {
            _ if !group.threads.is_empty() => {
                stop_complete = super::stop::check_complete(&mut group);
                None
            }
            State::Running => Some(own),
            State::Exiting(status) | State::Dead(status) => Some(status),
        }
    };
    super::access::wait_for_holders(task);
    // Who still has the thread does not keep its directory; and who may look into it, now that it is found no more, has done so.
    *thread.fs.write() = thread.kernel.root.clone();
    leave_files(thread);
    drop(counted);
    if stop_complete {
        notify_parent(task, Report::Stopped(0));
    }
    ptrace::tracer_ends(thread, ended.is_some());
    ptrace::thread_ended(thread, thread_status(thread));
    match ended {
        Some(status) => end_process(thread, status),
        // A thread in exec may be waiting for this one.
        None => task.changes.wake_all(),
    }
}

/// The wait status of a thread that ends.
pub fn thread_status(thread: &Thread) -> u32 {
    match thread.process().group.lock().state {
        _ if thread.leaves.load(Ordering::Relaxed) => thread.exit_status.load(Ordering::Relaxed),
        State::Running => thread.exit_status.load(Ordering::Relaxed),
        State::Exiting(status) | State::Dead(status) => status,
    }
}

/// What must be sent once the tree's lock is gone.
#[derive(Default)]
pub struct Letters {
    signals: Vec<(Arc<Task>, SigInfo)>,
    /// Parents who have a child's signal already, so that nobody sees it without the ended child, or the child without it.
    parents: Vec<(Arc<Task>, Option<Queued>)>,
    /// The first program, of whose end its debugger knows now.
    first: Option<Arc<Task>>,
}

impl Letters {
    pub fn deliver(self) {
        for (task, info) in self.signals {
            // A full queue is the receiver's loss.
            let _ = send::send_task(&task, info);
        }
        for (parent, queued) in self.parents {
            if let Some(queued) = queued {
                queued.finish();
            }
            parent.children.wake_all();
        }
        if let Some(first) = self.first {
            begin_ending(&first.kernel, first.ended().unwrap_or(0));
        }
    }
}

fn end_process(thread: &Thread, status: u32) {
    let kernel = &thread.kernel;
    let task = &thread.task;
    crate::usage::note_peak(thread);
    if kernel.tracer.is_on() {
        trace_end(thread, status);
    }
    time::forget(task);
    close_files(thread);
    if task.announced.load(Ordering::SeqCst) {
        kernel.files.inotify.silence_process(task.pid);
    }
    crate::ipc::process_ended(thread);
    *task.fs.write() = kernel.root.clone();
    kernel.vfs.watches.released();
    // The last user of an address space takes its mappings and files with it; outside the lock, for that may take a while.
    let mm = task.mm.write().take();
    if let Some(mm) = mm {
        mm.leave();
    }
    if super::is_session_leader(task) {
        super::session::leader_ends(kernel, task);
    }

    let mut letters = Letters::default();
    let known = {
        let mut tree = kernel.tree.lock();
        orphan_children(&mut tree, task, &mut letters);
        if let Some(parent) = tree.process(task.parent()).cloned() {
            orphan_group(&tree, task, &parent, Some(task.pid), &mut letters);
        }
        task.group.lock().state = State::Dead(status);
        ptrace::parent_learns(&mut tree, task);
        reap(&mut tree, task, &mut letters);
        // The debugger, which ends with the sandbox, has to report first.
        tree.tracee(task.pid).is_none_or(|tracee| tracee.tracer != DEBUGGER)
    };
    letters.deliver();
    ptrace::process_ended(task, status);
    task.changes.wake_all();
    crate::place::guest::ended(task, status);
    crate::outside::program_ended(kernel, task.outer.load(Ordering::Relaxed), status);
    if task.pid == FIRST && known {
        begin_ending(kernel, status);
    }
    if kernel.ending.live.fetch_sub(1, Ordering::SeqCst) == 1 {
        let code = kernel.ending.code.load(Ordering::SeqCst);
        if code != Ending::NOT_YET {
            if kernel.stats.is_on() {
                let mut report = kernel.stats.report(kernel.table.rows(), kernel.compat.rows());
                report.push_str(&kernel.modules.report());
                report.push_str(&kernel.modules.offload.report());
                if let Some(jail) = kernel.jail {
                    report.push_str(&jail.report());
                }
                report.push_str(&crate::tiles::report(kernel));
                kernel.machine.console().write(report.as_bytes());
            }
            finish_files(kernel);
            crate::tiles::farewell(kernel);
            over(kernel.machine, code as u8);
        }
    }
}

/// Leaves the file systems as they should be found, or reports what is lost.
fn finish_files(kernel: &Kernel) {
    for mount in kernel.vfs.mounts() {
        if let Err(errno) = mount.fs.finish() {
            let source = alloc::string::String::from_utf8_lossy(&mount.source);
            let text = format!("janua: {source}: not everything could be written back: {errno:?}\n");
            kernel.machine.console().write(text.as_bytes());
        }
    }
}

/// The last line of a process in the trace.
fn trace_end(thread: &Thread, status: u32) {
    let pid = thread.process().pid;
    let line = match cause(status) {
        (si::CLD_EXITED, code) => format!("[{pid}] +++ exited with {code} +++"),
        (_, number) => format!("[{pid}] +++ killed by {} +++", SignalName(number as u32)),
    };
    thread.kernel.tracer.line(&line);
}

/// Gives the process' record locks and descriptors up.
fn close_files(thread: &Thread) {
    crate::uring::aio::forget(thread);
    thread.kernel.files.locks.release_process(thread.process().pid);
    let files = core::mem::take(&mut *thread.process().files.write());
    super::put_files(thread, files);
}

/// Gives up the descriptors of a thread that ends.
fn leave_files(thread: &Thread) {
    let files = core::mem::take(&mut *thread.files.write());
    leave_table(thread, files);
}

/// Gives up a table that was a thread's. Where only its process has it besides, that gets the one of its first thread.
pub fn leave_table(thread: &Thread, files: Arc<FdTable>) {
    let process = thread.process();
    if Arc::strong_count(&files) == 2
        && let Some(first) = process.group.lock().threads.first()
    {
        let mut leaders = process.files.write();
        if Arc::ptr_eq(&leaders, &files) {
            *leaders = first.files();
        }
    }
    super::put_files(thread, files);
}

/// Who adopts the children of a process: the nearest ancestor that asked for it (PR_SET_CHILD_SUBREAPER), or init.
fn reaper(tree: &Tree, task: &Task) -> u32 {
    let mut pid = task.parent();
    while pid > INIT {
        let Some(ancestor) = tree.process(pid) else { break };
        if ancestor.settings.subreaper.load(Ordering::Relaxed) && !is_ending(ancestor) {
            return pid;
        }
        pid = ancestor.parent();
    }
    INIT
}

fn is_ending(task: &Task) -> bool {
    task.group.lock().threads.is_empty()
}

fn orphan_children(tree: &mut Tree, task: &Arc<Task>, letters: &mut Letters) {
    let reaper = reaper(tree, task);
    let children: Vec<Arc<Task>> = tree.children(task.pid, None).cloned().collect();
    // Groups that lose a member's parent; each is looked at once, when all have lost theirs.
    let mut left = BTreeMap::new();
    for child in children {
        tree.set_parent(&child, reaper);
        child.exit_signal.store(SIGCHLD, Ordering::Relaxed);
        if let State::Dead(_) = child.group.lock().state {
        } else {
            for seat in child.threads() {
                let signal = seat.death_signal.load(Ordering::Relaxed);
                if signal != 0 {
                    letters.signals.push((child.clone(), SigInfo::by_process(signal, si::USER, task.pid, super::uid_of(task))));
                }
            }
        }
        if child.ended().is_some() {
            reap(tree, &child, letters);
        } else if tree.holds(child.pgrp(), &child, task) {
            left.insert(child.pgrp(), child);
        }
    }
    for member in left.values() {
        orphan_group(tree, member, task, None, letters);
    }
}

/// When the group of `member` becomes orphaned because it loses its `parent`, or because it is `gone` itself, and has stopped
/// members, they get SIGHUP and SIGCONT (POSIX, exit). A group that was orphaned before gets nothing: nobody has left it who could
/// have continued it, which is a member whose parent is in another group of the same session.
fn orphan_group(tree: &Tree, member: &Task, parent: &Task, gone: Option<u32>, letters: &mut Letters) {
    let pgrp = member.pgrp();
    if !tree.holds(pgrp, member, parent) {
        return;
    }
    let stopped = |member: &Arc<Task>| Some(member.pid) != gone && member.group.lock().stop.is_some();
    if tree.group(pgrp).any(stopped) && tree.is_orphaned_without(pgrp, gone) {
        for member in tree.group(pgrp) {
            letters.signals.push((member.clone(), signal::kernel_signal(SIGHUP)));
            letters.signals.push((member.clone(), signal::kernel_signal(SIGCONT)));
        }
    }
}

/// Notifies the parent of an ended process; takes the process out when nobody will wait for it. One that is traced by somebody else is
/// left to the tracer first.
pub fn reap(tree: &mut Tree, task: &Arc<Task>, letters: &mut Letters) {
    if tree.tracee(task.pid).is_some() {
        return;
    }
    if task.pid == FIRST && task.kernel.config.debugger.is_some() {
        letters.first = Some(task.clone());
    }
    let Some(parent) = tree.process(task.parent()).filter(|parent| parent.pid != INIT).cloned() else {
        tree.remove_process(task);
        return;
    };
    // Another signal was agreed with the program that made the child; what the parent runs now may have more rights than that.
    let same_program = task.parent_program.load(Ordering::Relaxed) == parent.program();
    let signal = if same_program { task.exit_signal.load(Ordering::Relaxed) } else { SIGCHLD };
    let action = parent.actions().get(SIGCHLD);
    let unwanted = signal == SIGCHLD && (action.handler == SIG_IGN || action.flags & sa::NOCLDWAIT != 0);
    if unwanted {
        tree.remove_process(task);
    }
    // With SA_NOCLDWAIT the signal is still sent; with SIG_IGN it would be dropped on arrival.
    let info = task.ended().filter(|_| signal != 0).map(|status| child_info(task, signal, status));
    let queued = info.map(|info| send::queue(&parent, info));
    letters.parents.push((parent, queued));
}

/// `si_code` and `si_status` of a wait status.
pub fn cause(status: u32) -> (i32, i32) {
    let signal = status & 0x7f;
    if signal == 0 {
        (si::CLD_EXITED, (status >> 8 & 0xff) as i32)
    } else if status & janua_abi::linux::process::WCOREFLAG != 0 {
        (si::CLD_DUMPED, signal as i32)
    } else {
        (si::CLD_KILLED, signal as i32)
    }
}

/// User and system time of the threads that have ended, in clock ticks.
fn ticks(task: &Task) -> (u64, u64) {
    let used = task.usage.threads.get();
    (used.user / TICK, used.system / TICK)
}

fn child_info(task: &Task, signal: u32, status: u32) -> SigInfo {
    let (code, status) = cause(status);
    let (user, system) = ticks(task);
    SigInfo::child(signal, code, task.pid, super::uid_of(task), status, user, system)
}

/// Notifies the parent that a process has stopped or continued (SIGCHLD unless SA_NOCLDSTOP), and wakes its waits. For a stop
/// the signal is taken from the process' own state.
pub fn notify_parent(task: &Arc<Task>, what: Report) {
    let kernel = &task.kernel;
    let (code, status) = match what {
        Report::Stopped(_) => match task.group.lock().stop {
            Some(stop) => (si::CLD_STOPPED, stop.signal as i32),
            // Continued meanwhile.
            None => return,
        },
        Report::Continued => (si::CLD_CONTINUED, SIGCONT as i32),
    };
    if task.pid == FIRST && code == si::CLD_STOPPED {
        kernel.machine.notify_outside(Outside::Stopped(status as u32));
    }
    let (parent, traced) = {
        let tree = kernel.tree.lock();
        let parent = tree.process(task.parent()).filter(|parent| parent.pid != INIT).cloned();
        (parent, tree.tracee(task.pid).map(|tracee| tracee.tracer))
    };
    crate::place::guest::changed(task, what);
    let Some(parent) = parent else { return };
    if code == si::CLD_STOPPED && traced == Some(parent.pid) {
        // It learns of each thread's stop.
        return;
    }
    let action = parent.actions().get(SIGCHLD);
    if action.handler != SIG_IGN && action.flags & sa::NOCLDSTOP == 0 {
        let (user, system) = ticks(task);
        let info = SigInfo::child(SIGCHLD, code, task.pid, super::uid_of(task), status, user, system);
        let _ = send::send_task(&parent, info);
    }
    parent.children.wake_all();
}

/// The first program has ended: everything else goes with it.
fn begin_ending(kernel: &Kernel, status: u32) {
    if kernel.ending.has_begun() {
        return;
    }
    let others: Vec<Arc<Task>> = {
        // Under the tree's lock, so that a process being born either is seen here or sees the mark.
        let tree = kernel.tree.lock();
        kernel.ending.code.store(u32::from(exit_code(status)), Ordering::SeqCst);
        tree.processes().cloned().collect()
    };
    kernel.machine.notify_outside(Outside::Ended(status));
    for task in others {
        send::exit_group_locked(&mut task.group.lock(), janua_abi::linux::signal::SIGKILL);
    }
}
