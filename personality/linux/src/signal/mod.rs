//! Signals (signal(7)).
//!
//! A signal is *sent* to a process or a thread ([`send`]), is *pending* in a [`Queue`], and is *delivered* by the thread itself
//! on its return to user mode ([`deliver`]).
//!
//! No signal is lost between the two: a sender queues first and flags [`work::INTERRUPT`] after; a thread clears the flag first
//! and looks into the queues after, and a thread that changes its mask stores the mask first and looks at the queues after,
//! while the sender looks at the mask after it has queued. In each pair one side sees the other.
//!
//! [`work::INTERRUPT`]: janua_kernel::thread::work::INTERRUPT

pub mod action;
pub mod altstack;
pub mod calls;
pub mod coredump;
pub mod deliver;
pub mod fault;
pub mod kill;
pub mod queue;
pub mod send;
pub mod set;
pub mod signalfd;

pub use action::Actions;
pub use janua_abi::linux::signal::SigInfo;
pub use queue::{Full, Queue};
pub use send::{
    Target, death_status, force, kernel_signal, send_group, send_process, send_runner, send_self, send_task, send_thread,
    send_timer,
};
pub use set::SigSet;

use janua_abi::linux::signal::*;
use janua_kernel::thread::work;

use crate::Thread;
use crate::thread::ThreadExt;

/// Signals a thread's own instructions cause: taken before all others, so that the handler's frame shows the instruction.
pub const SYNCHRONOUS: SigSet = sets(&[SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGSYS]);
/// Signals that stop by default.
pub const STOPS: SigSet = sets(&[SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU]);
/// Signals that can be neither blocked, nor caught, nor ignored.
pub const UNBLOCKABLE: SigSet = sets(&[SIGKILL, SIGSTOP]);

const fn sets(signals: &[u32]) -> SigSet {
    let mut set = SigSet::EMPTY;
    let mut at = 0;
    while at < signals.len() {
        set = set.with(signals[at]);
        at += 1;
    }
    set
}

/// A signal's number as people write it: "SIGINT", "SIGRT_3".
pub struct SignalName(pub u32);

impl core::fmt::Display for SignalName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match name(self.0) {
            Some(name) => f.write_str(name),
            None if self.0 >= SIGRTMIN => write!(f, "SIGRT_{}", self.0 - SIGRTMIN),
            None => write!(f, "signal {}", self.0),
        }
    }
}

/// Whether a number names a signal (1..=64).
pub fn is_signal(number: u32) -> bool {
    (1..=SIGMAX).contains(&number)
}

/// The signals that are pending for a thread and not blocked.
pub fn deliverable(thread: &Thread) -> SigSet {
    thread.signals.pending().union(thread.process().pending()).without(thread.signals.blocked())
}

/// Flags work when something is deliverable. For the thread itself, after its mask has changed.
pub fn recompute(thread: &Thread) {
    if !deliverable(thread).is_empty() {
        thread.set_work(work::INTERRUPT);
    }
}

/// Sets the calling thread's mask. SIGKILL and SIGSTOP stay unblocked.
pub fn set_mask(thread: &Thread, mask: SigSet) {
    let old = thread.signals.blocked();
    let mask = mask.without(UNBLOCKABLE);
    thread.signals.store_blocked(mask);
    let newly = mask.without(old);
    if !newly.and(thread.process().pending()).is_empty() {
        // Somebody else must take what this thread no longer will.
        send::retarget(&thread.task, thread, newly);
    }
    recompute(thread);
}

/// See [`ThreadExt::set_temporary_mask`].
pub fn set_temporary_mask(thread: &Thread, mask: SigSet) {
    {
        let mut saved = thread.signals.saved.lock();
        if saved.is_none() {
            *saved = Some(thread.signals.blocked());
        }
    }
    thread.set_work(work::RESTORE);
    set_mask(thread, mask);
}

/// Takes one of `wanted` out of what is pending for the thread or its process; what waits for the thread alone comes first.
pub fn dequeue(thread: &Thread, wanted: SigSet) -> Option<SigInfo> {
    if thread.signals.pending().union(thread.process().pending()).and(wanted).is_empty() {
        return None;
    }
    loop {
        let (mut info, of_timer) = take(thread, wanted)?;
        if info.signal() == SIGALRM {
            crate::time::interval::real_taken(&thread.task);
        }
        // The signal of a timer that has been deleted or set anew since is no longer valid.
        if !of_timer || crate::time::posix::delivered(&thread.task, &mut info) {
            return Some(info);
        }
    }
}

fn take(thread: &Thread, wanted: SigSet) -> Option<(SigInfo, bool)> {
    // Marked before a queue's lock is given up: a continuation that finds the queue without the signal finds the mark.
    let mark = |info: &Option<(SigInfo, bool)>| {
        if info.as_ref().is_some_and(|(info, _)| STOPS.has(info.signal())) {
            thread.signals.stop_taken.store(true, core::sync::atomic::Ordering::SeqCst);
        }
    };
    let own = {
        let mut pending = thread.signals.pending.lock();
        let info = pending.take_with_origin(wanted);
        mark(&info);
        thread.signals.pending_set.store(pending.set().0, core::sync::atomic::Ordering::SeqCst);
        info
    };
    own.or_else(|| {
        let process = thread.process();
        let mut group = process.group.lock();
        let info = group.pending.take_with_origin(wanted);
        mark(&info);
        process.pending_set.store(group.pending.set().0, core::sync::atomic::Ordering::SeqCst);
        info
    })
}
