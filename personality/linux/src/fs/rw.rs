//! Reading and writing: read(2) and its vectored and positioned variants, lseek(2).
//!
//! Files never wait; this is the one place that waits for them. A call reads its scatter list once and looks its descriptor
//! up once; what can go on at once allocates nothing.

use janua_abi::linux::fcntl::rwf;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::net::af;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::signal::{SIGPIPE, SIGXFSZ};
use janua_kernel::iobuf::{IoVec, ReadBuf, WriteBuf};
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::thread::work;
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::file::{ENDLESS_PART, cut_behind, flags, offset};
use janua_object::net::socket;
use janua_object::vfs::FileKind;
use janua_object::vfs::watch::event;
use janua_object::{Events, OpenFile};

use crate::fs::fd;
use crate::thread::ThreadExt;
use crate::{Thread, signal};

/// Flags of preadv2(2) and pwritev2(2).
#[derive(Clone, Copy, Debug)]
pub struct RwFlags(pub u32);

const KNOWN: u32 = rwf::HIPRI | rwf::DSYNC | rwf::SYNC | rwf::NOWAIT | rwf::APPEND | rwf::NOAPPEND;

impl Arg for RwFlags {
    const KIND: Kind = Kind::Named("rwf");
    fn decode(word: usize) -> Result<Self> {
        let flags = word as u32;
        if flags & !KNOWN != 0 || flags & rwf::APPEND != 0 && flags & rwf::NOAPPEND != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        Ok(RwFlags(flags))
    }
}

/// What an offset of lseek(2) counts from.
#[derive(Clone, Copy, Debug)]
pub struct Whence(pub u32);

impl Arg for Whence {
    const KIND: Kind = Kind::Named("whence");
    fn decode(word: usize) -> Result<Self> {
        Ok(Whence(word as u32))
    }
}

/// Where a transfer starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the description's position, which moves on.
    Position,
    /// At this offset; the position stays.
    At(u64),
}

impl Place {
    /// The offset argument of a positioned call. EINVAL for a negative one, EBADF for a mere place, ESPIPE for a file without
    /// positions.
    fn of(file: &OpenFile, offset: i64) -> Result<Place> {
        let at = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
        match file.ops.seekable() {
            true => Ok(Place::At(at)),
            false if file.flags() & flags::O_PATH != 0 => Err(Errno::EBADF),
            false => Err(Errno::ESPIPE),
        }
    }

    /// EINVAL when `len` bytes from here on would end beyond the last offset there is.
    pub fn check(self, len: usize) -> Result<()> {
        match self {
            Place::At(at) if at.saturating_add(len as u64) > i64::MAX as u64 => Err(Errno::EINVAL),
            _ => Ok(()),
        }
    }
}

/// One attempt to read.
pub fn try_read(thread: &Thread, file: &OpenFile, buf: &mut ReadBuf<'_>, place: Place) -> Result<usize> {
    match place {
        Place::At(at) => file.ops.read(file, &thread.caller(), buf, at),
        Place::Position if file.ops.seekable() && !file.ops.keeps_position() => {
            let mut pos = file.pos.lock();
            let n = file.ops.read(file, &thread.caller(), buf, *pos)?;
            *pos += n as u64;
            Ok(n)
        }
        Place::Position => file.ops.read(file, &thread.caller(), buf, offset::CURRENT),
    }
}

/// One attempt to write what is in front of `most`. `append` writes to the end, wherever `place` is.
fn try_write(thread: &Thread, file: &OpenFile, buf: &mut WriteBuf<'_>, place: Place, append: bool, most: u64) -> Result<usize> {
    match place {
        // Nothing written changes nothing.
        Place::At(_) if append && buf.left() > 0 => Ok(file.ops.append(file, &thread.caller(), buf, most)?.0),
        Place::At(at) => file.ops.write(file, &thread.caller(), buf, at),
        Place::Position if file.ops.seekable() && !file.ops.keeps_position() => {
            let mut pos = file.pos.lock();
            // Nothing written moves nothing.
            let (n, end) = match append && buf.left() > 0 {
                true => file.ops.append(file, &thread.caller(), buf, most)?,
                false => {
                    cut_behind(buf, *pos, most)?;
                    let n = file.ops.write(file, &thread.caller(), buf, *pos)?;
                    (n, *pos + n as u64)
                }
            };
            *pos = end;
            Ok(n)
        }
        Place::Position => file.ops.write(file, &thread.caller(), buf, if append { offset::END } else { offset::CURRENT }),
    }
}

