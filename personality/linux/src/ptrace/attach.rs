//! How tracing begins and ends: PTRACE_TRACEME, ATTACH, SEIZE and DETACH, and children that are traced as their parent is.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::sync::atomic::Ordering;
use core::task::Poll;

use janua_abi::linux::process::clone;
use janua_abi::linux::ptrace::{event, option};
use janua_abi::linux::signal::{SIGCHLD, SIGSTOP};
use janua_abi::linux::{Errno, Result};
use janua_kernel::thread::work;
use janua_rt::Target;

use super::tracee::{How, Tracee, Tracer, link, release, unlink};
use crate::process::State;
use crate::signal;
use crate::task::tree::INIT;
use crate::task::{CAP_SYS_PTRACE, Tree, access};
use crate::thread::ThreadExt;
use crate::{Seat, Thread};

/// PTRACE_TRACEME: the parent traces the caller.
pub fn trace_me(thread: &Thread) -> Result<()> {
    let seat = thread.seat().ok_or(Errno::EPERM)?;
    let mut tree = thread.kernel.tree.lock();
    let parent = thread.process().parent();
    let task = tree.process(parent).filter(|task| task.pid != INIT).cloned().ok_or(Errno::EPERM)?;
    // The thread that made this process, or the first if that is gone.
    let maker = thread.process().maker.load(Ordering::Relaxed);
    let threads = task.threads();
    let by = threads.iter().find(|seat| seat.tid() == maker).or(threads.first()).ok_or(Errno::EPERM)?;
    let privileged = by.capable(CAP_SYS_PTRACE);
    if !privileged && thread.cred().cap_permitted & !by.cred().cap_permitted != 0 {
        return Err(Errno::EPERM);
    }
    link(&mut tree, &seat, Tracer { pid: parent, tid: by.tid(), privileged }, false, 0)?;
    Ok(())
}

