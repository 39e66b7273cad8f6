//! Changing attributes: chmod(2), chown(2), utimensat(2), truncate(2), fallocate(2).

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_abi::linux::fcntl::falloc::{self, KEEP_SIZE};
use janua_abi::linux::layout::Layout;
use janua_abi::linux::signal::SIGXFSZ;
use janua_abi::linux::stat::at as at_flags;
use janua_abi::linux::stat::{UTIME_NOW, UTIME_OMIT};
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::{UserPtr, UserStr};
use janua_object::OpenFile;
use janua_object::file::flags;
use janua_object::vfs::watch::event;
use janua_object::vfs::{Busy, FileFlags, FileKind, Path, SetAttr, access, drop_privileges};

use super::at::{self, AtFlags, CWD, DirFd, Mode};
use super::leases;
use crate::Thread;
use crate::signal;
use crate::thread::ThreadExt;

/// RLIMIT_FSIZE.
const FSIZE: u32 = 1;

fn apply(thread: &Thread, path: &Path, change: SetAttr, events: u32) -> Result<()> {
    path.mount.check_write()?;
    let now = at::vfs(thread).now();
    path.inode().set_attr(&SetAttr { ctime: Some(now), ..change })?;
    at::vfs(thread).watches.notify_file(path, events);
    Ok(())
}

/// The place of an open file, for the calls by descriptor. EBADF for one opened by O_PATH.
pub(super) fn opened(thread: &Thread, fd: Fd) -> Result<Path> {
    let file = at::file(thread, fd)?;
    if file.flags() & flags::O_PATH != 0 {
        return Err(Errno::EBADF);
    }
    at::vfs(thread).place_of(&file)
}

fn change_mode(thread: &Thread, path: &Path, mode: u32) -> Result<()> {
    let cred = thread.ext.cred();
    let _held = path.inode().busy().map(|busy| busy.hold_rights());
    let perm = path.inode().perm()?;
    path.mount.check_write()?;
    perm.flags.check_frozen()?;
    if !access::owns(&perm, &cred) {
        return Err(Errno::EPERM);
    }
    let mut mode = mode & 0o7777;
    if !cred.in_group(perm.gid) && !cred.capable(access::CAP_FSETID) {
        mode &= !access::S_ISGID;
    }
    apply(thread, path, SetAttr { mode: Some(mode), ..SetAttr::default() }, event::ATTRIB)
}

pub fn chmod(thread: &Thread, path: UserStr, mode: Mode) -> Result<()> {
    fchmodat2(thread, CWD, path, mode, AtFlags(0))
}

pub fn fchmod(thread: &Thread, fd: Fd, mode: Mode) -> Result<()> {
    change_mode(thread, &opened(thread, fd)?, mode.0)
}

pub fn fchmodat(thread: &Thread, dir: DirFd, path: UserStr, mode: Mode) -> Result<()> {
    fchmodat2(thread, dir, path, mode, AtFlags(0))
}

pub fn fchmodat2(thread: &Thread, dir: DirFd, path: UserStr, mode: Mode, flags: AtFlags) -> Result<()> {
    let flags = flags.check(at_flags::SYMLINK_NOFOLLOW | at_flags::EMPTY_PATH)?;
    let found = at::find_flags(thread, dir, path, flags)?;
    if found.dentry.kind() == FileKind::Symlink {
        return Err(Errno::EOPNOTSUPP);
    }
    change_mode(thread, &found, mode.0)
}

