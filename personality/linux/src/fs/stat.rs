//! stat(2) and its variants, statfs(2), access(2).

use alloc::sync::Arc;

use janua_abi::linux::layout::Layout;
use janua_abi::linux::stat::device;
use janua_abi::linux::stat::{Stat, Statfs, Statx, StatxTime, at as at_flags, statx as bits};
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::{PathRoom, UserPtr, UserStr};
use janua_object::vfs::access::{self, Who};
use janua_object::vfs::{Attr, FileKind, MountFlags, Path, Stat as Stated};

use super::at::{self, AtFlags, CWD, DirFd};
use crate::Thread;
use crate::thread::ThreadExt;

fn time(nanos: i64) -> [i64; 2] {
    [nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000)]
}

// As a function of its own it makes stat(2) 8 % slower.
#[inline(always)]
fn write_stat(thread: &Thread, out: UserPtr<impl Layout<Stat>>, attr: &Attr) -> Result<()> {
    let stat = Stat {
        dev: attr.dev,
        ino: attr.ino,
        nlink: u64::from(attr.nlink),
        mode: attr.mode,
        uid: attr.uid,
        gid: attr.gid,
        pad: 0,
        rdev: attr.rdev,
        size: attr.size as i64,
        blksize: i64::from(attr.blksize),
        blocks: attr.blocks as i64,
        atime: time(attr.atime),
        mtime: time(attr.mtime),
        ctime: time(attr.ctime),
        unused: [0; 3],
    };
    out.store(thread.user(), &stat)
}

pub fn stat(thread: &Thread, path: UserStr, out: UserPtr<impl Layout<Stat>>) -> Result<()> {
    let mut room = PathRoom::new();
    let path = path.path_in(thread.user(), &mut room)?;
    write_stat(thread, out, &at::stat(thread, CWD, path, true)?.attr)
}

pub fn lstat(thread: &Thread, path: UserStr, out: UserPtr<impl Layout<Stat>>) -> Result<()> {
    let mut room = PathRoom::new();
    let path = path.path_in(thread.user(), &mut room)?;
    write_stat(thread, out, &at::stat(thread, CWD, path, false)?.attr)
}

pub fn fstat(thread: &Thread, fd: Fd, out: UserPtr<impl Layout<Stat>>) -> Result<()> {
    write_stat(thread, out, &at::file(thread, fd)?.attr()?)
}

/// What an *at call names; for a file without a name, attributes alone.
fn stat_at(thread: &Thread, dir: DirFd, path: UserStr, flags: AtFlags) -> Result<Stated> {
    let mut room = PathRoom::new();
    let text = at::read_path(thread, path, flags.has(at_flags::EMPTY_PATH), &mut room)?;
    if !(text.is_empty() && flags.has(at_flags::EMPTY_PATH)) {
        return at::stat(thread, dir, text, !flags.has(at_flags::SYMLINK_NOFOLLOW));
    }
    let (attr, path) = if dir == CWD {
        let here = at::itself(thread, dir)?;
        (here.inode().attr()?, Some(here))
    } else {
        let file = at::file(thread, Fd(dir.0))?;
        (file.attr()?, file.path.clone())
    };
    let is_mount_root = path.as_ref().is_some_and(Path::is_mount_root);
    Ok(Stated { attr, mount: path.map_or(0, |path| path.mount.id), is_mount_root })
}

pub fn newfstatat(thread: &Thread, dir: DirFd, path: UserStr, out: UserPtr<impl Layout<Stat>>, flags: AtFlags) -> Result<()> {
    let flags = flags.check(at_flags::SYMLINK_NOFOLLOW | at_flags::NO_AUTOMOUNT | at_flags::EMPTY_PATH)?;
    write_stat(thread, out, &stat_at(thread, dir, path, flags)?.attr)
}

fn statx_time(nanos: i64) -> StatxTime {
    let [sec, nsec] = time(nanos);
    StatxTime { sec, nsec: nsec as u32, pad: 0 }
}

/// Major and minor of a device number.
fn split(dev: u64) -> (u32, u32) {
    (device::major(dev), device::minor(dev))
}

pub fn statx(thread: &Thread, dir: DirFd, path: UserStr, flags: AtFlags, mask: u32, out: UserPtr<Statx>) -> Result<()> {
    out.write(thread.user(), &extended(thread, dir, path, flags, mask)?)
}

