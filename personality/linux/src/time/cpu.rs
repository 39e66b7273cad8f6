//! Processor time of threads and processes.
//!
//! A machine that can measure another thread's or task's processor time is asked. Where it cannot, a thread that looks leaves its
//! own figure behind ([`crate::thread::ThreadState::cpu_seen`]), and the others count with that.

use core::sync::atomic::Ordering;

use janua_port::Nanos;
use janua_port::machine::ThreadId;

use crate::{Seat, Task, Thread};

/// A thread's, as far as it is known.
pub fn of_thread(seat: &Seat) -> Nanos {
    let known = seat.cpu_seen.load(Ordering::Relaxed);
    let id = seat.machine_id();
    if id == ThreadId(0) {
        return known;
    }
    let now = seat.machine().clock().cpu_of(id, false).unwrap_or(known).max(known);
    seat.cpu_seen.fetch_max(now, Ordering::Relaxed);
    now
}

/// The calling thread's.
pub fn own(thread: &Thread) -> Nanos {
    let now = thread.machine().clock().thread_cpu();
    thread.cpu_seen.store(now, Ordering::Relaxed);
    now
}

/// A process': of its live threads and of those that have ended. `caller` is the thread that asks.
pub fn of_task(task: &Task, caller: Option<&Thread>) -> Nanos {
    let threads = task.threads();
    let inside = caller.filter(|thread| core::ptr::eq(&*thread.task, task));
    let mut sum = task.usage.threads.load(Ordering::Relaxed);
    let whole = threads.first().map(|seat| seat.machine_id()).filter(|id| *id != ThreadId(0));
    if threads.len() > 1 || inside.is_none() {
        // One question for all threads.
        if let Some(all) = whole.and_then(|id| task.kernel.machine.clock().cpu_of(id, true)) {
            return all.max(sum);
        }
    }
    for seat in &threads {
        sum += match inside {
            Some(thread) if thread.tid() == seat.tid() => own(thread),
            _ => of_thread(seat),
        };
    }
    sum
}

/// User and system time. The kernel's own work is done on the guest's account without a switch worth timing, so all of it is
/// user time, as it is for a program that spends its time in its libraries.
pub fn split_of_task(task: &Task, caller: Option<&Thread>) -> (Nanos, Nanos) {
    (of_task(task, caller), 0)
}

/// User and system time of children that have been waited for.
pub fn split_of_children(task: &Task) -> (Nanos, Nanos) {
    (task.usage.children.load(Ordering::Relaxed), 0)
}
