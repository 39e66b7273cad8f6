//! open(2), openat(2), openat2(2), creat(2).

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::stat::OpenHow as UserHow;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::{Arg, CallResult, Fd, Kind, OutcomeOf, SeatOf, Words};
use janua_kernel::{PathRoom, UserPtr, UserStr};
use janua_object::OpenFile;
use janua_object::fdtable::Reserved;
use janua_object::file::flags::{self, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_NONBLOCK, O_PATH, O_TMPFILE, O_TRUNC, O_WRONLY};
use janua_object::vfs::{FileKind, OpenHow, Resolve};

use super::at::{self, CWD, DirFd, Mode};
use super::{fd, leases, pipe};
use crate::thread::ThreadExt;
use crate::{Linux, Thread};

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

/// open(2)
pub fn open(seat: SeatOf<'_, Linux>, path: UserStr, flags: OpenFlags, mode: Mode) -> OutcomeOf {
    openat_now(seat, CWD, path, flags, mode)
}

/// creat(2)
pub fn creat(seat: SeatOf<'_, Linux>, path: UserStr, mode: Mode) -> OutcomeOf {
    openat_now(seat, CWD, path, OpenFlags(O_CREAT | O_WRONLY | O_TRUNC), mode)
}

/// openat(2), without a future where nothing is to be waited for.
pub fn openat_now(seat: SeatOf<'_, Linux>, dir: DirFd, path: UserStr, flags: OpenFlags, mode: Mode) -> OutcomeOf {
    let thread = seat.get_ref().owner();
    let attempted = how(flags, mode).and_then(|how| attempt(thread, dir, path, how));
    match attempted {
        Ok(Opened::At(fd)) if at::vfs(thread).leases.any() => {
            let settled = async |thread: &Thread, words: Words| settle(thread, Fd(words[0] as i32)).await.word();
            Thread::begin(seat, settled, [fd.0 as usize, 0, 0, 0, 0, 0])
        }
        Ok(Opened::At(fd)) => fd.word().into(),
        Ok(Opened::Waits(reserved, file)) => {
            let cloexec = flags.0 & O_CLOEXEC != 0;
            let opened = async move |thread: &Thread, _: Words| wait(thread, reserved, file, cloexec).await.word();
            Thread::begin(seat, opened, [0; 6])
        }
        Err(Errno::EJUKEBOX) => {
            let again = async |thread: &Thread, words: Words| {
                let (dir, path) = (DirFd(words[0] as i32), UserStr(words[1]));
                openat(thread, dir, path, OpenFlags(words[2] as u32), Mode(words[3] as u32)).await.word()
            };
            Thread::begin(seat, again, [dir.0 as usize, path.0, flags.0 as usize, mode.0 as usize, 0, 0])
        }
        Err(errno) => errno.as_result().into(),
    }
}

pub async fn openat(thread: &Thread, dir: DirFd, path: UserStr, flags: OpenFlags, mode: Mode) -> Result<Fd> {
    open_how(thread, dir, path, how(flags, mode)?).await
}

/// How open(2) opens with these flags. EINVAL.
fn how(flags: OpenFlags, mode: Mode) -> Result<OpenHow> {
    // Bits open(2) does not know were always ignored.
    let mut flags = flags.0 & KNOWN;
    if flags & O_PATH != 0 {
        flags &= O_PATH | O_DIRECTORY | flags::O_NOFOLLOW | O_CLOEXEC;
    }
    let mode = if flags & (O_CREAT | TMPFILE_BIT) != 0 { mode.0 & 0o7777 } else { 0 };
    sensible(OpenHow { flags: flags | flags::O_LARGEFILE, mode, umask: 0, resolve: Resolve::empty() })
}

/// EINVAL for flags that exclude each other.
fn sensible(how: OpenHow) -> Result<OpenHow> {
    let flags = how.flags;
    if flags & TMPFILE_BIT != 0 {
        let writes = flags & flags::O_ACCMODE != flags::O_RDONLY;
        if flags & O_TMPFILE != O_TMPFILE || flags & O_CREAT != 0 || !writes {
            return Err(Errno::EINVAL);
        }
    }
    if flags & (O_CREAT | O_DIRECTORY) == O_CREAT | O_DIRECTORY { Err(Errno::EINVAL) } else { Ok(how) }
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
    let how = OpenHow { flags: flags | flags::O_LARGEFILE, mode, umask: 0, resolve };
    open_how(thread, dir, path, sensible(how)?).await
}

