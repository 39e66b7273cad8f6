//! Calls that make, remove and change names.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::stat::at as at_flags;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::{UserPtr, UserStr};
use janua_object::vfs::{FileKind, Last, Make, Parent, Path, Resolve, Walk, access, rename as rename_flags};

use super::at::{self, AtFlags, CWD, DirFd, Mode};
use crate::Thread;
use crate::thread::ThreadExt;

/// Walks to the directory of a path's last component and acts there.
fn with_parent<T>(
    thread: &Thread,
    dir: DirFd,
    path: &[u8],
    act: impl FnOnce(&mut Walk<'_>, &Parent<'_>) -> Result<T>,
) -> Result<T> {
    let start = at::start(thread, dir, path)?;
    let caller = thread.caller();
    let mut walk = Walk::new(at::vfs(thread), &caller, &start, Resolve::empty());
    let parent = walk.parent(path)?;
    act(&mut walk, &parent)
}

/// The name of what is to be made and is no directory. What ends in a slash would be one: EEXIST if it is there, ENOENT if not.
pub fn file_name<'a>(walk: &mut Walk<'_>, parent: &'a Parent<'_>) -> Result<&'a [u8]> {
    let name = parent.new_name()?;
    if parent.slash { Err(unless_there(walk, parent, Errno::ENOENT)) } else { Ok(name) }
}

/// Why nothing can be made at a place: `why`, unless something is there already or the place cannot be looked at.
fn unless_there(walk: &mut Walk<'_>, parent: &Parent<'_>, why: Errno) -> Errno {
    match walk.last(parent) {
        Ok(_) => Errno::EEXIST,
        Err(Errno::ENOENT) => why,
        Err(errno) => errno,
    }
}

fn umask(thread: &Thread) -> u32 {
    thread.fs.read().umask.load(Ordering::Relaxed)
}

fn make(thread: &Thread, dir: DirFd, path: UserStr, kind: FileKind, mode: u32, rdev: u64) -> Result<()> {
    let path = path.path(thread.user())?;
    with_parent(thread, dir, &path, |walk, parent| {
        let directory = kind == FileKind::Directory;
        let name = if directory { parent.new_name()? } else { file_name(walk, parent)? };
        let mode = match directory {
            true => mode & !umask(thread),
            false => access::new_mode(&**parent.dir.inode(), mode, umask(thread), &walk.cred)?,
        };
        let mode = kind as u32 | mode;
        at::vfs(thread).make(walk.who(), &parent.dir, name, &Make::Node { mode, rdev }).map(|_| ())
    })
}

pub fn mkdir(thread: &Thread, path: UserStr, mode: Mode) -> Result<()> {
    mkdirat(thread, CWD, path, mode)
}

pub fn mkdirat(thread: &Thread, dir: DirFd, path: UserStr, mode: Mode) -> Result<()> {
    make(thread, dir, path, FileKind::Directory, mode.0 & 0o1777, 0)
}

pub fn mknod(thread: &Thread, path: UserStr, mode: Mode, dev: u64) -> Result<()> {
    mknodat(thread, CWD, path, mode, dev)
}

pub fn mknodat(thread: &Thread, dir: DirFd, path: UserStr, mode: Mode, dev: u64) -> Result<()> {
    let kind = match mode.0 & 0o170000 {
        0 => FileKind::Regular,
        0o040000 => return Err(Errno::EPERM),
        0o120000 => return Err(Errno::EINVAL),
        _ => FileKind::of_mode(mode.0).ok_or(Errno::EINVAL)?,
    };
    let device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
    if device && !thread.ext.cred().capable(access::CAP_MKNOD) {
        return Err(Errno::EPERM);
    }
    make(thread, dir, path, kind, mode.0 & 0o7777, if device { dev } else { 0 })
}

fn remove(thread: &Thread, dir: DirFd, path: UserStr, want_dir: bool) -> Result<()> {
    let path = path.path(thread.user())?;
    with_parent(thread, dir, &path, |walk, parent| {
        let name = match (&parent.last, want_dir) {
            (Last::Name(name), _) => name,
            (_, false) => return Err(Errno::EISDIR),
            (Last::Dot, true) => return Err(Errno::EINVAL),
            (Last::DotDot, true) => return Err(Errno::ENOTEMPTY),
            (Last::Root, true) => return Err(Errno::EBUSY),
        };
        at::vfs(thread).remove(walk.who(), &parent.dir, name, want_dir, parent.slash)
    })
}

pub fn rmdir(thread: &Thread, path: UserStr) -> Result<()> {
    remove(thread, CWD, path, true)
}

pub fn unlink(thread: &Thread, path: UserStr) -> Result<()> {
    remove(thread, CWD, path, false)
}

pub fn unlinkat(thread: &Thread, dir: DirFd, path: UserStr, flags: AtFlags) -> Result<()> {
    let flags = flags.check(at_flags::REMOVEDIR)?;
    remove(thread, dir, path, flags.has(at_flags::REMOVEDIR))
}