/// When a wait for `file` ends at the latest, and what it returns when a signal comes.
fn limits(thread: &Thread, file: &OpenFile, write: bool) -> (Option<u64>, Errno) {
    match file.ops.wait_limit(write) {
        None => (None, Errno::ERESTARTSYS),
        // A call with a timeout is not restarted: it would wait anew (signal(7)).
        Some(limit) => (Some(thread.machine().clock().monotonic().saturating_add(limit)), Errno::EINTR),
    }
}

fn cut(cut: Cut, interrupted: Errno) -> Errno {
    match cut {
        Cut::Interrupted => interrupted,
        Cut::TimedOut => Errno::EAGAIN,
    }
}

/// Reads, waiting for the first bytes unless the file or `nowait` forbids it.
pub async fn read_file(thread: &Thread, file: &OpenFile, buf: &mut ReadBuf<'_>, place: Place, nowait: bool) -> Result<usize> {
    let least = if file.ops.streams() { file.ops.before_transfer(&thread.caller(), false)? } else { 1 };
    if least > 1 && !nowait && !file.nonblocking() {
        return alloc::boxed::Box::pin(read_at_least(thread, file, buf, place, least)).await;
    }
    let result = match try_read(thread, file, buf, place) {
        Err(Errno::EAGAIN) if !nowait && !file.nonblocking() => {
            let (deadline, interrupted) = limits(thread, file, false);
            let ready = |table: &mut _| {
                file.poll(&thread.caller(), Some(table));
            };
            let test = || match try_read(thread, file, buf, place) {
                Err(Errno::EAGAIN) => None,
                result => Some(result),
            };
            match thread.wait_until(deadline, Events::READABLE.bits(), ready, test).await {
                Ok(result) => result,
                Err(Cut::TimedOut) => file.ops.timed_out(false),
                Err(why) => Err(cut(why, interrupted)),
            }
        }
        result => result,
    };
    let result = match result {
        Ok(ENDLESS_PART) if buf.left() > 0 && file.ops.endless() => Ok(ENDLESS_PART + read_on(thread, file, buf, place)),
        result => result,
    };
    if matches!(result, Ok(n) if n > 0) {
        file.notify(event::ACCESS);
    }
    result
}

/// Reads, waiting until there are `least` bytes, the buffer is full or no more will come. All of it is one wait.
async fn read_at_least(thread: &Thread, file: &OpenFile, buf: &mut ReadBuf<'_>, place: Place, least: usize) -> Result<usize> {
    let (deadline, interrupted) = limits(thread, file, false);
    let mut done = 0;
    let error = loop {
        let ready = |table: &mut _| {
            file.poll(&thread.caller(), Some(table));
        };
        let test = || match try_read(thread, file, buf, place) {
            Err(Errno::EAGAIN) => None,
            result => Some(result),
        };
        let read = match thread.wait_until(deadline, Events::READABLE.bits(), ready, test).await {
            Ok(result) => result,
            Err(why) => Err(cut(why, interrupted)),
        };
        match read {
            Ok(n) => {
                done += n;
                if n == 0 || done >= least || buf.left() == 0 || !thread.goes_on() {
                    break None;
                }
            }
            Err(errno) => break Some(errno),
        }
    };
    let Some(errno) = error.filter(|_| done == 0) else {
        // The end of a connection is returned by the next call: here some has come.
        if let (Some(errno @ (Errno::ECONNRESET | Errno::EPIPE | Errno::ETIMEDOUT)), Ok(socket)) =
            (error, socket::of_file(file))
        {
            socket.socket.common().set_error(errno);
        }
        if done > 0 {
            file.notify(event::ACCESS);
        }
        return Ok(done);
    };
    Err(errno)
}

/// Reads more of what has no end, until the buffer is full or a signal comes.
fn read_on(thread: &Thread, file: &OpenFile, buf: &mut ReadBuf<'_>, place: Place) -> usize {
    let mut done = 0;
    while buf.left() > 0 && thread.goes_on() {
        match try_read(thread, file, buf, place) {
            Ok(n) if n > 0 => done += n,
            _ => break,
        }
    }
    done
}

