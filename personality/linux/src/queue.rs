//! What a thread's submissions have of the thread ([`janua_kernel::queue`]).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_kernel::{Place, Row};
use janua_object::fdtable::FdTable;

use crate::fs::FsContext;
use crate::thread::ThreadState;
use crate::user::ThreadCharge;
use crate::{Linux, Thread};

/// A thread's stand-in: it is in no list, so that nobody finds it or sends it signals, and is charged to nobody.
pub fn stand_in(thread: &Thread) -> ThreadState {
    let user = thread.charge.lock().user().clone();
    let state = ThreadState::new(thread.tid(), thread.cred(), idle_fs(thread), Arc::new(FdTable::new()), user.clone());
    let counted = core::mem::replace(&mut *state.charge.lock(), ThreadCharge::uncounted(user));
    drop(counted);
    state
}

/// What a stand-in has of root and directory between two submissions.
fn idle_fs(thread: &Thread) -> Arc<FsContext> {
    thread.kernel.root.clone()
}

/// Calls of other kinds that are about the calling thread alone: its locks, its signals while it waits, which descriptors are its own.
fn is_own(row: &Row<Linux>) -> bool {
    matches!(
        row.name,
        "restart_syscall"
            | "set_robust_list"
            | "get_robust_list"
            | "pselect6"
            | "ppoll"
            | "epoll_pwait"
            | "epoll_pwait2"
            | "close_range"
    )
}

/// Calls about processes and threads that mean the same when a stand-in makes them. The rest of their kind act on the calling thread's own
/// rights, signals or place in its process.
fn is_anyones(row: &Row<Linux>) -> bool {
    matches!(
        row.name,
        "getpid"
            | "gettid"
            | "getppid"
            | "getuid"
            | "getgid"
            | "geteuid"
            | "getegid"
            | "getresuid"
            | "getresgid"
            | "getgroups"
            | "getpgrp"
            | "getpgid"
            | "getsid"
            | "getrlimit"
            | "uname"
            | "sysinfo"
            | "getrandom"
    )
}

/// Whether a stand-in can make such calls.
pub fn may_queue(row: &Row<Linux>) -> bool {
    if row.place == Place::Task { is_anyones(row) } else { !is_own(row) }
}

/// The stand-in has what the thread has now. EXDEV for a call that only the thread can make.
pub fn lend(thread: &Thread, stand_in: &Thread, row: &'static Row<Linux>) -> Result<()> {
    if !may_queue(row) {
        return Err(Errno::EXDEV);
    }
    stand_in.set_tid(thread.tid());
    *stand_in.cred.write() = thread.cred();
    *stand_in.fs.write() = thread.fs();
    *stand_in.files.write() = thread.files();
    *stand_in.comm.lock() = *thread.comm.lock();
    let user = thread.charge.lock().user().clone();
    *stand_in.charge.lock() = ThreadCharge::uncounted(user);
    stand_in.timer_slack.store(thread.timer_slack.load(Ordering::Relaxed), Ordering::Relaxed);
    stand_in.signals.store_blocked(thread.signals.blocked());
    Ok(())
}

/// The stand-in keeps no files from being closed, and no directory in use.
pub fn take_back(stand_in: &Thread) {
    let files = core::mem::take(&mut *stand_in.files.write());
    crate::task::exit::leave_table(stand_in, files);
    *stand_in.fs.write() = idle_fs(stand_in);
    *stand_in.paths.lock() = Default::default();
    *stand_in.restart.lock() = None;
}
