//! Moving bytes between files without user memory: splice(2), tee(2), vmsplice(2), sendfile(2), copy_file_range(2).
//!
//! Bytes pass through a buffer of the kernel. What was taken from a pipe and not accepted by the other side is put back, and
//! what was read for a pipe is stored even if others filled it meanwhile, so nothing is lost however a call ends.

use alloc::sync::Arc;
use alloc::vec;

use janua_abi::linux::fcntl::rwf;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::signal::SIGPIPE;
use janua_kernel::iobuf::{IoVec, MOST, ReadBuf, WriteBuf};
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::file::{flags, whence};
use janua_object::pipe::{PIPE_BUF, Pipe, PipeEnd};
use janua_object::vfs::FileKind;
use janua_object::{Events, OpenFile};

use crate::fs::fd;
use crate::fs::rw::{self, Place, RwFlags, read_file, write_file};
use crate::thread::ThreadExt;
use crate::{Thread, signal};

/// Flags of splice(2), tee(2) and vmsplice(2).
#[derive(Clone, Copy, Debug)]
pub struct SpliceFlags(pub u32);

const SPLICE_F_MOVE: u32 = 1;
const SPLICE_F_NONBLOCK: u32 = 2;
const SPLICE_F_MORE: u32 = 4;
const SPLICE_F_GIFT: u32 = 8;

impl Arg for SpliceFlags {
    const KIND: Kind = Kind::Named("splice");
    fn decode(word: usize) -> Result<Self> {
        let known = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;
        if word as u32 & !known != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(SpliceFlags(word as u32))
    }
}

impl SpliceFlags {
    fn nonblocking(self) -> bool {
        self.0 & SPLICE_F_NONBLOCK != 0
    }
}

/// Bytes a transfer moves at a time.
const CHUNK: usize = 64 * 1024;

/// The pipe behind a file that is an end of one.
fn pipe_of(file: &OpenFile) -> Option<&Arc<Pipe>> {
    file.downcast::<PipeEnd>().map(|end| &end.pipe)
}

/// Where a transfer starts at a file that is no pipe. ESPIPE for an offset to a file without positions, EINVAL for a negative.
fn place(thread: &Thread, file: &OpenFile, offset: UserPtr<impl Layout<i64>>) -> Result<Place> {
    let Some(pointer) = offset.non_null() else { return Ok(Place::Position) };
    let at: i64 = pointer.load(thread.user())?;
    if !file.ops.seekable() {
        return Err(Errno::ESPIPE);
    }
    u64::try_from(at).map(Place::At).map_err(|_| Errno::EINVAL)
}

/// Moves the guest's offset on by what was done.
fn store(thread: &Thread, offset: UserPtr<impl Layout<i64>>, place: Place, done: usize) -> Result<()> {
    match (offset.non_null(), place) {
        (Some(pointer), Place::At(at)) => pointer.store(thread.user(), &((at + done as u64) as i64)),
        _ => Ok(()),
    }
}

fn broken_pipe(thread: &Thread, errno: Errno) -> Errno {
    if errno == Errno::EPIPE {
        signal::send_self(thread, SIGPIPE);
    }
    errno
}

/// Waits, unless the flags forbid it, until `test` returns something other than EAGAIN.
async fn when_ready<T>(
    thread: &Thread,
    file: &OpenFile,
    events: Events,
    nonblocking: bool,
    mut test: impl FnMut() -> Result<T> + Send,
) -> Result<T> {
    if nonblocking || file.nonblocking() {
        return test();
    }
    let ready = |table: &mut _| {
        file.poll(&thread.caller(), Some(table));
    };
    let attempt = || match test() {
        Err(Errno::EAGAIN) => None,
        result => Some(result),
    };
    match thread.wait_until(None, events.bits(), ready, attempt).await {
        Ok(result) => result,
        Err(cut) => Err(cut.errno(Errno::EAGAIN)),
    }
}

/// splice(2)
pub async fn splice(
    thread: &Thread,
    fd_in: Fd,
    off_in: UserPtr<i64>,
    fd_out: Fd,
    off_out: UserPtr<i64>,
    len: usize,
    flags: SpliceFlags,
) -> Result<usize> {
    if len == 0 {
        return Ok(0);
    }
    let input = fd::get(thread, fd_in)?;
    let output = fd::get(thread, fd_out)?;
    input.check_read()?;
    output.check_write()?;
    match (pipe_of(&input), pipe_of(&output)) {
        (None, None) => return Err(Errno::EINVAL),
        (Some(_), _) if !off_in.is_null() => return Err(Errno::ESPIPE),
        (_, Some(_)) if !off_out.is_null() => return Err(Errno::ESPIPE),
        _ => {}
    }
    let places = [place(thread, &input, off_in)?, place(thread, &output, off_out)?];
    let done = splice_at(thread, [&input, &output], places, len, flags).await?;
    store(thread, off_in, places[0], done)?;
    store(thread, off_out, places[1], done)?;
    Ok(done)
}