fn change_owner(thread: &Thread, path: &Path, uid: u32, gid: u32) -> Result<()> {
    let cred = thread.ext.cred();
    let _held = path.inode().busy().map(|busy| busy.hold_rights());
    let perm = path.inode().perm()?;
    path.mount.check_write()?;
    let given = |id: u32| (id != u32::MAX).then_some(id);
    let (uid, gid) = (given(uid), given(gid));
    if uid.is_some() || gid.is_some() {
        perm.flags.check_frozen()?;
    }
    if !cred.capable(access::CAP_CHOWN) {
        let own = cred.fsuid == perm.uid;
        let fine_uid = uid.is_none_or(|uid| own && uid == perm.uid);
        let fine_gid = gid.is_none_or(|gid| own && (gid == perm.gid || cred.in_group(gid)));
        if !fine_uid || !fine_gid {
            return Err(Errno::EPERM);
        }
    }
    // Giving a file away takes the rights its bits lent, even if it is given to nobody: then that is a change of mode.
    let mode = if path.dentry.kind() == FileKind::Directory { None } else { access::without_set_id(perm.mode) };
    if mode.is_some() && uid.is_none() && gid.is_none() && !access::owns(&perm, &cred) {
        return Err(Errno::EPERM);
    }
    let mode = mode.map(|mode| mode & 0o7777);
    apply(thread, path, SetAttr { uid, gid, mode, ..SetAttr::default() }, event::ATTRIB)
}

pub fn chown(thread: &Thread, path: UserStr, uid: u32, gid: u32) -> Result<()> {
    fchownat(thread, CWD, path, uid, gid, AtFlags(0))
}

pub fn lchown(thread: &Thread, path: UserStr, uid: u32, gid: u32) -> Result<()> {
    fchownat(thread, CWD, path, uid, gid, AtFlags(at_flags::SYMLINK_NOFOLLOW))
}

pub fn fchown(thread: &Thread, fd: Fd, uid: u32, gid: u32) -> Result<()> {
    change_owner(thread, &opened(thread, fd)?, uid, gid)
}

pub fn fchownat(thread: &Thread, dir: DirFd, path: UserStr, uid: u32, gid: u32, flags: AtFlags) -> Result<()> {
    let flags = flags.check(at_flags::SYMLINK_NOFOLLOW | at_flags::EMPTY_PATH)?;
    change_owner(thread, &at::find_flags(thread, dir, path, flags)?, uid, gid)
}

/// What one of the two times becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Now,
    Omit,
    At(i64),
}

fn change_times(thread: &Thread, path: &Path, times: Option<[Time; 2]>) -> Result<()> {
    let times = times.unwrap_or([Time::Now; 2]);
    path.mount.check_write()?;
    let cred = thread.ext.cred();
    let perm = path.inode().perm()?;
    if times != [Time::Now; 2] {
        perm.flags.check_frozen()?;
    } else if perm.flags.contains(FileFlags::IMMUTABLE) {
        return Err(Errno::EPERM);
    }
    if !access::owns(&perm, &cred) {
        // Others may set "now", if they may write.
        if times != [Time::Now; 2] {
            return Err(Errno::EPERM);
        }
        access::check(&perm, &cred, access::WRITE)?;
    }
    let now = at::vfs(thread).now();
    let value = |time| match time {
        Time::Now => Some(now),
        Time::Omit => None,
        Time::At(at) => Some(at),
    };
    // One time alone looks like what it is the time of (inotify(7)).
    let events = match times {
        [_, Time::Omit] => event::ACCESS,
        [Time::Omit, _] => event::MODIFY,
        _ => event::ATTRIB,
    };
    apply(thread, path, SetAttr { atime: value(times[0]), mtime: value(times[1]), ..SetAttr::default() }, events)
}

fn from_timespec([sec, nsec]: [i64; 2]) -> Result<Time> {
    match nsec {
        UTIME_NOW => Ok(Time::Now),
        UTIME_OMIT => Ok(Time::Omit),
        0..=999_999_999 => Ok(Time::At(sec.saturating_mul(1_000_000_000).saturating_add(nsec))),
        _ => Err(Errno::EINVAL),
    }
}

fn from_timeval([sec, usec]: [i64; 2]) -> Result<Time> {
    if !(0..1_000_000).contains(&usec) {
        return Err(Errno::EINVAL);
    }
    Ok(Time::At(sec.saturating_mul(1_000_000_000).saturating_add(usec * 1000)))
}

