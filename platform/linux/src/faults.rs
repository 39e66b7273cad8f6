//! Host calls that fail on purpose: the n-th call that could return an error returns it, without being made. For the tests of what
//! the kernel does then (suite `faults`); a run that asks for none pays one look at a word.

use core::sync::atomic::Ordering;

use janua_abi::linux::Errno;

use crate::boot;
use crate::wall::{Call, nr};

/// Calls that need memory of the host, or room for a mapping.
const MEMORY: &[Call] = &[
    nr::MMAP,
    nr::MPROTECT,
    nr::MUNMAP,
    nr::MREMAP,
    nr::CLONE,
    nr::MEMFD_CREATE,
    nr::OPENAT2,
    nr::FTRUNCATE,
    nr::FALLOCATE,
    nr::EPOLL_CTL,
    nr::EPOLL_CREATE1,
    nr::GETDENTS64,
    nr::STATX,
    nr::PROCESS_VM_READV,
    nr::PROCESS_VM_WRITEV,
];
/// Calls that make a descriptor.
const DESCRIPTORS: &[Call] = &[nr::MEMFD_CREATE, nr::OPENAT2, nr::EPOLL_CREATE1, nr::SOCKET, nr::ACCEPT4];
/// Calls that may wait, and be interrupted.
#[rustfmt::skip]
const WAITING: &[Call] = &[nr::READ, nr::WRITE, nr::PREAD64, nr::PWRITE64, nr::PWRITEV2, nr::POLL, nr::EPOLL_PWAIT, nr::OPENAT2, nr::FALLOCATE];
/// Calls that need room in a file system.
const ROOM: &[Call] = &[
    nr::WRITE,
    nr::PWRITE64,
    nr::PWRITEV2,
    nr::FTRUNCATE,
    nr::FALLOCATE,
    nr::MKDIRAT,
    nr::SYMLINKAT,
    nr::LINKAT,
    nr::RENAMEAT2,
];
/// Calls that make a process or a thread.
const TASKS: &[Call] = &[nr::CLONE];

/// The error this call is to return, if it is the one.
#[inline]
pub fn of(call: Call) -> Option<Errno> {
    if boot::info().fault == 0 { None } else { counted(call) }
}

#[cold]
fn counted(call: Call) -> Option<Errno> {
    let info = boot::info();
    let (errno, calls) = match info.fault {
        4 => (Errno::EINTR, WAITING),
        11 => (Errno::EAGAIN, TASKS),
        12 => (Errno::ENOMEM, MEMORY),
        24 => (Errno::EMFILE, DESCRIPTORS),
        28 => (Errno::ENOSPC, ROOM),
        _ => return None,
    };
    let nth = calls.contains(&call).then(|| info.control.faults.fetch_add(1, Ordering::Relaxed))?;
    (nth + 1 == info.fault_at).then_some(errno)
}