/// splice(2) from one file into the other, each from its place on. EINVAL unless one of them is a pipe.
pub async fn splice_at(
    thread: &Thread,
    [input, output]: [&OpenFile; 2],
    [from, to]: [Place; 2],
    len: usize,
    flags: SpliceFlags,
) -> Result<usize> {
    let len = len.min(MOST);
    match (pipe_of(input), pipe_of(output)) {
        (None, None) => Err(Errno::EINVAL),
        (Some(one), Some(other)) if Arc::ptr_eq(one, other) => Err(Errno::EINVAL),
        (Some(_), Some(_)) => between_pipes(thread, input, output, len, flags, false).await,
        (Some(_), None) if output.appends() || !output.ops.splices(true) => Err(Errno::EINVAL),
        (Some(_), None) => from_pipe(thread, input, output, to, len, flags).await,
        (None, Some(_)) => into_pipe(thread, input, output, from, len, flags).await,
    }
}

/// Moves (or, for tee(2), copies) what one pipe holds into another, as far as there is room.
async fn between_pipes(
    thread: &Thread,
    input: &OpenFile,
    output: &OpenFile,
    len: usize,
    flags: SpliceFlags,
    copy: bool,
) -> Result<usize> {
    let (Some(from), Some(to)) = (pipe_of(input), pipe_of(output)) else { return Err(Errno::EINVAL) };
    let (buffer, n) = loop {
        let readable = when_ready(thread, input, Events::READABLE, flags.nonblocking(), || from.peek(&mut [0])).await?;
        if readable == 0 {
            return Ok(0);
        }
        let room = when_ready(thread, output, Events::WRITABLE, flags.nonblocking(), || to.room_or_wait())
            .await
            .map_err(|errno| broken_pipe(thread, errno))?;
        let mut buffer = vec![0; len.min(room).min(from.held().max(1))];
        match if copy { from.peek(&mut buffer) } else { from.take(&mut buffer) } {
            // Another reader has taken it while this one waited for room.
            Err(Errno::EAGAIN) if !flags.nonblocking() && !input.nonblocking() => {}
            taken => break (buffer, taken?),
        }
    };
    to.push(&buffer[..n]).map_err(|errno| {
        if !copy {
            from.unread(&buffer[..n]);
        }
        broken_pipe(thread, errno)
    })?;
    Ok(n)
}

/// Pipe to file: what is there, waiting only for the first bytes.
async fn from_pipe(
    thread: &Thread,
    input: &OpenFile,
    output: &OpenFile,
    mut place: Place,
    len: usize,
    flags: SpliceFlags,
) -> Result<usize> {
    let Some(pipe) = pipe_of(input) else { return Err(Errno::EINVAL) };
    let how = RwFlags(if flags.nonblocking() && output.ops.may_wait() { rwf::NOWAIT } else { 0 });
    let mut buffer = vec![0; len.min(CHUNK)];
    let mut done = 0;
    while done < len {
        let most = (len - done).min(CHUNK);
        let taken = if done == 0 {
            when_ready(thread, input, Events::READABLE, flags.nonblocking(), || pipe.take(&mut buffer[..most])).await?
        } else {
            match pipe.take(&mut buffer[..most]) {
                Err(Errno::EAGAIN) => break,
                other => other?,
            }
        };
        if taken == 0 {
            break;
        }
        let (n, error) = write_rest(thread, output, &buffer[..taken], &mut place, how).await;
        pipe.unread(&buffer[n..taken]);
        done += n;
        match error {
            Some(errno) if done == 0 => return Err(errno),
            Some(_) => break,
            None if n < taken => break,
            None => {}
        }
    }
    Ok(done)
}

/// Writes until all is written or an error stops it: as on Linux what a write takes in part is tried once more, which is when
/// SIGXFSZ comes.
async fn write_rest(
    thread: &Thread,
    output: &OpenFile,
    bytes: &[u8],
    place: &mut Place,
    rwf: RwFlags,
) -> (usize, Option<Errno>) {
    let mut done = 0;
    while done < bytes.len() {
        match write_file(thread, output, &mut WriteBuf::kernel(&bytes[done..]), *place, rwf).await {
            Ok(0) => break,
            Ok(n) => {
                done += n;
                if let Place::At(at) = place {
                    *at += n as u64;
                }
            }
            Err(errno) => return (done, Some(errno)),
        }
    }
    (done, None)
}