/// Writes. A stream's blocking write goes on until everything is written; what has been written counts, whatever ends it.
pub async fn write_file(thread: &Thread, file: &OpenFile, buf: &mut WriteBuf<'_>, place: Place, rwf: RwFlags) -> Result<usize> {
    let append = rwf.0 & rwf::APPEND != 0 || file.appends() && rwf.0 & rwf::NOAPPEND == 0;
    if rwf.0 & rwf::NOAPPEND != 0 && file.appends() {
        file.file_flags().check_append()?;
    }
    let most = limit_size(thread, file, buf, place, append)?;
    if file.ops.streams() {
        file.ops.before_transfer(&thread.caller(), true)?;
    }
    let wait = rwf.0 & rwf::NOWAIT == 0 && !file.nonblocking();
    let mut done = 0;
    let mut error = None;
    let mut limit = None;
    loop {
        let mut result = try_write(thread, file, buf, place, append, most);
        if wait && result == Err(Errno::EAGAIN) {
            // Of one call it is one time, however many parts it writes; a stream of AF_UNIX counts it for each, as on Linux.
            if socket::of_file(file).is_ok_and(|socket| socket.socket.common().family == af::UNIX) {
                limit = None;
            }
            let (deadline, interrupted) = *limit.get_or_insert_with(|| limits(thread, file, true));
            let ready = |table: &mut _| {
                file.poll(&thread.caller(), Some(table));
            };
            let test = || match try_write(thread, file, buf, place, append, most) {
                Err(Errno::EAGAIN) => None,
                result => Some(result),
            };
            result = match thread.wait_until(deadline, Events::WRITABLE.bits(), ready, test).await {
                Ok(result) => result,
                Err(why) => Err(cut(why, interrupted)),
            };
        }
        match result {
            Ok(n) => {
                done += n;
                if n == 0 || buf.left() == 0 || !file.ops.streams() || !thread.goes_on() {
                    break;
                }
            }
            Err(errno) => {
                error = Some(errno);
                break;
            }
        }
    }
    if error == Some(Errno::EPIPE) {
        signal::send_self(thread, SIGPIPE);
    }
    if error == Some(Errno::EFBIG) && done == 0 {
        // Another has written meanwhile.
        limit_size(thread, file, buf, place, append)?;
    }
    if let Some(errno) = error
        && done == 0
    {
        return Err(errno);
    }
    if done > 0 {
        if rwf.0 & (rwf::SYNC | rwf::DSYNC) != 0 || file.flags() & flags::O_DSYNC != 0 {
            file.ops.sync(rwf.0 & rwf::SYNC == 0 && file.flags() & flags::O_SYNC != flags::O_SYNC)?;
        }
        file.notify(event::MODIFY);
    }
    Ok(done)
}

/// RLIMIT_FSIZE for a write to a regular file, which it cuts a write at; `u64::MAX` for none. Where a write begins that waits for
/// others, or for the position, is known only then. EFBIG, with SIGXFSZ, when nothing is left.
fn limit_size(thread: &Thread, file: &OpenFile, buf: &mut WriteBuf<'_>, place: Place, append: bool) -> Result<u64> {
    if buf.left() == 0 || !file.inode().is_some_and(|inode| inode.kind() == FileKind::Regular) {
        return Ok(u64::MAX);
    }
    let limit = thread.limit(rlimit::FSIZE);
    if limit == rlimit::INFINITY {
        return Ok(u64::MAX);
    }
    let start = match place {
        _ if append => file.ops.size()?,
        Place::At(at) => at,
        Place::Position => *file.pos.lock(),
    };
    buf.limit(usize::try_from(room_below_limit(thread, start)?).unwrap_or(usize::MAX));
    Ok(limit)
}

/// Bytes from a place in a file up to RLIMIT_FSIZE. EFBIG, with SIGXFSZ, when there are none.
pub fn room_below_limit(thread: &Thread, start: u64) -> Result<u64> {
    let limit = thread.limit(rlimit::FSIZE);
    if limit != rlimit::INFINITY && start >= limit {
        signal::send_self(thread, SIGXFSZ);
        return Err(Errno::EFBIG);
    }
    Ok(limit - start.min(limit))
}

/// read(2)
pub async fn read(thread: &Thread, fd: Fd, buf: UserPtr<u8>, len: usize) -> Result<usize> {
    let file = fd::get(thread, fd)?;
    file.check_read()?;
    let mut buf = ReadBuf::user(thread.user(), buf.addr(), len)?.until(thread.work_word(), work::KILL);
    read_file(thread, &file, &mut buf, Place::Position, false).await
}

/// write(2)
pub async fn write(thread: &Thread, fd: Fd, buf: UserPtr<u8>, len: usize) -> Result<usize> {
    let file = fd::get(thread, fd)?;
    file.check_write()?;
    let mut buf = WriteBuf::user(thread.user(), buf.addr(), len)?.until(thread.work_word(), work::KILL);
    write_file(thread, &file, &mut buf, Place::Position, RwFlags(0)).await
}

/// pread(2)
pub async fn pread64(thread: &Thread, fd: Fd, buf: UserPtr<u8>, len: usize, offset: i64) -> Result<usize> {
    if offset < 0 {
        return Err(Errno::EINVAL);
    }
    let file = fd::get(thread, fd)?;
    let place = Place::of(&file, offset)?;
    file.check_read()?;
    let mut buf = ReadBuf::user(thread.user(), buf.addr(), len)?.until(thread.work_word(), work::KILL);
    place.check(len)?;
    read_file(thread, &file, &mut buf, place, false).await
}