fn read_times(
    thread: &Thread,
    times: UserPtr<impl Layout<[[i64; 2]; 2]>>,
    convert: fn([i64; 2]) -> Result<Time>,
) -> Result<Option<[Time; 2]>> {
    let Some(times) = times.non_null() else { return Ok(None) };
    let [atime, mtime] = times.load(thread.user())?;
    Ok(Some([convert(atime)?, convert(mtime)?]))
}

pub fn utimensat(
    thread: &Thread,
    dir: DirFd,
    path: UserStr,
    times: UserPtr<impl Layout<[[i64; 2]; 2]>>,
    flags: AtFlags,
) -> Result<()> {
    let times = read_times(thread, times, from_timespec)?;
    if times == Some([Time::Omit; 2]) {
        // Before anything else is looked at.
        return Ok(());
    }
    let flags = flags.check(at_flags::SYMLINK_NOFOLLOW | at_flags::EMPTY_PATH)?;
    // Without a path the descriptor itself is meant (futimens).
    let found = if path.is_null() && dir != CWD {
        if flags.0 != 0 {
            return Err(Errno::EINVAL);
        }
        opened(thread, Fd(dir.0))?
    } else {
        at::find_flags(thread, dir, path, flags)?
    };
    change_times(thread, &found, times)
}

pub fn futimesat(thread: &Thread, dir: DirFd, path: UserStr, times: UserPtr<impl Layout<[[i64; 2]; 2]>>) -> Result<()> {
    let times = read_times(thread, times, from_timeval)?;
    let found =
        if path.is_null() { opened(thread, Fd(dir.0))? } else { at::find(thread, dir, &path.path(thread.user())?, true)? };
    change_times(thread, &found, times)
}

pub fn utimes(thread: &Thread, path: UserStr, times: UserPtr<impl Layout<[[i64; 2]; 2]>>) -> Result<()> {
    let times = read_times(thread, times, from_timeval)?;
    change_times(thread, &at::find(thread, CWD, &path.path(thread.user())?, true)?, times)
}

pub fn utime(thread: &Thread, path: UserStr, times: UserPtr<impl Layout<[i64; 2]>>) -> Result<()> {
    let times = match times.non_null() {
        None => None,
        Some(times) => {
            let seconds: [i64; 2] = times.load(thread.user())?;
            Some(seconds.map(|sec| Time::At(sec.saturating_mul(1_000_000_000))))
        }
    };
    change_times(thread, &at::find(thread, CWD, &path.path(thread.user())?, true)?, times)
}

/// The size a file is to have: EINVAL below zero; beyond RLIMIT_FSIZE SIGXFSZ and EFBIG.
fn check_size(thread: &Thread, size: i64, old: u64) -> Result<u64> {
    size_within(thread, size, old).inspect_err(|errno| {
        if *errno == Errno::EFBIG {
            signal::send_self(thread, SIGXFSZ);
        }
    })
}

/// The same without the signal.
fn size_within(thread: &Thread, size: i64, old: u64) -> Result<u64> {
    let size = u64::try_from(size).map_err(|_| Errno::EINVAL)?;
    if size > old && size > thread.limit(FSIZE) { Err(Errno::EFBIG) } else { Ok(size) }
}

pub async fn truncate(thread: &Thread, path: UserStr, size: i64) -> Result<()> {
    match try_truncate(thread, path, size) {
        Err(Errno::EJUKEBOX) => Box::pin(leases::wait(thread, false, || try_truncate(thread, path, size))).await,
        result => result,
    }
}

