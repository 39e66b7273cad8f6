//! A process that begins in a cgroup (version 2) of its own. It is born there (clone3(2), Linux 5.7): to move one that runs, by
//! cgroup.procs, the host stops all forks and exits of the machine for a moment, some milliseconds long.

use crate::{Probe, Refused};
use janua_abi::linux::process::{CloneArgs, clone};

/// fork(2) into the cgroup of the directory, with what the host sends at the child's end: 0 in the child, a process number, -1 for
/// an error.
///
/// # Safety
/// As for fork: the caller has one thread, or the child keeps to what a handler may do.
pub(crate) unsafe fn fork_into(directory: i32, exit_signal: i32) -> i32 {
    let args = CloneArgs {
        flags: clone::INTO_CGROUP,
        exit_signal: exit_signal as u64,
        cgroup: directory as u64,
        ..CloneArgs::default()
    };
    // SAFETY: a structure of the size given; with no stack and no shared memory it is a fork, and the caller is responsible.
    unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) as i32 }
}

/// Whether a process can begin in the cgroup of this directory. The calling process must have one thread.
pub fn enters(directory: i32) -> Probe {
    // SAFETY: one thread; the child ends at once.
    match unsafe { fork_into(directory, libc::SIGCHLD) } {
        0 => {
            // SAFETY: ends the child without running what the parent registered for its own exit.
            unsafe { libc::_exit(0) }
        }
        -1 => Err(Refused::Errno(crate::errno())),
        child => crate::reap(child),
    }
}
