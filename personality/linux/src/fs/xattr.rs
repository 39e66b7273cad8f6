//! Extended attributes (xattr(7)).

use alloc::vec::Vec;

use janua_abi::linux::fcntl::{XATTR_CREATE, XATTR_REPLACE};
use janua_abi::linux::stat::at as at_flag;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::{PathRoom, UserPtr, UserStr};
use janua_object::vfs::watch::event;
use janua_object::vfs::{FileKind, Path, access};

use super::at::{self, AtFlags, CWD, DirFd};
use crate::Thread;
use crate::fs::attr::opened;

const NAME_MOST: usize = 255;
const VALUE_MOST: usize = 65536;
const LIST_MOST: usize = 65536;

fn by_path(thread: &Thread, path: UserStr, follow: bool) -> Result<Path> {
    at::find(thread, CWD, &path.path(thread.user())?, follow)
}

fn name(thread: &Thread, name: UserStr) -> Result<Vec<u8>> {
    let name = name.read(thread.user(), NAME_MOST + 1, Errno::ERANGE)?;
    if name.is_empty() { Err(Errno::ERANGE) } else { Ok(name) }
}

/// Who may touch an attribute depends on its name space.
fn permit(thread: &Thread, path: &Path, name: &[u8], write: bool) -> Result<()> {
    let cred = thread.ext.cred();
    let perm = path.inode().perm()?;
    if write {
        path.mount.check_write()?;
        perm.flags.check_frozen()?;
    }
    if name.starts_with(b"trusted.") {
        let hidden = if write { Errno::EPERM } else { Errno::ENODATA };
        return if cred.capable(access::CAP_SYS_ADMIN) { Ok(()) } else { Err(hidden) };
    }
    if name.starts_with(b"user.") {
        match path.dentry.kind() {
            FileKind::Regular | FileKind::Directory => {}
            _ => return Err(if write { Errno::EPERM } else { Errno::ENODATA }),
        }
        // As with its names, nobody else's are put on a directory that all may write to.
        if write && path.dentry.kind() == FileKind::Directory && perm.mode & access::S_ISVTX != 0 && !access::owns(&perm, &cred)
        {
            return Err(Errno::EPERM);
        }
        return access::check(&perm, &cred, if write { access::WRITE } else { access::READ });
    }
    if name.starts_with(b"security.") {
        let fine = !write || cred.capable(access::CAP_SYS_ADMIN) || cred.capable(access::CAP_SETFCAP);
        return if fine { Ok(()) } else { Err(Errno::EPERM) };
    }
    Err(Errno::EOPNOTSUPP)
}

/// A name that is only a name space's prefix names nothing. EINVAL.
fn whole(name: &[u8]) -> Result<()> {
    let prefixes: [&[u8]; 4] = [b"user.", b"trusted.", b"security.", b"system."];
    if prefixes.contains(&name) { Err(Errno::EINVAL) } else { Ok(()) }
}

fn set(thread: &Thread, path: &Path, attr: UserStr, value: UserPtr<u8>, size: usize, flags: u32) -> Result<()> {
    if flags & !(XATTR_CREATE | XATTR_REPLACE) != 0 {
        return Err(Errno::EINVAL);
    }
    let name = name(thread, attr)?;
    if size > VALUE_MOST {
        return Err(Errno::E2BIG);
    }
    let value = value.slice(size).read_vec(thread.user(), VALUE_MOST)?;
    permit(thread, path, &name, true)?;
    whole(&name)?;
    path.inode().set_xattr(&name, &value, flags)?;
    at::vfs(thread).watches.notify_file(path, event::ATTRIB);
    Ok(())
}

/// Copies out what was asked for; size 0 asks for the size alone.
fn answer(thread: &Thread, bytes: &[u8], out: UserPtr<u8>, size: usize) -> Result<usize> {
    if size > 0 {
        if bytes.len() > size {
            return Err(Errno::ERANGE);
        }
        thread.user().copy_out(out.addr(), bytes).map_err(|_| Errno::EFAULT)?;
    }
    Ok(bytes.len())
}

fn get(thread: &Thread, path: &Path, attr: UserStr, out: UserPtr<u8>, size: usize) -> Result<usize> {
    let name = name(thread, attr)?;
    permit(thread, path, &name, false)?;
    whole(&name)?;
    answer(thread, &path.inode().get_xattr(&name)?, out, size.min(VALUE_MOST))
}

/// The names, each with a zero behind it. E2BIG when they are more than a list may hold.
fn list(thread: &Thread, path: &Path, out: UserPtr<u8>, size: usize) -> Result<usize> {
    let admin = thread.ext.cred().capable(access::CAP_SYS_ADMIN);
    let mut all = Vec::new();
    for name in path.inode().list_xattr()? {
        if admin || !name.starts_with(b"trusted.") {
            all.extend_from_slice(&name);
            all.push(0);
        }
        if all.len() > LIST_MOST {
            return Err(Errno::E2BIG);
        }
    }
    answer(thread, &all, out, size.min(LIST_MOST))
}

fn remove(thread: &Thread, path: &Path, attr: UserStr) -> Result<()> {
    let name = name(thread, attr)?;
    permit(thread, path, &name, true)?;
    whole(&name)?;
    path.inode().remove_xattr(&name)?;
    at::vfs(thread).watches.notify_file(path, event::ATTRIB);
    Ok(())
}