/// File to pipe: as much as one read brings and there is room for.
async fn into_pipe(
    thread: &Thread,
    input: &OpenFile,
    output: &OpenFile,
    place: Place,
    len: usize,
    flags: SpliceFlags,
) -> Result<usize> {
    let Some(pipe) = pipe_of(output) else { return Err(Errno::EINVAL) };
    let room = when_ready(thread, output, Events::WRITABLE, flags.nonblocking(), || pipe.room_or_wait())
        .await
        .map_err(|errno| broken_pipe(thread, errno))?;
    if !input.ops.splices(false) {
        return Err(Errno::EINVAL);
    }
    let mut buffer = vec![0; len.min(room).min(CHUNK)];
    let nowait = flags.nonblocking() && input.ops.may_wait();
    let n = read_file(thread, input, &mut ReadBuf::kernel(&mut buffer), place, nowait).await?;
    pipe.push(&buffer[..n]).map_err(|errno| broken_pipe(thread, errno))?;
    Ok(n)
}

/// tee(2)
pub async fn tee(thread: &Thread, fd_in: Fd, fd_out: Fd, len: usize, flags: SpliceFlags) -> Result<usize> {
    if len == 0 {
        return Ok(0);
    }
    let input = fd::get(thread, fd_in)?;
    let output = fd::get(thread, fd_out)?;
    input.check_read()?;
    output.check_write()?;
    match (pipe_of(&input), pipe_of(&output)) {
        (Some(from), Some(to)) if !Arc::ptr_eq(from, to) => {
            between_pipes(thread, &input, &output, len.min(MOST), flags, true).await
        }
        _ => Err(Errno::EINVAL),
    }
}

/// vmsplice(2): pages are copied, never given.
pub async fn vmsplice(
    thread: &Thread,
    fd: Fd,
    list: UserPtr<impl Layout<[usize; 2]>>,
    count: usize,
    flags: SpliceFlags,
) -> Result<usize> {
    let file = fd::get(thread, fd)?;
    let end = file.downcast::<PipeEnd>().ok_or(Errno::EBADF)?;
    let list = IoVec::read(thread.user(), list, count)?;
    if end.writes() {
        vmsplice_in(thread, &end.pipe, &list, flags).await
    } else {
        let nowait = flags.nonblocking();
        read_file(thread, &file, &mut ReadBuf::user_vec(thread.user(), &list), Place::Position, nowait).await
    }
}

/// Into the pipe as much as there is room for, waiting only for the first free slot.
async fn vmsplice_in(thread: &Thread, pipe: &Arc<Pipe>, list: &IoVec, flags: SpliceFlags) -> Result<usize> {
    if list.total() == 0 {
        return Ok(0);
    }
    let attempt = || match pipe.room_or_wait() {
        Err(Errno::EAGAIN) if !flags.nonblocking() => None,
        result => Some(result),
    };
    let room = match thread.wait_on(pipe.writable(), None, attempt).await {
        Ok(room) => room.map_err(|errno| broken_pipe(thread, errno))?,
        Err(cut) => return Err(cut.errno(Errno::EAGAIN)),
    };
    push_pages(thread, pipe, list, room / PIPE_BUF).map_err(|errno| broken_pipe(thread, errno))
}

/// Fills up to `slots` slots of a pipe: each page of the memory takes one, however little of it is given.
fn push_pages(thread: &Thread, pipe: &Pipe, list: &IoVec, slots: usize) -> Result<usize> {
    let pieces = list.ranges().iter().flat_map(|&(start, len)| {
        let page = move |at: usize| (PIPE_BUF - (start + at) % PIPE_BUF).min(len - at);
        core::iter::successors(Some(0), move |&at| Some(at + page(at))).take_while(move |&at| at < len).map(page)
    });
    let mut from = WriteBuf::user_vec(thread.user(), list);
    let mut page = vec![0; PIPE_BUF];
    let mut done = 0;
    for len in pieces.take(slots) {
        let got = match from.get(&mut page[..len]) {
            Err(errno) if done == 0 => return Err(errno),
            other => other.unwrap_or(0),
        };
        if got == 0 {
            break;
        }
        pipe.push(&page[..got])?;
        done += got;
    }
    Ok(done)
}

