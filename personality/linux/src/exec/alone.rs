//! Becoming the only thread of a process, as exec must (execve(2), "Effect on process attributes").

use core::future::poll_fn;
use core::sync::atomic::Ordering;
use core::task::Poll;

use janua_abi::linux::signal::StackT;
use janua_abi::linux::{Errno, Result};
use janua_kernel::thread::work;
use janua_rt::Target;

use crate::process::State;
use crate::thread::ThreadExt;
use crate::{Thread, ptrace};

/// Ends the other threads of the process and waits until they are gone; the caller is the leader then, with the process's
/// number. EAGAIN when another thread is in exec already, EINTR when the process is being killed. Signals do not interrupt:
/// they find the new program.
pub async fn de_thread(thread: &Thread) -> Result<()> {
    let task = &thread.task;
    {
        let mut group = task.group.lock();
        if !matches!(group.state, State::Running) || group.exec.is_some() {
            return Err(Errno::EAGAIN);
        }
        if group.threads.len() == 1 && thread.tid() == task.pid {
            return Ok(());
        }
        group.exec = Some(thread.tid());
        for seat in &group.threads {
            if !core::ptr::eq::<Thread>(&***seat, thread) {
                seat.interrupt(work::KILL);
            }
        }
    }
    let alone = || task.group.lock().threads.len() <= 1;
    let mut registration = None;
    let result = poll_fn(|cx| {
        if alone() {
            return Poll::Ready(Ok(()));
        }
        if registration.is_none() {
            registration = Some(task.changes.register(Target::Task(cx.waker().clone()), u32::MAX));
            if alone() {
                return Poll::Ready(Ok(()));
            }
        }
        if thread.work() & work::KILL != 0 {
            return Poll::Ready(Err(Errno::EINTR));
        }
        Poll::Pending
    })
    .await;
    drop(registration);
    if result.is_ok() && thread.tid() != task.pid {
        let mut tree = thread.kernel.tree.lock();
        let old = thread.tid();
        tree.remove_thread(old);
        thread.set_tid(task.pid);
        *task.fs.write() = thread.fs();
        ptrace::renumber(&mut tree, thread, old);
        if let Some(seat) = task.group.lock().threads.first() {
            tree.insert_thread(task.pid, seat);
        }
        drop(tree);
        crate::futex::robust::renumbered(thread, old);
    }
    task.group.lock().exec = None;
    result
}

/// What a new program finds of its predecessor's signals: no handlers, no alternate stack; the mask, what is pending and what
/// is ignored stay (signal(7)).
pub fn reset_signals(thread: &Thread) {
    let process = thread.process();
    let actions = alloc::sync::Arc::new(process.actions().without_handlers());
    *process.actions.write() = actions;
    *thread.signals.altstack.lock() = StackT::default();
    thread.clear_child_tid.store(0, Ordering::Relaxed);
}
