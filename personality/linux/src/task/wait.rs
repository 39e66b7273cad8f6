//! Waiting for children: wait4(2), waitid(2).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::{Rusage, wait};
use janua_abi::linux::signal::{SIGCHLD, SIGCONT, SigInfo, si};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::{Arg, Fd, Kind};
use janua_object::file::flags::O_NONBLOCK;
use zerocopy::FromZeros;

use super::exit::cause;
use super::pidfd::PidFd;
use super::tree::Tree;
use crate::process::{Report, State};
use crate::thread::ThreadExt;
use crate::{Task, Thread, ptrace};

/// W* options as an argument.
#[derive(Clone, Copy, Debug)]
pub struct WaitOptions(pub u32);

impl Arg for WaitOptions {
    const KIND: Kind = Kind::Named("wait");
    fn decode(word: usize) -> Result<Self> {
        Ok(WaitOptions(word as u32))
    }
}

/// Which children are meant.
pub enum Which {
    Any,
    Pid(u32),
    Group(u32),
    /// The process a descriptor is of, even if another has its number by now.
    Task(Arc<Task>),
}

/// What a wait has found.
pub struct Found {
    pid: u32,
    uid: u32,
    code: i32,
    /// The exit code or signal, as in `si_status`.
    status: i32,
    /// As wait4(2) gives it.
    raw: u32,
    usage: Rusage,
}

impl Found {
    /// The same of a thread of the process.
    pub fn of(self, tid: u32) -> Found {
        Found { pid: tid, ..self }
    }
}

/// Whether a wait with these options concerns a child, by its exit signal (__WALL, __WCLONE) and whose it is (__WNOTHREAD).
fn concerns(thread: &Thread, tree: &Tree, child: &Task, options: u32) -> bool {
    let is_clone = child.exit_signal.load(Ordering::Relaxed) != SIGCHLD;
    (options & wait::ALL != 0 || is_clone == (options & wait::CLONE != 0))
        && (options & wait::NOTHREAD == 0 || is_of_thread(thread, tree, child))
}

/// Whether a child of the calling thread's process is that thread's: it has made it, or is the first of those that are left when the
/// maker has ended.
fn is_of_thread(thread: &Thread, tree: &Tree, child: &Task) -> bool {
    let maker = child.maker.load(Ordering::Relaxed);
    let threads = thread.process().threads();
    // One that ends leaves the tree first: who does not find it there any more does not meet it here.
    let mut left = threads.iter().map(|seat| seat.tid()).filter(|tid| tree.thread(*tid).is_some());
    let first = left.next();
    let maker = if first == Some(maker) { first } else { left.find(|tid| *tid == maker).or(first) };
    maker == Some(thread.tid())
}

/// Looks for a child with an event. ECHILD when there is none to wait for at all.
fn look(thread: &Thread, which: &Which, options: u32) -> Result<Option<Found>> {
    let kernel = &thread.kernel;
    let mut tree = kernel.tree.lock();
    let mut any = false;
    let mut ended: Option<(Arc<Task>, u32)> = None;
    let only = match which {
        Which::Pid(pid) => Some(*pid),
        Which::Task(task) => Some(task.pid),
        Which::Any | Which::Group(_) => None,
    };
    for child in tree.children(thread.process().pid, only) {
        let meant = match which {
            Which::Any | Which::Pid(_) => true,
            Which::Group(pgrp) => child.pgrp() == *pgrp,
            Which::Task(task) => Arc::ptr_eq(child, task),
        };
        if !meant || !concerns(thread, &tree, child, options) {
            continue;
        }
        let mut group = child.group.lock();
        // One that has ended will neither stop nor continue.
        any |= options & wait::EXITED != 0 || !matches!(group.state, State::Dead(_));
        // One that somebody else traces has ended for its tracer first; its stops are for a parent that traces it by thread.
        let tracer = tree.tracee(child.pid).map(|tracee| tracee.tracer);
        match (group.state, group.report) {
            (State::Dead(_), _) if tracer.is_some() => {}
            (_, Some(Report::Stopped(_))) if tracer == Some(thread.process().pid) => {}
            (State::Dead(status), _) if options & wait::EXITED != 0 => {
                drop(group);
                ended = Some((child.clone(), status));
                break;
            }
            (State::Dead(_), _) => {}
            (_, Some(Report::Stopped(signal))) if options & wait::STOPPED != 0 => {
                if options & wait::NOWAIT == 0 {
                    group.report = None;
                }
                drop(group);
                return Ok(Some(found(child, si::CLD_STOPPED, signal as i32, signal << 8 | 0x7f)));
            }
            (_, Some(Report::Continued)) if options & wait::CONTINUED != 0 => {
                if options & wait::NOWAIT == 0 {
                    group.report = None;
                }
                drop(group);
                return Ok(Some(found(child, si::CLD_CONTINUED, SIGCONT as i32, 0xffff)));
            }
            _ => {}
        }
    }
    let Some((child, status)) = ended else {
        return match ptrace::look(thread, &mut tree, which, options, &mut any) {
            Some((reported, found)) => {
                drop(tree);
                reported.deliver();
                Ok(Some(found))
            }
            None if any => Ok(None),
            None => Err(Errno::ECHILD),
        };
    };
    let (code, short) = cause(status);
    let found = found(&child, code, short, status);
    if options & wait::NOWAIT == 0 {
        tree.remove_process(&child);
        thread.process().usage.add_child(&child.usage);
    }
    drop(tree);
    if options & wait::NOWAIT == 0 {
        child.changes.wake_all();
    }
    Ok(Some(found))
}

