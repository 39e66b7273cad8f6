//! Processor time of threads and processes.
//!
//! A machine that can measure another thread's or task's processor time is asked. Where it cannot, a thread that looks leaves its
//! own figure behind ([`crate::thread::ThreadState::cpu_seen`]), and the others count with that.

use core::sync::atomic::Ordering;

use janua_kernel::thread::work;
use janua_port::machine::Usage;
use janua_port::{Context, Nanos};

use crate::{Seat, Task, Thread};

/// A thread's, as far as it is known.
pub fn of_thread(seat: &Seat) -> Nanos {
    let known = seat.cpu_seen.load(Ordering::Relaxed);
    let Some(context) = seat.context() else { return known };
    // A process' only thread has used what the process has and those before it have not.
    let only = || {
        let alone = seat.task.group.lock().threads.len() == 1;
        let all = alone.then(|| context.cpu(true)).flatten();
        all.map(|all| all.saturating_sub(seat.task.usage.threads.time()))
    };
    let now = context.cpu(false).or_else(only).unwrap_or(known).max(known);
    seat.cpu_seen.fetch_max(now, Ordering::Relaxed);
    now
}

/// Has a thread leave its figure behind, where the machine reports it to nobody else: one that runs does so at once, and one that
/// waits uses nothing.
pub fn ask(seat: &Seat) {
    if !seat.is_waiting() && seat.context().is_some_and(|context| context.cpu(false).is_none()) {
        seat.interrupt(work::LOOK);
    }
}

/// The calling thread's. It may wait for a module to find out, which then takes what the machine has counted so far.
pub fn own(thread: &Thread) -> Nanos {
    let counted = |context: &dyn Context| context.cpu(false).or_else(|| Some(context.scheduled()?.ran));
    let now = thread.context().and_then(counted).unwrap_or_default();
    thread.cpu_seen.store(now, Ordering::Relaxed);
    now
}

/// A process': of its live threads and of those that have ended. `caller` is the thread that asks.
pub fn of_task(task: &Task, caller: Option<&Thread>) -> Nanos {
    let threads = task.threads();
    let inside = caller.filter(|thread| core::ptr::eq(&*thread.task, task));
    let mut sum = task.usage.threads.time();
    let whole = threads.first().and_then(|seat| seat.context());
    if threads.len() > 1 || inside.is_none() {
        // One question for all threads.
        if let Some(all) = whole.and_then(|context| context.cpu(true)) {
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

/// What the calling thread has used. Where the machine does not tell user and system time apart, all of it is user time, as for a
/// program that spends its time in its libraries.
pub fn usage_of_caller(thread: &Thread) -> Usage {
    thread.context().and_then(|context| context.usage(false)).unwrap_or_else(|| Usage { user: own(thread), ..Usage::default() })
}

/// What a thread has used.
pub fn usage_of_thread(seat: &Seat) -> Usage {
    let reported = seat.context().and_then(|context| context.usage(false));
    reported.unwrap_or_else(|| Usage { user: of_thread(seat), ..Usage::default() })
}

/// What a process has used: its live threads and those that have ended. `caller` is the thread that asks.
pub fn usage_of_task(task: &Task, caller: Option<&Thread>) -> Usage {
    let reported = match caller.filter(|thread| core::ptr::eq(&*thread.task, task)) {
        Some(thread) => thread.context().and_then(|context| context.usage(true)),
        None => task.threads().first().and_then(|seat| seat.context()?.usage(true)),
    };
    let ended = task.usage.threads.get();
    // A process that took a new place at exec has left what it used before behind: never show less than is known.
    reported.filter(|reported| reported.user + reported.system >= ended.user + ended.system).unwrap_or_else(|| {
        let live = of_task(task, caller).saturating_sub(ended.user + ended.system);
        Usage { user: ended.user + live, ..ended }
    })
}