/// PTRACE_ATTACH and PTRACE_SEIZE. A tracee that is stopped already has stopped for its tracer at the end, so that the next request finds
/// it so. ESRCH, EPERM (ptrace(2), "access mode checking").
pub async fn attach(thread: &Thread, tid: u32, seized: bool, options: u32) -> Result<()> {
    let tracee = begin(thread, tid, seized, options)?;
    if !tracee.state.lock().settling {
        return Ok(());
    }
    let mut registration = None;
    poll_fn(|cx| {
        if registration.is_none() {
            registration = Some(tracee.answered.register(Target::Task(cx.waker().clone()), u32::MAX));
        }
        let state = tracee.state.lock();
        let over = !state.settling || !state.attached || state.ended.is_some() || thread.work() & work::KILL != 0;
        if over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    Ok(())
}

/// Makes the caller the tracer.
fn begin(thread: &Thread, tid: u32, seized: bool, options: u32) -> Result<Arc<Tracee>> {
    let seat = thread.kernel.thread(tid).ok_or(Errno::ESRCH)?;
    let task = seat.task.clone();
    if task.pid == thread.process().pid {
        return Err(Errno::EPERM);
    }
    let tracee = {
        // Exec either finds the tracer or has given the process its new rights.
        let _held = access::hold(&task);
        access::check_call(thread, &seat)?;
        let mut tree = thread.kernel.tree.lock();
        let group = task.group.lock();
        let alive = group.threads.iter().any(|other| Arc::ptr_eq(other, &seat));
        if !alive || !matches!(group.state, State::Running) {
            return Err(if alive { Errno::EPERM } else { Errno::ESRCH });
        }
        let tracee = link(&mut tree, &seat, Tracer::of(thread), seized, options)?;
        if group.stop.is_some() {
            // It is stopped already: from now on for its tracer.
            tracee.state.lock().settling = seat.signals.stopped.load(Ordering::SeqCst);
            seat.interrupt(work::STOP);
        }
        tracee
    };
    if !seized {
        let _ = signal::send_thread(&seat, signal::kernel_signal(SIGSTOP));
    }
    Ok(tracee)
}

/// PTRACE_DETACH of a stopped tracee, with a signal or 0.
pub fn detach(thread: &Thread, tracee: &Arc<Tracee>, signal: u32) -> Result<()> {
    let mut tree = thread.kernel.tree.lock();
    if tracee.state.lock().stop.is_none() {
        return Err(Errno::ESRCH);
    }
    unlink(&mut tree, tracee);
    drop(tree);
    release(tracee, signal);
    Ok(())
}

/// How a thread about to be made concerns its maker's tracer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Birth {
    /// The event that is reported to the tracer, if it has asked for it.
    pub event: Option<u32>,
    /// It is traced, too.
    traced: bool,
}

/// What a clone with these flags is to the caller's tracer.
pub fn birth(thread: &Thread, flags: u64, exit_signal: u32) -> Birth {
    let Some(tracee) = thread.trace.tracee() else { return Birth::default() };
    let kind = match () {
        () if flags & clone::UNTRACED != 0 => return Birth::default(),
        () if flags & clone::VFORK != 0 => event::VFORK,
        () if exit_signal != SIGCHLD => event::CLONE,
        () => event::FORK,
    };
    let event = tracee.wants(1 << kind).then_some(kind);
    Birth { event, traced: event.is_some() || flags & clone::PTRACE != 0 }
}

/// A new thread of a traced one is in the tree and does not run yet.
pub fn born(thread: &Thread, tree: &mut Tree, seat: &Arc<Seat>, birth: Birth) {
    let Some(parent) = thread.trace.tracee().filter(|_| birth.traced) else { return };
    let options = parent.state.lock().options;
    let Ok(tracee) = link(tree, seat, parent.tracer(), parent.seized, options) else { return };
    if parent.seized {
        due(&tracee, seat);
    } else {
        let user = seat.charge.lock().user().clone();
        let mut pending = seat.signals.pending.lock();
        let _ = pending.push(signal::kernel_signal(SIGSTOP), &user, u64::MAX);
        seat.signals.pending_set.store(pending.set().0, Ordering::SeqCst);
        seat.set_work(work::INTERRUPT);
    }
}

/// A stop is due before the thread's first instruction.
fn due(tracee: &Tracee, seat: &Seat) {
    tracee.state.lock().trap = true;
    seat.set_work(work::STOP);
}

/// A thread that does not run yet is traced by another, as by PTRACE_SEIZE and PTRACE_INTERRUPT: it stops before its first instruction.
pub fn held(tree: &mut Tree, seat: &Arc<Seat>, by: &Seat) -> Result<()> {
    let tracer = Tracer { pid: by.task.pid, tid: by.tid(), privileged: by.capable(CAP_SYS_PTRACE) };
    due(&*link(tree, seat, tracer, true, 0)?, seat);
    Ok(())
}

/// It could not be started after all.
pub fn unborn(tree: &mut Tree, seat: &Seat) {
    if let Some(tracee) = seat.trace.tracee() {
        unlink(tree, &tracee);
    }
}

/// PTRACE_SETOPTIONS and PTRACE_SEIZE take these options. EINVAL.
pub fn options(word: usize) -> Result<u32> {
    let options = u32::try_from(word).map_err(|_| Errno::EINVAL)?;
    if options & !option::KNOWN != 0 { Err(Errno::EINVAL) } else { Ok(options) }
}

/// Lets a stopped tracee go on. EIO for what is no signal.
pub fn go_on(tracee: &Tracee, signal: usize, how: How) -> Result<()> {
    tracee.resume(signal_number(signal)?, how)
}

/// A signal that goes with a stop's end. EIO.
pub fn signal_number(word: usize) -> Result<u32> {
    u32::try_from(word).ok().filter(|&number| number == 0 || signal::is_signal(number)).ok_or(Errno::EIO)
}
