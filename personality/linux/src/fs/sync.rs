//! Writing back, and hints about use to come: fsync(2), sync(2), fadvise64(2), readahead(2) and the like.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_kernel::table::Fd;
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result};
use janua_object::OpenFile;
use janua_object::file::flags;
use janua_object::pipe::PipeEnd;
use janua_object::vfs::{FileKind, FileSystem};

use crate::Thread;
use crate::fs::fd;

fn open(thread: &Thread, fd: Fd) -> Result<Arc<OpenFile>> {
    let file = fd::get(thread, fd)?;
    if file.flags() & flags::O_PATH != 0 { Err(Errno::EBADF) } else { Ok(file) }
}

/// Writes a file's data back, and what else has changed of it.
async fn write_back(thread: &Thread, file: Arc<OpenFile>, data_only: bool) -> Result<()> {
    if !file.ops.sync_blocks() {
        return file.ops.sync(data_only);
    }
    done(thread.offload(move || file.ops.sync(data_only)).await)
}

/// What became of work that was perhaps given up: then its thread is killed, or the submission cancelled.
fn done(result: core::result::Result<Result<()>, Cut>) -> Result<()> {
    result.map_err(|cut| cut.errno(Errno::EINTR))?
}

/// fsync(2)
pub async fn fsync(thread: &Thread, fd: Fd) -> Result<()> {
    let file = open(thread, fd)?;
    write_back(thread, file, false).await
}

/// fdatasync(2)
pub async fn fdatasync(thread: &Thread, fd: Fd) -> Result<()> {
    let file = open(thread, fd)?;
    write_back(thread, file, true).await
}

/// sync(2). As on Linux, an error of one file system is not reported.
pub async fn sync(thread: &Thread) -> Result<()> {
    // Not the mounts, which can be unmounted meanwhile; each file system once.
    let mut all: Vec<Arc<dyn FileSystem>> = Vec::new();
    thread.kernel.vfs.list_mounts(|mounts| {
        let mut seen = BTreeSet::new();
        all.extend(mounts.iter().filter(|mount| seen.insert(Arc::as_ptr(&mount.fs).addr())).map(|mount| mount.fs.clone()));
    });
    let (slow, quick): (Vec<_>, Vec<_>) = all.into_iter().partition(|fs| fs.sync_blocks());
    let each = |all: Vec<Arc<dyn FileSystem>>| {
        for fs in all {
            let _ = fs.sync();
        }
    };
    each(quick);
    if slow.is_empty() {
        return Ok(());
    }
    let all = move || {
        each(slow);
        Ok(())
    };
    done(thread.offload(all).await)
}

/// syncfs(2)
pub async fn syncfs(thread: &Thread, fd: Fd) -> Result<()> {
    let file = open(thread, fd)?;
    let (fs, inode) = match &file.path {
        Some(path) => (path.mount.fs.clone(), path.inode().clone()),
        // The file system of pipes, sockets and their like keeps nothing; that of an inherited file is the host's.
        None if !file.ops.sync_blocks() => return file.ops.sync_fs(),
        None => return done(thread.offload(move || file.ops.sync_fs()).await),
    };
    if !fs.sync_blocks() {
        return fs.sync_of(&*inode);
    }
    done(thread.offload(move || fs.sync_of(&*inode)).await)
}

const SYNC_FILE_RANGE_KNOWN: u32 = 7;

/// sync_file_range(2): writes the whole file's data back, which is more than asked.
pub async fn sync_file_range(thread: &Thread, fd: Fd, offset: i64, bytes: i64, flags: u32) -> Result<()> {
    let file = open(thread, fd)?;
    if flags & !SYNC_FILE_RANGE_KNOWN != 0 || offset < 0 || offset.checked_add(bytes).is_none_or(|end| end < offset) {
        return Err(Errno::EINVAL);
    }
    match file.attr()?.kind() {
        Some(FileKind::Regular | FileKind::BlockDevice | FileKind::Directory) if flags != 0 => {
            write_back(thread, file, true).await
        }
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
