//! Descriptors: close(2), close_range(2), dup(2) and its variants.

use alloc::sync::Arc;

use janua_abi::linux::process::rlimit;
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::OpenFile;
use janua_object::fdtable::Reserved;
use janua_object::file::flags::O_CLOEXEC;
use janua_object::lock::Owner;

use crate::Thread;
use crate::task;
use crate::thread::ThreadExt;

/// The file behind a descriptor. EBADF.
#[inline]
pub fn get(thread: &Thread, fd: Fd) -> Result<Arc<OpenFile>> {
    thread.files.read().get(fd)
}

/// Installs a file at the lowest free descriptor. EMFILE.
pub fn install(thread: &Thread, file: Arc<OpenFile>, cloexec: bool) -> Result<Fd> {
    thread.files.read().install(file, 0, cloexec, limit(thread))
}

/// Installs two files, and stores their numbers. Neither stays unless both do and the numbers are known.
pub fn install_pair(thread: &Thread, files: [Arc<OpenFile>; 2], cloexec: bool, out: UserPtr<[i32; 2]>) -> Result<()> {
    let table = thread.files();
    let [first, second] = &files;
    let one = install(thread, first.clone(), cloexec)?;
    let other = install(thread, second.clone(), cloexec).inspect_err(|_| table.take_back(one, first))?;
    out.write(thread.user(), &[one.0, other.0]).inspect_err(|_| {
        table.take_back(one, first);
        table.take_back(other, second);
    })
}

/// Sets the lowest free descriptor aside, for a call that must not act before it is sure of one. EMFILE.
pub fn reserve(thread: &Thread) -> Result<Reserved> {
    thread.files.read().reserve(limit(thread))
}

/// One more than the highest descriptor the process may have.
pub fn limit(thread: &Thread) -> u64 {
    thread.limit(rlimit::NOFILE)
}

/// What follows when a descriptor has been taken out of the calling process's table: record locks go with any descriptor of
/// their file (fcntl(2)).
pub fn closed(thread: &Thread, file: &OpenFile) {
    let locks = &thread.kernel.files.locks;
    if locks.any_process_records()
        && let Ok(attr) = file.attr()
        && let Some(locks) = locks.find((attr.dev, attr.ino))
    {
        locks.release(Owner::Process(thread.task.pid));
    }
    file.ops.flush(file, &thread.caller());
}

/// close(2)
pub fn close(thread: &Thread, fd: Fd) -> Result<()> {
    let file = thread.files.read().remove(fd)?;
    closed(thread, &file);
    Ok(())
}

/// Flags of close_range(2).
#[derive(Clone, Copy, Debug)]
pub struct CloseRangeFlags(pub u32);

const CLOSE_RANGE_UNSHARE: u32 = 2;
const CLOSE_RANGE_CLOEXEC: u32 = 4;

impl Arg for CloseRangeFlags {
    const KIND: Kind = Kind::Named("close_range");
    fn decode(word: usize) -> Result<Self> {
        if word as u32 & !(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(CloseRangeFlags(word as u32))
    }
}

/// close_range(2)
pub fn close_range(thread: &Thread, first: u32, last: u32, flags: CloseRangeFlags) -> Result<()> {
    if first > last {
        return Err(Errno::EINVAL);
    }
    if flags.0 & CLOSE_RANGE_UNSHARE != 0 {
        task::own_files(thread)?;
    }
    let files = thread.files.read().clone();
    if flags.0 & CLOSE_RANGE_CLOEXEC != 0 {
        files.set_cloexec_range(first, last);
    } else {
        for file in files.take_range(first, last) {
            closed(thread, &file);
        }
    }
    Ok(())
}

/// dup(2)
pub fn dup(thread: &Thread, fd: Fd) -> Result<Fd> {
    let file = get(thread, fd)?;
    install(thread, file, false)
}

/// dup2(2)
pub fn dup2(thread: &Thread, old: Fd, new: Fd) -> Result<Fd> {
    let file = get(thread, old)?;
    if old != new {
        replace(thread, file, new, false)?;
    }
    Ok(new)
}

/// Flags of dup3(2): O_CLOEXEC alone.
#[derive(Clone, Copy, Debug)]
pub struct DupFlags(pub u32);

impl Arg for DupFlags {
    const KIND: Kind = Kind::Named("open");
    fn decode(word: usize) -> Result<Self> {
        if word as u32 & !O_CLOEXEC != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(DupFlags(word as u32))
    }
}

/// dup3(2)
pub fn dup3(thread: &Thread, old: Fd, new: Fd, flags: DupFlags) -> Result<Fd> {
    if old == new {
        return Err(Errno::EINVAL);
    }
    let file = get(thread, old)?;
    replace(thread, file, new, flags.0 & O_CLOEXEC != 0)?;
    Ok(new)
}

fn replace(thread: &Thread, file: Arc<OpenFile>, at: Fd, cloexec: bool) -> Result<()> {
    let old = thread.files.read().install_at(file, at, cloexec, limit(thread))?;
    if let Some(old) = old {
        closed(thread, &old);
    }
    Ok(())
}