/// pwrite(2). On a file opened with O_APPEND the bytes go to the end, as on Linux.
pub async fn pwrite64(thread: &Thread, fd: Fd, buf: UserPtr<u8>, len: usize, offset: i64) -> Result<usize> {
    if offset < 0 {
        return Err(Errno::EINVAL);
    }
    let file = fd::get(thread, fd)?;
    let place = Place::of(&file, offset)?;
    file.check_write()?;
    let mut buf = WriteBuf::user(thread.user(), buf.addr(), len)?.until(thread.work_word(), work::KILL);
    place.check(len)?;
    write_file(thread, &file, &mut buf, place, RwFlags(0)).await
}

async fn read_list<V: Layout<[usize; 2]>>(
    thread: &Thread,
    file: &OpenFile,
    list: (UserPtr<V>, usize),
    place: Place,
    nowait: bool,
) -> Result<usize> {
    file.check_read()?;
    let list = IoVec::read(thread.user(), list.0, list.1)?;
    place.check(list.total())?;
    let mut buf = ReadBuf::user_vec(thread.user(), &list).until(thread.work_word(), work::KILL);
    read_file(thread, file, &mut buf, place, nowait).await
}

async fn write_list<V: Layout<[usize; 2]>>(
    thread: &Thread,
    file: &OpenFile,
    list: (UserPtr<V>, usize),
    place: Place,
    rwf: RwFlags,
) -> Result<usize> {
    file.check_write()?;
    let list = IoVec::read(thread.user(), list.0, list.1)?;
    place.check(list.total())?;
    let mut buf = WriteBuf::user_vec(thread.user(), &list).until(thread.work_word(), work::KILL);
    write_file(thread, file, &mut buf, place, rwf).await
}

/// readv(2)
pub async fn readv(thread: &Thread, fd: Fd, list: UserPtr<impl Layout<[usize; 2]>>, count: usize) -> Result<usize> {
    let file = fd::get(thread, fd)?;
    read_list(thread, &file, (list, count), Place::Position, false).await
}

/// writev(2)
pub async fn writev(thread: &Thread, fd: Fd, list: UserPtr<impl Layout<[usize; 2]>>, count: usize) -> Result<usize> {
    let file = fd::get(thread, fd)?;
    write_list(thread, &file, (list, count), Place::Position, RwFlags(0)).await
}

/// preadv(2). The offset's upper half is a word of its own that only 32-bit machines use.
pub async fn preadv(
    thread: &Thread,
    fd: Fd,
    list: UserPtr<impl Layout<[usize; 2]>>,
    count: usize,
    offset: i64,
) -> Result<usize> {
    if offset < 0 {
        return Err(Errno::EINVAL);
    }
    let file = fd::get(thread, fd)?;
    let place = Place::of(&file, offset)?;
    read_list(thread, &file, (list, count), place, false).await
}

/// pwritev(2)
pub async fn pwritev(
    thread: &Thread,
    fd: Fd,
    list: UserPtr<impl Layout<[usize; 2]>>,
    count: usize,
    offset: i64,
) -> Result<usize> {
    if offset < 0 {
        return Err(Errno::EINVAL);
    }
    let file = fd::get(thread, fd)?;
    let place = Place::of(&file, offset)?;
    write_list(thread, &file, (list, count), place, RwFlags(0)).await
}

/// preadv2(2): an offset of -1 is the position.
pub async fn preadv2(
    thread: &Thread,
    fd: Fd,
    list: UserPtr<impl Layout<[usize; 2]>>,
    count: usize,
    offset: i64,
    _offset_high: usize,
    flags: RwFlags,
) -> Result<usize> {
    let file = fd::get(thread, fd)?;
    let place = if offset == -1 { Place::Position } else { Place::of(&file, offset)? };
    read_list(thread, &file, (list, count), place, flags.0 & rwf::NOWAIT != 0).await
}

/// pwritev2(2): an offset of -1 is the position.
pub async fn pwritev2(
    thread: &Thread,
    fd: Fd,
    list: UserPtr<impl Layout<[usize; 2]>>,
    count: usize,
    offset: i64,
    _offset_high: usize,
    flags: RwFlags,
) -> Result<usize> {
    let file = fd::get(thread, fd)?;
    let place = if offset == -1 { Place::Position } else { Place::of(&file, offset)? };
    write_list(thread, &file, (list, count), place, flags).await
}

/// lseek(2)
pub fn lseek(thread: &Thread, fd: Fd, offset: i64, whence: Whence) -> Result<u64> {
    let file = fd::get(thread, fd)?;
    if file.flags() & flags::O_PATH != 0 {
        return Err(Errno::EBADF);
    }
    file.ops.seek(&file, offset, whence.0)
}
