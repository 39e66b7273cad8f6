//! Sessions and process groups (setsid(2), setpgid(2), credentials(7)).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};

use crate::thread::ThreadExt;
use crate::{Kernel, Task, Thread};

/// A session leader ends: the session loses its terminal.
pub fn leader_ends(kernel: &Kernel, task: &Arc<Task>) {
    crate::dev::terminal::let_go(kernel, &task.session());
}

/// The process `pid` names, by its own number or that of a thread, 0 being the caller's own.
fn target(thread: &Thread, pid: i32) -> Result<Arc<Task>> {
    match pid {
        0 => Ok(thread.task.clone()),
        _ => {
            let pid = u32::try_from(pid).map_err(|_| Errno::ESRCH)?;
            let by_thread = || thread.kernel.thread(pid).map(|seat| seat.task.clone());
            thread.kernel.process(pid).or_else(by_thread).ok_or(Errno::ESRCH)
        }
    }
}

/// setsid(2).
pub fn setsid(thread: &Thread) -> Result<u32> {
    let task = &thread.task;
    let mut tree = thread.kernel.tree.lock();
    // A group of that number must not come to lie in two sessions.
    if super::is_session_leader(task) || tree.has_group(task.pid) {
        return Err(Errno::EPERM);
    }
    tree.new_session(task);
    Ok(task.pid)
}

/// setpgid(2).
pub fn setpgid(thread: &Thread, pid: i32, pgid: i32) -> Result<()> {
    if pgid < 0 || pgid == 0 && pid < 0 {
        return Err(Errno::EINVAL);
    }
    let me = thread.process();
    if pid < 0 {
        return Err(Errno::ESRCH);
    }
    let mut tree = thread.kernel.tree.lock();
    let task = match pid {
        0 => thread.task.clone(),
        _ => match tree.process(pid.unsigned_abs()) {
            Some(task) => task.clone(),
            // A thread that leads no process.
            None if tree.thread(pid.unsigned_abs()).is_some() => return Err(Errno::EINVAL),
            None => return Err(Errno::ESRCH),
        },
    };
    let pgid = if pgid == 0 { task.pid } else { pgid.unsigned_abs() };
    if task.parent() == me.pid {
        if task.session().id != me.session().id {
            return Err(Errno::EPERM);
        }
        if task.settings.has_execed.load(Ordering::Relaxed) {
            return Err(Errno::EACCES);
        }
    } else if task.pid != me.pid {
        return Err(Errno::ESRCH);
    }
    if super::is_session_leader(&task) {
        return Err(Errno::EPERM);
    }
    if pgid != task.pid && !tree.group(pgid).any(|member| member.session().id == me.session().id) {
        return Err(Errno::EPERM);
    }
    if task.pgrp() != pgid {
        tree.set_pgrp(&task, pgid);
    }
    Ok(())
}

/// getpgid(2).
pub fn getpgid(thread: &Thread, pid: i32) -> Result<u32> {
    Ok(target(thread, pid)?.pgrp())
}

/// getpgrp(2).
pub fn getpgrp(thread: &Thread) -> u32 {
    thread.process().pgrp()
}

/// getsid(2).
pub fn getsid(thread: &Thread, pid: i32) -> Result<u32> {
    Ok(target(thread, pid)?.session().id)
}

/// getpid(2).
pub fn getpid(thread: &Thread) -> u32 {
    thread.process().pid
}

/// gettid(2).
pub fn gettid(thread: &Thread) -> u32 {
    thread.tid()
}

/// getppid(2).
pub fn getppid(thread: &Thread) -> u32 {
    thread.process().parent()
}
