//! Writing back, and hints about use to come: fsync(2), sync(2), fadvise64(2), readahead(2) and the like.

use janua_kernel::table::Fd;
use janua_kernel::{Errno, Result};
use janua_object::OpenFile;
use janua_object::file::flags;
use janua_object::pipe::PipeEnd;
use janua_object::vfs::FileKind;

use crate::Thread;
use crate::fs::fd;

fn open(thread: &Thread, fd: Fd) -> Result<alloc::sync::Arc<OpenFile>> {
    let file = fd::get(thread, fd)?;
    if file.flags() & flags::O_PATH != 0 { Err(Errno::EBADF) } else { Ok(file) }
}

/// fsync(2)
pub fn fsync(thread: &Thread, fd: Fd) -> Result<()> {
    open(thread, fd)?.ops.sync(false)
}

/// fdatasync(2)
pub fn fdatasync(thread: &Thread, fd: Fd) -> Result<()> {
    open(thread, fd)?.ops.sync(true)
}

/// sync(2)
pub fn sync(thread: &Thread) {
    for mount in thread.kernel.vfs.mounts() {
        // As on Linux, an error of one file system is not reported here.
        let _ = mount.fs.sync();
    }
}

/// syncfs(2)
pub fn syncfs(thread: &Thread, fd: Fd) -> Result<()> {
    match &open(thread, fd)?.path {
        Some(path) => path.mount.fs.sync(),
        // The file system of pipes, sockets and their like keeps nothing.
        None => Ok(()),
    }
}

const SYNC_FILE_RANGE_KNOWN: u32 = 7;

/// sync_file_range(2): writes the whole file's data back, which is more than asked.
pub fn sync_file_range(thread: &Thread, fd: Fd, offset: i64, bytes: i64, flags: u32) -> Result<()> {
    let file = open(thread, fd)?;
    if flags & !SYNC_FILE_RANGE_KNOWN != 0 || offset < 0 || offset.checked_add(bytes).is_none_or(|end| end < offset) {
        return Err(Errno::EINVAL);
    }
    match file.attr()?.kind() {
        Some(FileKind::Regular | FileKind::BlockDevice | FileKind::Directory) if flags != 0 => file.ops.sync(true),
        Some(FileKind::Regular | FileKind::BlockDevice | FileKind::Directory) => Ok(()),
        _ => Err(Errno::ESPIPE),
    }
}

/// posix_fadvise(2). Advice is taken note of by checking it: reads of the kernel's own files are never ahead or behind.
pub fn fadvise64(thread: &Thread, fd: Fd, _offset: i64, len: i64, advice: u32) -> Result<()> {
    const POSIX_FADV_NOREUSE: u32 = 5;
    let file = open(thread, fd)?;
    if file.downcast::<PipeEnd>().is_some() {
        return Err(Errno::ESPIPE);
    }
    if len < 0 || advice > POSIX_FADV_NOREUSE {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// readahead(2)
pub fn readahead(thread: &Thread, fd: Fd, _offset: i64, _count: usize) -> Result<()> {
    let file = open(thread, fd)?;
    file.check_read()?;
    match file.attr()?.kind() {
        Some(FileKind::Regular | FileKind::BlockDevice) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}
