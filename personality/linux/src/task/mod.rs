//! Processes and threads: their family tree, birth, end, waiting, sessions.

pub mod access;
pub mod clone;
pub mod exit;
pub mod io;
pub mod pidfd;
mod pidinfo;
pub mod session;
pub mod stop;
pub mod tree;
pub mod wait;

pub use clone::{Place, release_vfork};
pub use exit::notify_parent;
pub use tree::Tree;

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

pub use janua_abi::linux::capability::{
    CAP_AUDIT_CONTROL, CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_SYS_PTRACE, CAP_SYS_RESOURCE,
};
use janua_abi::linux::process::clone as clone_flags;
use janua_abi::linux::{Errno, Result};
use janua_object::fdtable::FdTable;

use self::clone::CloneFlags;
use crate::Thread;
use crate::process::Process;
use crate::thread::ThreadExt;

/// Whether a process leads its session.
pub fn is_session_leader(process: &Process) -> bool {
    process.session().id == process.pid
}

/// The real user id of a process: that of its first thread, root's when it has none left.
pub fn uid_of(process: &Process) -> u32 {
    let living = process.group.lock().threads.first().map(|seat| seat.cred());
    living.or_else(|| process.last_cred.read().clone()).map_or(0, |cred| cred.uid)
}

/// set_tid_address(2).
pub fn set_tid_address(thread: &Thread, address: usize) -> u32 {
    thread.clear_child_tid.store(address, Ordering::Relaxed);
    thread.tid()
}

/// unshare(2): root, directory and umask of a thread, or its descriptors.
pub fn unshare(thread: &Thread, flags: CloneFlags) -> Result<()> {
    let has = |flag: u64| flags.0 & flag != 0;
    let alone = clone_flags::THREAD | clone_flags::SIGHAND | clone_flags::VM;
    let known = clone_flags::FS | clone_flags::FILES | clone_flags::SYSVSEM | clone_flags::NAMESPACES | alone;
    if flags.0 & !(known | clone_flags::NEWTIME) != 0 {
        return Err(Errno::EINVAL);
    }
    if has(clone_flags::NAMESPACES | clone_flags::NEWTIME) {
        let allowed = has(clone_flags::NEWUSER) || thread.cred().capable(CAP_SYS_ADMIN);
        return Err(if allowed { Errno::EINVAL } else { Errno::EPERM });
    }
    let process = thread.process();
    if has(alone) && process.group.lock().threads.len() > 1 {
        return Err(Errno::EINVAL);
    }
    if has(clone_flags::FS) {
        let copy = Arc::new(clone::copy_fs(&thread.fs()));
        *thread.fs.write() = copy.clone();
        if thread.tid() == process.pid {
            *process.fs.write() = copy;
        }
    }
    if has(clone_flags::FILES) {
        own_files(thread)?;
    }
    Ok(())
}

/// Makes a thread's descriptors its own; the descriptions stay shared. ENOMEM.
pub fn own_files(thread: &Thread) -> Result<()> {
    let process = thread.process();
    let before = thread.files();
    let of_process = Arc::ptr_eq(&before, &process.files.read());
    // The thread's, this one, and its process': nobody shares them.
    if Arc::strong_count(&before) == 2 + usize::from(of_process) {
        return Ok(());
    }
    let copy = Arc::new(before.duplicate()?);
    *thread.files.write() = copy.clone();
    if thread.tid() == process.pid {
        *process.files.write() = copy;
    }
    exit::leave_table(thread, before);
    Ok(())
}

/// Gives up a descriptor table that the thread does not use any more: the last user flushes what is in it.
pub fn put_files(thread: &Thread, files: Arc<FdTable>) {
    if let Some(files) = Arc::into_inner(files) {
        for file in files.take_all() {
            file.ops.flush(&file, &thread.caller());
        }
    }
}
