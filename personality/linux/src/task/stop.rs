//! Job-control stops of a whole process.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::sync::atomic::Ordering;
use core::task::Poll;

use janua_kernel::thread::work;

use super::notify_parent;
use crate::Thread;
use crate::process::{Group, Report, State, Stop};
use crate::signal::coredump;
use crate::thread::ThreadExt;

/// Begins a stop of the calling thread's process, by a signal the thread has taken. The thread itself stops in [`join`].
pub fn begin(thread: &Thread, signal: u32) {
    let mut group = thread.process().group.lock();
    if !thread.signals.stop_taken.swap(false, Ordering::SeqCst) {
        // Continued since the thread took the signal.
        return;
    }
    if group.stop.is_some() || !matches!(group.state, State::Running) || group.exec.is_some() {
        return;
    }
    group.stop = Some(Stop { signal, complete: false });
    for seat in &group.threads {
        if !core::ptr::eq::<Thread>(&***seat, thread) {
            seat.interrupt(work::STOP);
        }
    }
    thread.set_work(work::STOP);
}

/// When a stop is in force, the calling thread takes part in it: whether it must wait.
pub fn join(thread: &Thread) -> bool {
    let task = &thread.task;
    let complete = {
        let mut group = task.group.lock();
        if thread.trace.is_on() {
            // A tracer has come since: it has asked by the same flag.
            return false;
        }
        thread.clear_work(work::STOP);
        if group.stop.is_none() {
            return false;
        }
        thread.signals.stopped.store(true, Ordering::SeqCst);
        check_complete(&mut group)
    };
    if complete {
        notify_parent(task, Report::Stopped(0));
    }
    true
}

/// Notes when the last thread has stopped: whether the parent is to be notified now.
pub fn check_complete(group: &mut Group) -> bool {
    let all = group.threads.iter().all(|seat| seat.signals.stopped.load(Ordering::SeqCst));
    match &mut group.stop {
        Some(stop) if all && !stop.complete => {
            stop.complete = true;
            group.report = Some(Report::Stopped(stop.signal));
            true
        }
        _ => false,
    }
}

/// Waits until the stop is over or the thread is killed; either wakes the thread.
pub async fn stopped(thread: &Thread) {
    poll_fn(|_| {
        let over = {
            let process: &crate::process::Process = thread.process();
            let group = process.group.lock();
            match &group.dump {
                // Who writes the core file waits for the others to end.
                Some(dump) if dump.is_by(thread.tid()) => coredump::is_alone(&group),
                // Its tracer keeps it from now on, if it has one.
                _ if thread.trace.is_on() => true,
                _ => thread.work() & work::KILL != 0 || group.stop.is_none() || !matches!(group.state, State::Running),
            }
        };
        if over {
            thread.signals.stopped.store(false, Ordering::SeqCst);
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Whether every thread of a process is in a stop, for /proc/PID/stat.
pub fn is_stopped(task: &Arc<crate::Task>) -> bool {
    task.group.lock().stop.is_some_and(|stop| stop.complete)
}
