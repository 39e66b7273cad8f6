//! open(2), openat(2), openat2(2), creat(2).

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::stat::OpenHow as UserHow;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::{UserPtr, UserStr};
use janua_object::OpenFile;
use janua_object::fdtable::Reserved;
use janua_object::file::flags::{self, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_NONBLOCK, O_PATH, O_TMPFILE, O_TRUNC, O_WRONLY};
use janua_object::vfs::{OpenHow, Resolve};

use super::at::{self, CWD, DirFd, Mode};
use super::{fd, leases, pipe};
use crate::Thread;
use crate::thread::ThreadExt;

/// O_* flags as a guest gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFlags(pub u32);

impl Arg for OpenFlags {
    const KIND: Kind = Kind::Named("open");
    fn decode(word: usize) -> Result<Self> {
        Ok(OpenFlags(word as u32))
    }
}

/// Every flag open(2) knows.
const KNOWN: u32 = flags::O_ACCMODE
    | O_CREAT
    | flags::O_EXCL
    | flags::O_NOCTTY
    | O_TRUNC
    | flags::O_APPEND
    | flags::O_NONBLOCK
    | flags::O_DSYNC
    | flags::O_ASYNC
    | flags::O_DIRECT
    | flags::O_LARGEFILE
    | O_DIRECTORY
    | flags::O_NOFOLLOW
    | flags::O_NOATIME
    | O_CLOEXEC
    | flags::O_SYNC
    | O_PATH
    | O_TMPFILE;

/// The part of O_TMPFILE that is not O_DIRECTORY.
const TMPFILE_BIT: u32 = O_TMPFILE & !O_DIRECTORY;

pub async fn open(thread: &Thread, path: UserStr, flags: OpenFlags, mode: Mode) -> Result<Fd> {
    openat(thread, CWD, path, flags, mode).await
}

pub async fn creat(thread: &Thread, path: UserStr, mode: Mode) -> Result<Fd> {
    openat(thread, CWD, path, OpenFlags(O_CREAT | O_WRONLY | O_TRUNC), mode).await
}

pub async fn openat(thread: &Thread, dir: DirFd, path: UserStr, flags: OpenFlags, mode: Mode) -> Result<Fd> {
    // Bits open(2) does not know were always ignored.
    let mut flags = flags.0 & KNOWN;
    if flags & O_PATH != 0 {
        flags &= O_PATH | O_DIRECTORY | flags::O_NOFOLLOW | O_CLOEXEC;
    }
    let mode = if flags & (O_CREAT | TMPFILE_BIT) != 0 { mode.0 & 0o7777 } else { 0 };
    open_how(thread, dir, path, flags | flags::O_LARGEFILE, mode, Resolve::empty()).await
}

pub async fn openat2(thread: &Thread, dir: DirFd, path: UserStr, how: UserPtr<UserHow>, size: usize) -> Result<Fd> {
    const SIZE: usize = size_of::<UserHow>();
    if size < SIZE {
        return Err(Errno::EINVAL);
    }
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    // A larger structure from a newer program is fine as long as what we do not know is zero.
    let rest = how.at(1).cast::<u8>().slice(size - SIZE).read_vec(thread.user(), 4096)?;
    if rest.iter().any(|byte| *byte != 0) {
        return Err(Errno::E2BIG);
    }
    let how = how.read(thread.user())?;
    let flags = u32::try_from(how.flags).map_err(|_| Errno::EINVAL)?;
    let mode = u32::try_from(how.mode).map_err(|_| Errno::EINVAL)?;
    let resolve = Resolve::from_bits(how.resolve).ok_or(Errno::EINVAL)?;
    let creates = flags & (O_CREAT | TMPFILE_BIT) != 0;
    let wrong = flags & !KNOWN != 0
        || mode & !0o7777 != 0
        || (mode != 0 && !creates)
        || resolve.contains(Resolve::BENEATH | Resolve::IN_ROOT)
        || (flags & O_PATH != 0 && flags & !(O_PATH | O_DIRECTORY | flags::O_NOFOLLOW | O_CLOEXEC) != 0);
    if wrong {
        return Err(Errno::EINVAL);
    }
    if resolve.contains(Resolve::CACHED) && flags & (O_TRUNC | O_CREAT | TMPFILE_BIT) != 0 {
        return Err(Errno::EAGAIN);
    }
    open_how(thread, dir, path, flags | flags::O_LARGEFILE, mode, resolve).await
}

async fn open_how(thread: &Thread, dir: DirFd, path: UserStr, flags: u32, mode: u32, resolve: Resolve) -> Result<Fd> {
    if flags & TMPFILE_BIT != 0 {
        let writes = flags & flags::O_ACCMODE != flags::O_RDONLY;
        if flags & O_TMPFILE != O_TMPFILE || flags & O_CREAT != 0 || !writes {
            return Err(Errno::EINVAL);
        }
    }
    if flags & (O_CREAT | O_DIRECTORY) == O_CREAT | O_DIRECTORY {
        return Err(Errno::EINVAL);
    }
    let how = OpenHow { flags: flags & !O_CLOEXEC, mode, resolve };
    let (reserved, file) = match try_open(thread, dir, path, how) {
        Err(Errno::EJUKEBOX) => Box::pin(open_leased(thread, dir, path, how)).await?,
        opened => opened?,
    };
    pipe::opened(thread, &file).await?;
    let fd = reserved.install(file, flags & O_CLOEXEC != 0)?;
    // Asked once it has its number: who takes a lease from here on finds it there.
    if at::vfs(thread).leases.any()
        && let Ok(file) = fd::get(thread, fd)
    {
        Box::pin(leases::opened(thread, &file)).await;
    }
    Ok(fd)
}

/// Opens a file that has met a lease, once that is over.
#[cold]
async fn open_leased(thread: &Thread, dir: DirFd, path: UserStr, how: OpenHow) -> Result<(Reserved, Arc<OpenFile>)> {
    #[cold]
    #[inline(never)]
    fn again(thread: &Thread, dir: DirFd, path: UserStr, how: OpenHow) -> Result<(Reserved, Arc<OpenFile>)> {
        try_open(thread, dir, path, how)
    }
    leases::wait(thread, how.flags & O_NONBLOCK != 0, || again(thread, dir, path, how)).await
}

/// Opens a file and sets a number aside for it.
#[inline]
fn try_open(thread: &Thread, dir: DirFd, path: UserStr, mut how: OpenHow) -> Result<(Reserved, Arc<OpenFile>)> {
    let path = path.path(thread.user())?;
    // Nothing is made, emptied or woken for a file that could have no number.
    let reserved = fd::reserve(thread)?;
    // In a scoped walk an absolute name starts at the directory too.
    let scoped = how.resolve.intersects(Resolve::IN_ROOT | Resolve::BENEATH);
    let plain = how.flags & (O_CREAT | TMPFILE_BIT) == 0 && how.resolve.is_empty();
    let known = plain.then(|| at::open_known(thread, dir, &path, &how)).flatten();
    let file = if let Some(opened) = known {
        opened?
    } else {
        let start = at::start(thread, dir, if scoped { b"" } else { &path })?;
        how.mode &= !thread.fs.read().umask.load(Ordering::Relaxed);
        at::vfs(thread).open(&thread.caller(), &start, &path, &how)?
    };
    Ok((reserved, file))
}