fn try_truncate(thread: &Thread, path: UserStr, size: i64) -> Result<()> {
    if size < 0 {
        return Err(Errno::EINVAL);
    }
    let path = path.path(thread.user())?;
    let found = at::find(thread, CWD, &path, true)?;
    match found.dentry.kind() {
        FileKind::Regular => {}
        FileKind::Directory => return Err(Errno::EISDIR),
        _ => return Err(Errno::EINVAL),
    }
    found.mount.check_write()?;
    let perm = found.inode().perm()?;
    let cred = thread.ext.cred();
    access::check(&perm, &cred, access::WRITE)?;
    perm.flags.check_append()?;
    let size = check_size(thread, size, found.inode().attr()?.size)?;
    let _writes = found.inode().busy().map(Busy::writer).transpose()?;
    let leases = &at::vfs(thread).leases;
    if leases.any()
        && let Some(key) = found.inode().id()
    {
        leases.open(key, true, thread.machine().clock().monotonic())?;
    }
    found.inode().before_size(&thread.caller(), size)?;
    let now = at::vfs(thread).now();
    apply(thread, &found, SetAttr { size: Some(size), mtime: Some(now), ..SetAttr::default() }, event::MODIFY)?;
    if cred.capable(access::CAP_FSETID) { Ok(()) } else { drop_privileges(&**found.inode()) }
}

fn writable(thread: &Thread, fd: Fd) -> Result<Arc<OpenFile>> {
    let file = at::file(thread, fd)?;
    if file.flags() & flags::O_PATH != 0 {
        return Err(Errno::EBADF);
    }
    Ok(file)
}

pub fn ftruncate(thread: &Thread, fd: Fd, size: i64) -> Result<()> {
    if size < 0 {
        return Err(Errno::EINVAL);
    }
    let file = writable(thread, fd)?;
    file.check_write().map_err(|_| Errno::EINVAL)?;
    file.file_flags().check_append()?;
    let size = check_size(thread, size, file.attr()?.size)?;
    file.ops.truncate(&file, size)?;
    if let Some(path) = &file.path {
        at::vfs(thread).watches.notify_file(path, event::MODIFY);
    }
    Ok(())
}

pub fn fallocate(thread: &Thread, fd: Fd, mode: u32, offset: i64, len: i64) -> Result<()> {
    allocate(thread, fd, mode, offset, len, check_size)
}

/// The same for who takes no signals.
pub fn fallocate_quietly(thread: &Thread, fd: Fd, mode: u32, offset: i64, len: i64) -> Result<()> {
    allocate(thread, fd, mode, offset, len, size_within)
}

/// The modes of fallocate(2), one at a time, each with or without KEEP_SIZE. EOPNOTSUPP for others.
fn check_allocation(mode: u32) -> Result<()> {
    let keeps = mode & KEEP_SIZE != 0;
    match mode & !KEEP_SIZE {
        0 | falloc::ZERO_RANGE | falloc::UNSHARE_RANGE => Ok(()),
        falloc::PUNCH_HOLE if keeps => Ok(()),
        falloc::COLLAPSE_RANGE | falloc::INSERT_RANGE if !keeps => Ok(()),
        _ => Err(Errno::EOPNOTSUPP),
    }
}

fn allocate(
    thread: &Thread,
    fd: Fd,
    mode: u32,
    offset: i64,
    len: i64,
    check: fn(&Thread, i64, u64) -> Result<u64>,
) -> Result<()> {
    let file = writable(thread, fd)?;
    if offset < 0 || len <= 0 {
        return Err(Errno::EINVAL);
    }
    check_allocation(mode)?;
    file.check_write()?;
    let file_flags = file.file_flags();
    if mode & !KEEP_SIZE != 0 {
        file_flags.check_append()?;
    }
    if file_flags.contains(FileFlags::IMMUTABLE) {
        return Err(Errno::EPERM);
    }
    match file.attr()?.kind() {
        Some(FileKind::Regular) => {}
        Some(FileKind::Fifo) => return Err(Errno::ESPIPE),
        Some(FileKind::Directory) => return Err(Errno::EISDIR),
        _ => return Err(Errno::ENODEV),
    }
    let end = offset.checked_add(len).ok_or(Errno::EFBIG)?;
    if mode & KEEP_SIZE == 0 {
        check(thread, end, file.attr()?.size)?;
    }
    file.ops.allocate(&file, mode, offset as u64, len as u64)?;
    if let Some(path) = &file.path {
        at::vfs(thread).watches.notify_file(path, event::MODIFY);
    }
    Ok(())
}
