//! Who may look into a process (ptrace(2), "Ptrace access mode checking"), and how a process is kept as it is while somebody looks.
//!
//! [`check`] is the one question, for /proc/PID, process_vm_readv(2), pidfd_getfd(2), kcmp(2) and all others. Its answer holds for a
//! moment only: exec gives the same process another program, perhaps with more rights, and the machine gives the place of a thread
//! that has ended to another. So a caller that asks and then acts holds the process ([`hold`], [`hold_thread`]) from before the
//! question to behind the deed.

use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_object::Cred;
use janua_rt::{AtomicU64, Held};

use super::CAP_SYS_PTRACE;
use super::tree::DEBUGGER;
use crate::process::Process;
use crate::thread::ThreadExt;
use crate::{Kernel, Seat, Thread};

/// Which ids of who looks count: for /proc those for files (PTRACE_MODE_FSCREDS), for system calls the real ones
/// (PTRACE_MODE_REALCREDS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    File,
    Real,
}

/// Whether a thread of process `pid` with the credentials `cred` may look into the process of `target`, and change it: its own;
/// one that has the user and the group of `cred` throughout and no capability that `cred` lacks, and may be dumped
/// (PR_SET_DUMPABLE); any with CAP_SYS_PTRACE. EPERM.
pub fn check(pid: u32, cred: &Cred, ids: Ids, target: &Seat) -> Result<()> {
    if pid == target.task.pid {
        return Ok(());
    }
    if is_closed(&target.task.kernel, &target.task) {
        return Err(Errno::EPERM);
    }
    if cred.capable(CAP_SYS_PTRACE) {
        return Ok(());
    }
    let theirs = target.cred();
    let (uid, gid, caps) = match ids {
        Ids::File => (cred.fsuid, cred.fsgid, cred.cap_effective),
        Ids::Real => (cred.uid, cred.gid, cred.cap_permitted),
    };
    let same = [theirs.uid, theirs.euid, theirs.suid].iter().all(|theirs| *theirs == uid)
        && [theirs.gid, theirs.egid, theirs.sgid].iter().all(|theirs| *theirs == gid);
    let weaker = theirs.cap_permitted & !caps == 0;
    if same && weaker && is_dumpable(&target.task) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether nobody else may look into the process, limit it or send it signals, whatever capabilities he has: the debugger's server has the connection
/// to gdb, which believes what comes by it.
pub fn is_closed(kernel: &Kernel, process: &Process) -> bool {
    process.pid == DEBUGGER && kernel.config.debugger.is_some()
}

/// [`check`] for a system call of `thread`.
pub fn check_call(thread: &Thread, target: &Seat) -> Result<()> {
    check(thread.process().pid, &thread.cred(), Ids::Real, target)
}

/// [`check_call`] for a process as a whole, by its first thread. One that has none left is open to itself and CAP_SYS_PTRACE. EPERM.
pub fn check_process(thread: &Thread, target: &Process) -> Result<()> {
    let first = target.group.lock().threads.first().cloned();
    match first {
        Some(seat) => check_call(thread, &seat),
        None if thread.process().pid == target.pid => Ok(()),
        None if thread.cred().capable(CAP_SYS_PTRACE) && !is_closed(&thread.kernel, target) => Ok(()),
        None => Err(Errno::EPERM),
    }
}

/// Whether the process may be looked into by its own user: its program has gained no rights and hides nothing.
pub fn is_dumpable(process: &Process) -> bool {
    process.settings.dumpable.load(Ordering::Relaxed) == 1
}

/// While the guard lives the process neither changes its program by exec, nor does the machine give the place of a thread that is
/// among its threads now to another. Held for as long as a copy takes, never across what waits for user code.
pub fn hold(process: &Process) -> Held<'_> {
    process.still.read()
}

/// Holds a thread's process. ESRCH when the thread is gone.
pub fn hold_thread(seat: &Seat) -> Result<Held<'_>> {
    let held = hold(&seat.task);
    let lives = seat.task.group.lock().threads.iter().any(|other| core::ptr::eq::<Seat>(&**other, seat));
    if lives { Ok(held) } else { Err(Errno::ESRCH) }
}

/// Waits until nobody holds the process any more who still saw what the caller has just taken out of it.
pub fn wait_for_holders(process: &Process) {
    drop(process.still.write());
}

/// A number for a program that begins to run: none has it in common with another, of the same process or any.
pub fn new_program() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
