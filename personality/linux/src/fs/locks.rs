//! Advisory locks: fcntl(2)'s record locks and flock(2).

use alloc::sync::Arc;

use janua_abi::linux::fcntl::{F_RDLCK, F_UNLCK, F_WRLCK, Flock};
use janua_abi::linux::layout::Layout;
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::OpenFile;
use janua_object::file::{flags, whence};
use janua_object::lock::{FileLocks, Mode, Owner, Record, TO_END};

use crate::Thread;
use crate::fs::fd;

/// The locks of the file behind a description, which remembers them for its last close.
fn locks_of(thread: &Thread, file: &OpenFile) -> Result<Arc<FileLocks>> {
    if let Some(locks) = &*file.locks.lock() {
        return Ok(locks.clone());
    }
    let attr = file.attr()?;
    let locks = thread.kernel.files.locks.of((attr.dev, attr.ino));
    *file.locks.lock() = Some(locks.clone());
    Ok(locks)
}

/// What a `struct flock` asks for.
enum Wanted {
    Lock(Record),
    Unlock(u64, u64),
}

fn wanted(file: &OpenFile, flock: &Flock, owner: Owner) -> Result<Wanted> {
    let base = match u32::from(flock.whence as u16) {
        whence::SEEK_SET => 0,
        whence::SEEK_CUR if file.ops.keeps_position() => file.ops.seek(file, 0, whence::SEEK_CUR)?,
        whence::SEEK_CUR => *file.pos.lock(),
        whence::SEEK_END => file.ops.size()?,
        _ => return Err(Errno::EINVAL),
    };
    let base = i64::try_from(base).map_err(|_| Errno::EOVERFLOW)?;
    let at = base.checked_add(flock.start).ok_or(Errno::EOVERFLOW)?;
    if at < 0 {
        return Err(Errno::EINVAL);
    }
    // A negative length is the bytes before; 0 is all that follow.
    let (start, end) = match flock.len {
        0 => (at, None),
        len if len > 0 => (at, Some(at.checked_add(len - 1).ok_or(Errno::EOVERFLOW)? as u64 + 1)),
        len => (at.checked_add(len).ok_or(Errno::EINVAL)?, Some(at as u64)),
    };
    let start = u64::try_from(start).map_err(|_| Errno::EINVAL)?;
    let end = end.unwrap_or(TO_END);
    let mode = match flock.kind {
        F_RDLCK => Mode::Shared,
        F_WRLCK => Mode::Exclusive,
        F_UNLCK => return Ok(Wanted::Unlock(start, end)),
        _ => return Err(Errno::EINVAL),
    };
    Ok(Wanted::Lock(Record { owner, mode, start, end }))
}

fn owner(thread: &Thread, file: &OpenFile, by_description: bool) -> Owner {
    if by_description { Owner::Description(file.id) } else { Owner::Process(thread.task.pid) }
}

/// F_GETLK, F_OFD_GETLK.
pub fn get(thread: &Thread, file: &OpenFile, arg: UserPtr<impl Layout<Flock>>, by_description: bool) -> Result<()> {
    let mut flock = arg.load(thread.user())?;
    if by_description && flock.pid != 0 {
        return Err(Errno::EINVAL);
    }
    let Wanted::Lock(record) = wanted(file, &flock, owner(thread, file, by_description))? else {
        return Err(Errno::EINVAL);
    };
    match locks_of(thread, file)?.conflict(&record) {
        None => flock.kind = F_UNLCK,
        Some(held) => {
            flock.kind = if held.mode == Mode::Shared { F_RDLCK } else { F_WRLCK };
            flock.whence = whence::SEEK_SET as i16;
            flock.start = held.start as i64;
            flock.len = if held.end == TO_END { 0 } else { (held.end - held.start) as i64 };
            flock.pid = match held.owner {
                Owner::Process(pid) => pid as i32,
                Owner::Description(_) => -1,
            };
        }
    }
    arg.store(thread.user(), &flock)
}

/// F_SETLK, F_SETLKW and their OFD variants.
pub async fn set(
    thread: &Thread,
    fd: Fd,
    file: &OpenFile,
    arg: UserPtr<impl Layout<Flock>>,
    by_description: bool,
    wait: bool,
) -> Result<()> {
    let flock = arg.load(thread.user())?;
    if by_description && flock.pid != 0 {
        return Err(Errno::EINVAL);
    }
    let owner = owner(thread, file, by_description);
    let record = match wanted(file, &flock, owner)? {
        Wanted::Lock(record) => record,
        Wanted::Unlock(start, end) => {
            locks_of(thread, file)?.clear(owner, start, end);
            return Ok(());
        }
    };
    match record.mode {
        Mode::Shared => file.check_read()?,
        Mode::Exclusive => file.check_write()?,
    }
    let locks = locks_of(thread, file)?;
    let closed = || !thread.files().get(fd).is_ok_and(|open| core::ptr::eq(&raw const *open, file));
    // Who has closed the descriptor meanwhile has given up all locks that the process had then, and not this one.
    let keep = |result: Result<()>| match result {
        Ok(()) if !by_description && closed() => {
            locks.clear(owner, record.start, record.end);
            Err(Errno::EBADF)
        }
        result => result,
    };
    if !wait {
        return keep(locks.set(record).map_err(|_| Errno::EAGAIN));
    }
    let mut entry = thread.kernel.files.locks.waiting(thread.task.pid);
    let attempt = || match locks.set(record) {
        Ok(()) => Some(Ok(())),
        Err(_) if by_description => None,
        Err(hindrance) => entry.block_on(&locks, &hindrance).err().map(Err),
    };
    match thread.wait_on(&locks.released, None, attempt).await {
        Ok(result) => keep(result),
        Err(cut) => Err(cut.errno(Errno::EAGAIN)),
    }
}

/// The operation of flock(2).
#[derive(Clone, Copy, Debug)]
pub struct FlockOp(pub u32);

const LOCK_SH: u32 = 1;
const LOCK_EX: u32 = 2;
const LOCK_NB: u32 = 4;
const LOCK_UN: u32 = 8;

impl Arg for FlockOp {
    const KIND: Kind = Kind::Named("flock");
    fn decode(word: usize) -> Result<Self> {
        Ok(FlockOp(word as u32))
    }
}

/// flock(2)
pub async fn flock(thread: &Thread, fd: Fd, op: FlockOp) -> Result<()> {
    let mode = match op.0 & !LOCK_NB {
        LOCK_SH => Some(Mode::Shared),
        LOCK_EX => Some(Mode::Exclusive),
        LOCK_UN => None,
        _ => return Err(Errno::EINVAL),
    };
    let file = fd::get(thread, fd)?;
    if file.flags() & flags::O_PATH != 0 {
        return Err(Errno::EBADF);
    }
    let locks = locks_of(thread, &file)?;
    let Some(mode) = mode else {
        locks.unflock(file.id);
        return Ok(());
    };
    if op.0 & LOCK_NB != 0 {
        return if locks.flock(file.id, mode) { Ok(()) } else { Err(Errno::EAGAIN) };
    }
    thread
        .wait_on(&locks.released, None, || locks.flock(file.id, mode).then_some(()))
        .await
        .map_err(|cut| cut.errno(Errno::EAGAIN))
}