pub fn found(child: &Task, code: i32, status: i32, raw: u32) -> Found {
    let uid = super::uid_of(child);
    Found { pid: child.pid, uid, code, status, raw, usage: child.usage.whole() }
}

async fn wait_for(thread: &Thread, which: Which, options: u32) -> Result<Option<Found>> {
    let queue = &thread.process().children;
    let result = thread
        .wait_on(queue, None, || match look(thread, &which, options) {
            Ok(None) if options & wait::NOHANG == 0 => None,
            answer => Some(answer),
        })
        .await;
    result.map_err(|cut| cut.errno(Errno::EAGAIN))?
}

/// wait4(2).
pub async fn wait4(
    thread: &Thread,
    pid: i32,
    status: UserPtr<u32>,
    options: WaitOptions,
    usage: UserPtr<impl Layout<Rusage>>,
) -> Result<u32> {
    let options = options.0;
    let known = wait::NOHANG | wait::STOPPED | wait::CONTINUED | wait::NOTHREAD | wait::ALL | wait::CLONE;
    if options & !known != 0 {
        return Err(Errno::EINVAL);
    }
    let which = match pid {
        i32::MIN => return Err(Errno::ESRCH),
        -1 => Which::Any,
        0 => Which::Group(thread.process().pgrp()),
        1.. => Which::Pid(pid.unsigned_abs()),
        _ => Which::Group(pid.unsigned_abs()),
    };
    let Some(found) = wait_for(thread, which, options | wait::EXITED).await? else { return Ok(0) };
    if let Some(status) = status.non_null() {
        status.write(thread.user(), &found.raw)?;
    }
    if let Some(usage) = usage.non_null() {
        usage.store(thread.user(), &found.usage)?;
    }
    Ok(found.pid)
}

/// waitid(2).
pub async fn waitid(
    thread: &Thread,
    id_type: u32,
    id: i32,
    info: UserPtr<impl Layout<SigInfo>>,
    options: WaitOptions,
    usage: UserPtr<impl Layout<Rusage>>,
) -> Result<()> {
    let mut options = options.0;
    let kinds = wait::EXITED | wait::STOPPED | wait::CONTINUED;
    let known = kinds | wait::NOHANG | wait::NOWAIT | wait::NOTHREAD | wait::ALL | wait::CLONE;
    if options & !known != 0 || options & kinds == 0 {
        return Err(Errno::EINVAL);
    }
    let mut nonblocking = false;
    let which = match id_type {
        wait::P_ALL => Which::Any,
        wait::P_PID if id > 0 => Which::Pid(id.unsigned_abs()),
        wait::P_PGID if id > 0 => Which::Group(id.unsigned_abs()),
        wait::P_PGID if id == 0 => Which::Group(thread.process().pgrp()),
        wait::P_PIDFD if id >= 0 => {
            let file = thread.files().get(Fd(id))?;
            nonblocking = file.flags() & O_NONBLOCK != 0;
            Which::Task(file.downcast::<PidFd>().ok_or(Errno::EBADF)?.task())
        }
        _ => return Err(Errno::EINVAL),
    };
    let no_hang = options & wait::NOHANG != 0;
    if nonblocking {
        options |= wait::NOHANG;
    }
    let found = wait_for(thread, which, options).await?;
    if found.is_none() && nonblocking && !no_hang {
        return Err(Errno::EAGAIN);
    }
    if let Some(info) = info.non_null() {
        let reported = match &found {
            Some(found) => SigInfo::child(SIGCHLD, found.code, found.pid, found.uid, found.status, 0, 0),
            None => SigInfo::new_zeroed(),
        };
        info.store(thread.user(), &reported)?;
    }
    if let (Some(usage), Some(found)) = (usage.non_null(), &found) {
        usage.store(thread.user(), &found.usage)?;
    }
    Ok(())
}