/// sendfile(2)
pub async fn sendfile(
    thread: &Thread,
    fd_out: Fd,
    fd_in: Fd,
    offset: UserPtr<impl Layout<i64>>,
    count: usize,
) -> Result<usize> {
    let input = fd::get(thread, fd_in)?;
    input.check_read()?;
    let from = place(thread, &input, offset)?;
    let output = fd::get(thread, fd_out)?;
    output.check_write()?;
    if !input.ops.seekable() || output.appends() {
        return Err(Errno::EINVAL);
    }
    from.check(count)?;
    if isize::try_from(count).is_err() {
        return Err(Errno::EINVAL);
    }
    let count = count.min(MOST);
    let done = if pipe_of(&output).is_some() {
        // Into a pipe as splice(2) does it: what there is room for.
        into_pipe(thread, &input, &output, from, count, SpliceFlags(0)).await?
    } else {
        copy(thread, &input, from, &output, Place::Position, count).await?
    };
    store(thread, offset, from, done)?;
    Ok(done)
}

/// Copies from a file with positions until `len` bytes, the end, or the first thing in the way. What the other side did not
/// accept counts as not read.
async fn copy(thread: &Thread, input: &OpenFile, from: Place, output: &OpenFile, mut to: Place, len: usize) -> Result<usize> {
    let start = match from {
        Place::At(at) => at,
        Place::Position => input.ops.seek(input, 0, whence::SEEK_CUR)?,
    };
    let mut buffer = vec![0; len.min(CHUNK)];
    let mut done = 0;
    let mut error = None;
    while done < len {
        let most = (len - done).min(CHUNK);
        let at = Place::At(start + done as u64);
        let n = match read_file(thread, input, &mut ReadBuf::kernel(&mut buffer[..most]), at, false).await {
            Ok(0) => break,
            Ok(n) => n,
            Err(errno) => {
                error = Some(errno);
                break;
            }
        };
        let (written, failed) = write_rest(thread, output, &buffer[..n], &mut to, RwFlags(0)).await;
        done += written;
        error = failed;
        if written < n {
            break;
        }
        // A long copy must not keep a kill waiting.
        if !thread.goes_on() {
            break;
        }
    }
    if from == Place::Position {
        let end = i64::try_from(start + done as u64).map_err(|_| Errno::EOVERFLOW)?;
        input.ops.seek(input, end, whence::SEEK_SET)?;
    }
    match error {
        Some(errno) if done == 0 => Err(errno),
        _ => Ok(done),
    }
}

/// copy_file_range(2)
pub async fn copy_file_range(
    thread: &Thread,
    fd_in: Fd,
    off_in: UserPtr<i64>,
    fd_out: Fd,
    off_out: UserPtr<i64>,
    len: usize,
    flags: u32,
) -> Result<usize> {
    let input = fd::get(thread, fd_in)?;
    let output = fd::get(thread, fd_out)?;
    let from = place(thread, &input, off_in)?;
    let to = place(thread, &output, off_out)?;
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let (attr_in, attr_out) = (input.attr()?, output.attr()?);
    for kind in [attr_in.kind(), attr_out.kind()] {
        match kind {
            Some(FileKind::Regular) => {}
            Some(FileKind::Directory) => return Err(Errno::EISDIR),
            _ => return Err(Errno::EINVAL),
        }
    }
    input.check_read()?;
    output.check_write()?;
    if output.flags() & flags::O_APPEND != 0 {
        return Err(Errno::EBADF);
    }
    let len = len.min(MOST);
    let start = |file: &OpenFile, place| match place {
        Place::At(at) => Ok(at),
        Place::Position => file.ops.seek(file, 0, whence::SEEK_CUR),
    };
    let (start_in, start_out) = (start(&input, from)?, start(&output, to)?);
    let within = i64::MAX as u64 - len as u64;
    if start_in > within || start_out > within {
        return Err(Errno::EOVERFLOW);
    }
    // What overlaps is decided by what there is to copy.
    let left = attr_in.size.saturating_sub(start_in);
    let len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
    // The limit on sizes is looked at once, before anything is read: what is cut there is no reason for a signal.
    let len = len.min(usize::try_from(rw::room_below_limit(thread, start_out)?).unwrap_or(usize::MAX));
    let same = (attr_in.dev, attr_in.ino) == (attr_out.dev, attr_out.ino);
    if same && start_in < start_out + len as u64 && start_out < start_in + len as u64 {
        return Err(Errno::EINVAL);
    }
    if len == 0 {
        return Ok(0);
    }
    let done = copy(thread, &input, from, &output, to, len).await?;
    store(thread, off_in, from, done)?;
    store(thread, off_out, to, done)?;
    Ok(done)
}