pub fn setxattr(t: &Thread, path: UserStr, attr: UserStr, value: UserPtr<u8>, size: usize, flags: u32) -> Result<()> {
    set(t, &by_path(t, path, true)?, attr, value, size, flags)
}

pub fn lsetxattr(t: &Thread, path: UserStr, attr: UserStr, value: UserPtr<u8>, size: usize, flags: u32) -> Result<()> {
    set(t, &by_path(t, path, false)?, attr, value, size, flags)
}

pub fn fsetxattr(t: &Thread, fd: Fd, attr: UserStr, value: UserPtr<u8>, size: usize, flags: u32) -> Result<()> {
    set(t, &opened(t, fd)?, attr, value, size, flags)
}

pub fn getxattr(t: &Thread, path: UserStr, attr: UserStr, out: UserPtr<u8>, size: usize) -> Result<usize> {
    get(t, &by_path(t, path, true)?, attr, out, size)
}

pub fn lgetxattr(t: &Thread, path: UserStr, attr: UserStr, out: UserPtr<u8>, size: usize) -> Result<usize> {
    get(t, &by_path(t, path, false)?, attr, out, size)
}

pub fn fgetxattr(t: &Thread, fd: Fd, attr: UserStr, out: UserPtr<u8>, size: usize) -> Result<usize> {
    get(t, &opened(t, fd)?, attr, out, size)
}

pub fn listxattr(t: &Thread, path: UserStr, out: UserPtr<u8>, size: usize) -> Result<usize> {
    list(t, &by_path(t, path, true)?, out, size)
}

pub fn llistxattr(t: &Thread, path: UserStr, out: UserPtr<u8>, size: usize) -> Result<usize> {
    list(t, &by_path(t, path, false)?, out, size)
}

pub fn flistxattr(t: &Thread, fd: Fd, out: UserPtr<u8>, size: usize) -> Result<usize> {
    list(t, &opened(t, fd)?, out, size)
}

pub fn removexattr(t: &Thread, path: UserStr, attr: UserStr) -> Result<()> {
    remove(t, &by_path(t, path, true)?, attr)
}

pub fn lremovexattr(t: &Thread, path: UserStr, attr: UserStr) -> Result<()> {
    remove(t, &by_path(t, path, false)?, attr)
}

pub fn fremovexattr(t: &Thread, fd: Fd, attr: UserStr) -> Result<()> {
    remove(t, &opened(t, fd)?, attr)
}

/// The place the *at calls mean; with an empty path the descriptor, which must be one that reads or writes.
fn by_flags(thread: &Thread, dir: DirFd, path: UserStr, flags: AtFlags) -> Result<Path> {
    let flags = flags.check(at_flag::SYMLINK_NOFOLLOW | at_flag::EMPTY_PATH)?;
    if !flags.has(at_flag::EMPTY_PATH) || dir == CWD {
        return at::find_flags(thread, dir, path, flags);
    }
    let mut room = PathRoom::new();
    let path = at::read_path(thread, path, true, &mut room)?;
    match path.is_empty() {
        true => opened(thread, Fd(dir.0)),
        false => at::find(thread, dir, path, !flags.has(at_flag::SYMLINK_NOFOLLOW)),
    }
}

/// `struct xattr_args`: the value's address, its size, flags. A longer one may only add zeroes. EINVAL, E2BIG.
fn args(thread: &Thread, args: UserPtr<u8>, size: usize) -> Result<(UserPtr<u8>, usize, u32)> {
    const SIZE: usize = 16;
    const MOST: usize = 4096;
    if size < SIZE {
        return Err(Errno::EINVAL);
    }
    if size > MOST {
        return Err(Errno::E2BIG);
    }
    let bytes = args.slice(size).read_vec(thread.user(), MOST)?;
    if bytes[SIZE..].iter().any(|byte| *byte != 0) {
        return Err(Errno::E2BIG);
    }
    let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let value = u64::from(word(0)) | u64::from(word(4)) << 32;
    Ok((UserPtr::new(value as usize), word(8) as usize, word(12)))
}

pub fn setxattrat(
    t: &Thread,
    dir: DirFd,
    path: UserStr,
    flags: AtFlags,
    attr: UserStr,
    given: UserPtr<u8>,
    size: usize,
) -> Result<()> {
    let (value, len, how) = args(t, given, size)?;
    set(t, &by_flags(t, dir, path, flags)?, attr, value, len, how)
}

pub fn getxattrat(
    t: &Thread,
    dir: DirFd,
    path: UserStr,
    flags: AtFlags,
    attr: UserStr,
    given: UserPtr<u8>,
    size: usize,
) -> Result<usize> {
    let (out, len, how) = args(t, given, size)?;
    if how != 0 {
        return Err(Errno::EINVAL);
    }
    get(t, &by_flags(t, dir, path, flags)?, attr, out, len)
}

pub fn listxattrat(t: &Thread, dir: DirFd, path: UserStr, flags: AtFlags, out: UserPtr<u8>, size: usize) -> Result<usize> {
    list(t, &by_flags(t, dir, path, flags)?, out, size)
}

pub fn removexattrat(t: &Thread, dir: DirFd, path: UserStr, flags: AtFlags, attr: UserStr) -> Result<()> {
    remove(t, &by_flags(t, dir, path, flags)?, attr)
}
