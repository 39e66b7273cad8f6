//! The calls that send signals: kill(2), tgkill(2), sigqueue(3)'s, pidfd_send_signal(2).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::capability::CAP_KILL;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::signal::*;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::Fd;

use super::calls::Signal;
use super::send::{send_task, send_thread};
use crate::process::Process;
use crate::task::access;
use crate::task::pidfd::PidFd;
use crate::task::tree::INIT;
use crate::thread::ThreadExt;
use crate::{Seat, Task, Thread};
use crate::{place, procfs};

/// Whether the calling thread may send `signal` to a process: same user, the capability, or SIGCONT within the session. Nobody to one that is closed.
fn may_signal(thread: &Thread, target: &Process, signal: u32) -> bool {
    let mine = thread.cred();
    if target.pid == thread.process().pid {
        return true;
    }
    if access::is_closed(&thread.kernel, target) {
        return false;
    }
    let theirs = {
        let group = target.group.lock();
        group.threads.first().map(|seat| seat.cred())
    };
    let same = match theirs {
        Some(theirs) => {
            mine.euid == theirs.suid || mine.euid == theirs.uid || mine.uid == theirs.suid || mine.uid == theirs.uid
        }
        None => {
            let uid = crate::task::uid_of(target);
            mine.euid == uid || mine.uid == uid
        }
    };
    same || mine.capable(CAP_KILL) || signal == SIGCONT && target.session().id == thread.process().session().id
}

fn sent(result: Result<(), super::Full>) -> Result<()> {
    result.map_err(|super::Full| Errno::EAGAIN)
}

/// Sends with the permission check; signal 0 only checks.
fn send_checked(thread: &Thread, target: &Arc<Task>, signal: u32, info: SigInfo) -> Result<()> {
    if !may_signal(thread, target, signal) {
        return Err(Errno::EPERM);
    }
    if signal == 0 {
        return Ok(());
    }
    sent(send_task(target, info))
}

fn by_me(thread: &Thread, signal: u32, code: i32) -> SigInfo {
    SigInfo::by_process(signal, code, thread.process().pid, thread.cred().uid)
}

/// The process of that number, or the one whose thread has it.
fn find(thread: &Thread, pid: i32) -> Result<Arc<Task>> {
    let pid = u32::try_from(pid).map_err(|_| Errno::ESRCH)?;
    let by_thread = || thread.kernel.thread(pid).map(|seat| seat.task.clone());
    thread.kernel.process(pid).or_else(by_thread).ok_or(Errno::ESRCH)
}

/// kill(2).
pub fn kill(thread: &Thread, pid: i32, signal: Signal) -> Result<()> {
    let signal = signal.or_none()?;
    let info = by_me(thread, signal, si::USER);
    match pid {
        1.. => match find(thread, pid) {
            Err(Errno::ESRCH) => place::guest::kill(thread, pid, signal),
            found => send_checked(thread, &found?, signal, info),
        },
        0 => send_to_group(thread, thread.process().pgrp(), signal, info),
        -1 => {
            let me = thread.process().pid;
            let mut all = thread.kernel.processes();
            all.retain(|task| task.pid != INIT && task.pid != me);
            send_to_all(thread, &all, signal, info)
        }
        i32::MIN => Err(Errno::ESRCH),
        _ => send_to_group(thread, pid.unsigned_abs(), signal, info),
    }
}

/// Sends to a group, wherever its members run: on another tile than its home that asks the home to do it.
fn send_to_group(thread: &Thread, pgrp: u32, signal: u32, info: SigInfo) -> Result<()> {
    if thread.process().home.load(Ordering::SeqCst) != 0 && pgrp < place::first_pid(1) {
        return place::guest::kill(thread, -(pgrp as i32), signal);
    }
    send_many(thread, group_members(thread, pgrp), signal, info)?;
    if signal != 0 {
        place::forward_group(&thread.kernel, pgrp, &info);
    }
    Ok(())
}

fn group_members(thread: &Thread, pgrp: u32) -> Vec<Arc<Task>> {
    thread.kernel.tree.lock().group(pgrp).cloned().collect()
}

/// Sends to several: fine when one could be reached.
fn send_many(thread: &Thread, targets: Vec<Arc<Task>>, signal: u32, info: SigInfo) -> Result<()> {
    let mut result = Err(Errno::ESRCH);
    for target in &targets {
        let one = send_checked(thread, target, signal, info);
        if result.is_err() {
            result = one;
        }
    }
    result
}

/// Sends to everybody but those whom the caller may not reach: as on Linux it is no error if it may reach nobody. ESRCH when there is nobody.
fn send_to_all(thread: &Thread, targets: &[Arc<Task>], signal: u32, info: SigInfo) -> Result<()> {
    let mut result = if targets.is_empty() { Err(Errno::ESRCH) } else { Ok(()) };
    for target in targets {
        match send_checked(thread, target, signal, info) {
            Err(Errno::EPERM) => {}
            one => result = one,
        }
    }
    result
}

/// The thread `tid`, of process `tgid` when that is given.
fn find_thread(thread: &Thread, tgid: Option<i32>, tid: i32) -> Result<Arc<Seat>> {
    if tid <= 0 || tgid.is_some_and(|tgid| tgid <= 0) {
        return Err(Errno::EINVAL);
    }
    let target = thread.kernel.thread(tid.unsigned_abs()).ok_or(Errno::ESRCH)?;
    match tgid {
        Some(tgid) if target.process().pid != tgid.unsigned_abs() => Err(Errno::ESRCH),
        _ => Ok(target),
    }
}