pub fn rename(thread: &Thread, old: UserStr, new: UserStr) -> Result<()> {
    renameat2(thread, CWD, old, CWD, new, 0)
}

pub fn renameat(thread: &Thread, old_dir: DirFd, old: UserStr, new_dir: DirFd, new: UserStr) -> Result<()> {
    renameat2(thread, old_dir, old, new_dir, new, 0)
}

pub fn renameat2(thread: &Thread, old_dir: DirFd, old: UserStr, new_dir: DirFd, new: UserStr, flags: u32) -> Result<()> {
    use rename_flags::{EXCHANGE, NOREPLACE, WHITEOUT};
    if flags & !(NOREPLACE | EXCHANGE | WHITEOUT) != 0 || (flags & EXCHANGE != 0 && flags & (NOREPLACE | WHITEOUT) != 0) {
        return Err(Errno::EINVAL);
    }
    if flags & WHITEOUT != 0 && !thread.ext.cred().capable(access::CAP_MKNOD) {
        return Err(Errno::EPERM);
    }
    let (old, new) = (old.path(thread.user())?, new.path(thread.user())?);
    with_parent(thread, old_dir, &old, |walk, from| {
        let Last::Name(old_name) = &from.last else { return Err(Errno::EBUSY) };
        with_parent(thread, new_dir, &new, |_, to| {
            let Last::Name(new_name) = &to.last else {
                return Err(if flags & NOREPLACE != 0 { Errno::EEXIST } else { Errno::EBUSY });
            };
            let old = (&**old_name, from.slash);
            at::vfs(thread).rename(walk.who(), &from.dir, old, &to.dir, (new_name, to.slash), flags)
        })
    })
}

pub fn link(thread: &Thread, old: UserStr, new: UserStr) -> Result<()> {
    linkat(thread, CWD, old, CWD, new, AtFlags(0))
}

pub fn linkat(thread: &Thread, old_dir: DirFd, old: UserStr, new_dir: DirFd, new: UserStr, flags: AtFlags) -> Result<()> {
    let flags = flags.check(at_flags::SYMLINK_FOLLOW | at_flags::EMPTY_PATH)?;
    let old = old.path(thread.user())?;
    let new = new.path(thread.user())?;
    let target = if old.is_empty() && flags.has(at_flags::EMPTY_PATH) {
        if !thread.ext.cred().capable(access::CAP_DAC_READ_SEARCH) {
            return Err(Errno::ENOENT);
        }
        at::itself(thread, old_dir)?
    } else {
        at::find(thread, old_dir, &old, flags.has(at_flags::SYMLINK_FOLLOW))?
    };
    with_parent(thread, new_dir, &new, |walk, parent| {
        let name = file_name(walk, parent)?;
        let elsewhere = target.mount.id != parent.dir.mount.id;
        let may = || janua_object::vfs::may_link(target.inode(), &thread.ext.cred());
        let allowed = if elsewhere { Err(Errno::EXDEV) } else { may() };
        // Where names are fixed none is looked for any further.
        let missing = |why| if parent.dir.inode().fixed_names() { Errno::ENOENT } else { why };
        allowed.map_err(|why| unless_there(walk, parent, missing(why)))?;
        at::vfs(thread).make(walk.who(), &parent.dir, name, &Make::Link(target.inode())).map(|_| ())
    })
}

pub fn symlink(thread: &Thread, target: UserStr, path: UserStr) -> Result<()> {
    symlinkat(thread, target, CWD, path)
}

pub fn symlinkat(thread: &Thread, target: UserStr, dir: DirFd, path: UserStr) -> Result<()> {
    let target = target.path(thread.user())?;
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    let path = path.path(thread.user())?;
    with_parent(thread, dir, &path, |walk, parent| {
        let name = file_name(walk, parent)?;
        at::vfs(thread).make(walk.who(), &parent.dir, name, &Make::Symlink(&target)).map(|_| ())
    })
}

pub fn readlink(thread: &Thread, path: UserStr, out: UserPtr<u8>, size: i32) -> Result<usize> {
    readlinkat(thread, CWD, path, out, size)
}

pub fn readlinkat(thread: &Thread, dir: DirFd, path: UserStr, out: UserPtr<u8>, size: i32) -> Result<usize> {
    let size = usize::try_from(size).ok().filter(|size| *size > 0).ok_or(Errno::EINVAL)?;
    let path = path.path(thread.user())?;
    // An empty path means a link that was itself opened with O_PATH.
    let found: Path = if path.is_empty() && dir != CWD {
        let file = at::file(thread, Fd(dir.0))?;
        file.path.clone().filter(|path| path.dentry.kind() == FileKind::Symlink).ok_or(Errno::ENOENT)?
    } else {
        at::find(thread, dir, &path, false)?
    };
    if found.dentry.kind() != FileKind::Symlink {
        return Err(Errno::EINVAL);
    }
    let target: Vec<u8> = found.inode().readlink(&thread.caller())?;
    found.accessed();
    let len = target.len().min(size);
    thread.user().copy_out(out.addr(), &target[..len]).map_err(|_| Errno::EFAULT)?;
    Ok(len)
}