async fn open_how(thread: &Thread, dir: DirFd, path: UserStr, how: OpenHow) -> Result<Fd> {
    let opened = match attempt(thread, dir, path, how) {
        Err(Errno::EJUKEBOX) => Box::pin(open_leased(thread, dir, path, how)).await?,
        opened => opened?,
    };
    let fd = match opened {
        Opened::At(fd) => fd,
        Opened::Waits(reserved, file) => wait(thread, reserved, file, how.flags & O_CLOEXEC != 0).await?,
    };
    // Asked once it has its number: who takes a lease from here on finds it there.
    if at::vfs(thread).leases.any() { Box::pin(settle(thread, fd)).await } else { Ok(fd) }
}

/// Ends an open that may have met a lease when it had its number.
async fn settle(thread: &Thread, fd: Fd) -> Result<Fd> {
    if let Ok(file) = fd::get(thread, fd) {
        leases::opened(thread, &file).await;
    }
    Ok(fd)
}

/// Waits for the other side of a fifo, and gives it its number.
async fn wait(thread: &Thread, reserved: Reserved, file: Arc<OpenFile>, cloexec: bool) -> Result<Fd> {
    pipe::opened(thread, &file).await?;
    let fd = reserved.install(file, cloexec)?;
    if at::vfs(thread).leases.any() { settle(thread, fd).await } else { Ok(fd) }
}

/// Opens a file that has met a lease, once that is over.
#[cold]
async fn open_leased(thread: &Thread, dir: DirFd, path: UserStr, how: OpenHow) -> Result<Opened> {
    leases::wait(thread, how.flags & O_NONBLOCK != 0, || attempt(thread, dir, path, how)).await
}

/// What came of an attempt to open.
enum Opened {
    At(Fd),
    /// A fifo whose other side is to be waited for, and the number it gets then.
    Waits(Reserved, Arc<OpenFile>),
}

/// Opens a file. EJUKEBOX when it has a lease that is to be waited for.
fn attempt(thread: &Thread, dir: DirFd, path: UserStr, mut how: OpenHow) -> Result<Opened> {
    let mut room = PathRoom::new();
    let path = path.path_in(thread.user(), &mut room)?;
    let cloexec = how.flags & O_CLOEXEC != 0;
    how.flags &= !O_CLOEXEC;
    // Nobody but this thread puts another table in its place.
    let (files, limit) = (thread.files.read(), fd::limit(thread));
    // Nothing is made, emptied or woken for a file that could have no number: one is set aside. To open a file or a directory that is
    // there changes nothing.
    let changes = how.flags & (O_CREAT | TMPFILE_BIT | O_TRUNC) != 0;
    let mut reserved = if changes || !files.has_room(limit) { Some(files.reserve(limit)?) } else { None };
    let plain = how.flags & (O_CREAT | TMPFILE_BIT) == 0 && how.resolve.is_empty();
    if plain && let Some(known) = at::known_to_open(thread, dir, path, how.flags) {
        let known = known?;
        if reserved.is_none() && !matches!(known.kind(), FileKind::Regular | FileKind::Directory) {
            reserved = Some(files.reserve(limit)?);
        }
        if let Some(opened) = known.open(thread, path, &how) {
            return match reserved {
                None => files.install(opened?, 0, cloexec, limit).map(Opened::At),
                Some(reserved) => install(reserved, opened?, cloexec),
            };
        }
    }
    let reserved = match reserved {
        Some(reserved) => reserved,
        None => files.reserve(limit)?,
    };
    drop(files);
    // In a scoped walk an absolute name starts at the directory too.
    let scoped = how.resolve.intersects(Resolve::IN_ROOT | Resolve::BENEATH);
    let start = at::start(thread, dir, if scoped { b"" } else { path })?;
    how.umask = thread.fs.read().umask.load(Ordering::Relaxed);
    install(reserved, at::vfs(thread).open(&thread.caller(), &start, path, &how)?, cloexec)
}

fn install(reserved: Reserved, file: Arc<OpenFile>, cloexec: bool) -> Result<Opened> {
    if pipe::waits(&file) { Ok(Opened::Waits(reserved, file)) } else { reserved.install(file, cloexec).map(Opened::At) }
}