/// Whether the number is that of the first thread of a process which has ended and waits for its parent: signals to it are lost, and
/// that is no error.
fn waits_for_parent(thread: &Thread, tgid: Option<i32>, tid: i32) -> bool {
    let process = u32::try_from(tid).ok().and_then(|tid| thread.kernel.process(tid));
    tgid.is_none_or(|tgid| tgid == tid)
        && process.is_some_and(|process| process.ended().is_some() && may_signal(thread, &process, 0))
}

fn send_to_thread(thread: &Thread, target: &Seat, signal: u32, info: SigInfo) -> Result<()> {
    if !may_signal(thread, target.process(), signal) {
        return Err(Errno::EPERM);
    }
    if signal == 0 {
        return Ok(());
    }
    sent(send_thread(target, info))
}

/// tkill(2).
pub fn tkill(thread: &Thread, tid: i32, signal: Signal) -> Result<()> {
    let signal = signal.or_none()?;
    if waits_for_parent(thread, None, tid) {
        return Ok(());
    }
    let target = find_thread(thread, None, tid)?;
    send_to_thread(thread, &target, signal, by_me(thread, signal, si::TKILL))
}

/// tgkill(2).
pub fn tgkill(thread: &Thread, tgid: i32, tid: i32, signal: Signal) -> Result<()> {
    let signal = signal.or_none()?;
    if waits_for_parent(thread, Some(tgid), tid) {
        return Ok(());
    }
    let target = find_thread(thread, Some(tgid), tid)?;
    send_to_thread(thread, &target, signal, by_me(thread, signal, si::TKILL))
}

/// What a program may claim of itself: never that the kernel or a kill(2) sent it, except to itself.
fn claimed(thread: &Thread, info: UserPtr<impl Layout<SigInfo>>, signal: u32, target: i32) -> Result<SigInfo> {
    let mut info = info.load(thread.user())?;
    info.signo = signal as i32;
    if (info.code >= 0 || info.code == si::TKILL) && thread.process().pid as i32 != target {
        return Err(Errno::EPERM);
    }
    Ok(info)
}

/// rt_sigqueueinfo(2).
pub fn rt_sigqueueinfo(thread: &Thread, pid: i32, signal: Signal, info: UserPtr<impl Layout<SigInfo>>) -> Result<()> {
    let signal = signal.or_none()?;
    let info = claimed(thread, info, signal, pid)?;
    send_checked(thread, &find(thread, pid)?, signal, info)
}

/// rt_tgsigqueueinfo(2).
pub fn rt_tgsigqueueinfo(
    thread: &Thread,
    tgid: i32,
    tid: i32,
    signal: Signal,
    info: UserPtr<impl Layout<SigInfo>>,
) -> Result<()> {
    let signal = signal.or_none()?;
    if tid <= 0 || tgid <= 0 {
        return Err(Errno::EINVAL);
    }
    let info = claimed(thread, info, signal, tgid)?;
    let target = find_thread(thread, Some(tgid), tid)?;
    send_to_thread(thread, &target, signal, info)
}

/// pidfd_send_signal(2).
pub fn pidfd_send_signal(
    thread: &Thread,
    pidfd: Fd,
    signal: Signal,
    info: UserPtr<impl Layout<SigInfo>>,
    flags: u32,
) -> Result<()> {
    const THREAD: u32 = 1;
    const THREAD_GROUP: u32 = 2;
    const PROCESS_GROUP: u32 = 4;
    if flags & !(THREAD | THREAD_GROUP | PROCESS_GROUP) != 0 || flags.count_ones() > 1 {
        return Err(Errno::EINVAL);
    }
    let file = thread.files().get(pidfd)?;
    let pidfd = file.downcast::<PidFd>();
    let target = match pidfd {
        Some(pidfd) => pidfd.task(),
        None => procfs::process_of(&file)?,
    };
    let signal = signal.or_none()?;
    let seat = pidfd.map_or(Ok(None), PidFd::target);
    // Without a flag it goes to what the descriptor is of.
    let to_thread = flags & THREAD != 0 || flags == 0 && matches!(seat, Ok(Some(_)));
    let info = match info.non_null() {
        None => by_me(thread, signal, if to_thread { si::TKILL } else { si::USER }),
        Some(info) => {
            let signo = info.load(thread.user())?.signo;
            if signo != signal as i32 {
                return Err(Errno::EINVAL);
            }
            // A group is somebody else, also the caller's own.
            claimed(thread, info, signal, if flags & PROCESS_GROUP != 0 { 0 } else { target.pid as i32 })?
        }
    };
    if flags & PROCESS_GROUP != 0 {
        // The one it leads, or has led: a member leads none. A number that is another's now is not its own any more.
        let members = match thread.kernel.process(target.pid) {
            Some(known) if !Arc::ptr_eq(&known, &target) => Vec::new(),
            _ => group_members(thread, target.pid),
        };
        return send_many(thread, members, signal, info);
    }
    if thread.kernel.process(target.pid).is_none_or(|known| !Arc::ptr_eq(&known, &target)) {
        return Err(Errno::ESRCH);
    }
    let seat = seat?;
    if to_thread {
        let seat = seat.or_else(|| thread.kernel.thread(target.pid)).ok_or(Errno::ESRCH)?;
        return send_to_thread(thread, &seat, signal, info);
    }
    send_checked(thread, &target, signal, info)
}