/// What statx(2) reports.
pub fn extended(thread: &Thread, dir: DirFd, path: UserStr, flags: AtFlags, mask: u32) -> Result<Statx> {
    if mask & bits::RESERVED != 0 {
        return Err(Errno::EINVAL);
    }
    let sync = at_flags::STATX_SYNC_TYPE;
    let flags = flags.check(at_flags::SYMLINK_NOFOLLOW | at_flags::NO_AUTOMOUNT | at_flags::EMPTY_PATH | sync)?;
    if flags.0 & sync == sync {
        return Err(Errno::EINVAL);
    }
    let Stated { attr, mount, is_mount_root } = stat_at(thread, dir, path, flags)?;
    let (dev_major, dev_minor) = split(attr.dev);
    let (rdev_major, rdev_minor) = split(attr.rdev);
    let attributes = u64::from(attr.flags.unwrap_or_default().bits()) & bits::ATTR_FLAGS;
    Ok(Statx {
        mask: bits::BASIC_STATS | bits::MNT_ID | if attr.btime != 0 { bits::BTIME } else { 0 },
        blksize: attr.blksize,
        attributes: if is_mount_root { bits::ATTR_MOUNT_ROOT } else { 0 } | attributes,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        mode: attr.mode as u16,
        ino: attr.ino,
        size: attr.size,
        blocks: attr.blocks,
        attributes_mask: bits::ATTR_ALWAYS | if attr.flags.is_some() { bits::ATTR_FLAGS } else { 0 },
        atime: statx_time(attr.atime),
        btime: statx_time(attr.btime),
        ctime: statx_time(attr.ctime),
        mtime: statx_time(attr.mtime),
        rdev_major,
        rdev_minor,
        dev_major,
        dev_minor,
        mnt_id: mount,
        ..Statx::default()
    })
}

fn write_statfs(thread: &Thread, path: &Path, out: UserPtr<impl Layout<Statfs>>) -> Result<()> {
    const ST_VALID: i64 = 0x20;
    let stat = path.mount.fs.stat_of(&**path.inode())?;
    let statfs = Statfs {
        kind: stat.magic as i64,
        bsize: stat.block_size as i64,
        blocks: stat.blocks,
        bfree: stat.blocks_free,
        bavail: stat.blocks_available,
        files: stat.files,
        ffree: stat.files_free,
        fsid: stat.fsid,
        namelen: stat.name_max as i64,
        frsize: stat.block_size as i64,
        flags: i64::from(path.mount_flags().bits()) | ST_VALID,
        spare: [0; 4],
    };
    out.store(thread.user(), &statfs)
}

pub fn statfs(thread: &Thread, path: UserStr, out: UserPtr<impl Layout<Statfs>>) -> Result<()> {
    let path = path.path(thread.user())?;
    write_statfs(thread, &at::find(thread, CWD, &path, true)?, out)
}

pub fn fstatfs(thread: &Thread, fd: Fd, out: UserPtr<impl Layout<Statfs>>) -> Result<()> {
    let file = at::file(thread, fd)?;
    write_statfs(thread, &at::vfs(thread).place_of(&file)?, out)
}

pub fn access(thread: &Thread, path: UserStr, mode: u32) -> Result<()> {
    faccessat2(thread, CWD, path, mode, AtFlags(0))
}

pub fn faccessat(thread: &Thread, dir: DirFd, path: UserStr, mode: u32) -> Result<()> {
    faccessat2(thread, dir, path, mode, AtFlags(0))
}

pub fn faccessat2(thread: &Thread, dir: DirFd, path: UserStr, mode: u32, flags: AtFlags) -> Result<()> {
    let flags = flags.check(at_flags::EACCESS | at_flags::SYMLINK_NOFOLLOW | at_flags::EMPTY_PATH)?;
    if mode & !7 != 0 {
        return Err(Errno::EINVAL);
    }
    let found = at::find_flags(thread, dir, path, flags)?;
    if mode == 0 {
        return Ok(());
    }
    let mut cred = thread.ext.cred();
    // The real user asks, with the capabilities that user would have.
    let capabilities = if cred.uid == 0 { cred.cap_permitted } else { 0 };
    let real = (cred.uid, cred.gid, capabilities);
    if !flags.has(at_flags::EACCESS) && (cred.fsuid, cred.fsgid, cred.cap_effective) != real {
        let cred = Arc::make_mut(&mut cred);
        (cred.fsuid, cred.fsgid, cred.cap_effective) = real;
    }
    if mode & access::EXEC != 0 && found.dentry.kind() == FileKind::Regular && found.mount_flags().contains(MountFlags::NOEXEC)
    {
        return Err(Errno::EACCES);
    }
    if mode & access::WRITE != 0
        && !matches!(found.dentry.kind(), FileKind::CharDevice | FileKind::BlockDevice | FileKind::Fifo | FileKind::Socket)
    {
        found.mount.check_write()?;
    }
    Who { caller: &thread.caller(), cred: &cred }.check(&**found.inode(), mode)
}
