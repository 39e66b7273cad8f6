//! Attributes of files, and record locks.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::structs;
use crate::linux::fcntl::Flock;
use crate::linux::layout::Layout;
use crate::linux::stat::{Stat, Statfs};
use crate::linux::{Errno, Result};

structs! {
    /// `struct compat_stat`
    Stat32 (64) {
        dev: u32,
        ino: u32,
        mode: u16,
        nlink: u16,
        uid: u16,
        gid: u16,
        rdev: u32,
        size: u32,
        blksize: u32,
        blocks: u32,
        atime: [u32; 2],
        mtime: [u32; 2],
        ctime: [u32; 2],
        unused: [u32; 2],
    }
    /// `struct stat64`; the wide fields are not aligned.
    Stat64 (96) {
        dev: [u32; 2],
        pad0: u32,
        ino_low: u32,
        mode: u32,
        nlink: u32,
        uid: u32,
        gid: u32,
        rdev: [u32; 2],
        pad3: u32,
        size: [u32; 2],
        blksize: u32,
        blocks: [u32; 2],
        atime: [u32; 2],
        mtime: [u32; 2],
        ctime: [u32; 2],
        ino: [u32; 2],
    }
    /// `struct compat_statfs`
    Statfs32 (64) {
        kind: u32,
        bsize: u32,
        blocks: u32,
        bfree: u32,
        bavail: u32,
        files: u32,
        ffree: u32,
        fsid: [u32; 2],
        namelen: u32,
        frsize: u32,
        flags: u32,
        spare: [u32; 4],
    }
    /// `struct compat_statfs64`
    Statfs64 (84) {
        kind: u32,
        bsize: u32,
        blocks: [u32; 2],
        bfree: [u32; 2],
        bavail: [u32; 2],
        files: [u32; 2],
        ffree: [u32; 2],
        fsid: [u32; 2],
        namelen: u32,
        frsize: u32,
        flags: u32,
        spare: [u32; 4],
    }
    /// `struct compat_flock`
    Flock32 (16) { kind: i16, whence: i16, start: i32, len: i32, pid: i32, }
    /// `struct compat_flock64`
    Flock64 (24) { kind: i16, whence: i16, start: [u32; 2], len: [u32; 2], pid: i32, }
}

/// A wide number as its two words, low first.
pub const fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// The number of two words, low first.
pub const fn whole([low, high]: [u32; 2]) -> u64 {
    low as u64 | (high as u64) << 32
}

/// An inode number in 32 bits. Wide ones are common here, and 32-bit C libraries refuse them: so they are folded, as FUSE does
/// on 32-bit machines.
pub const fn fold_ino(ino: u64) -> u32 {
    (ino ^ ino >> 32) as u32
}

/// A user or group number in 16 bits; one that does not fit shows as 65534.
pub fn low_id(id: u32) -> u16 {
    u16::try_from(id).unwrap_or(65534)
}

fn time_of([sec, nsec]: [u32; 2]) -> [i64; 2] {
    [i64::from(sec as i32), nsec.into()]
}

fn words([sec, nsec]: [i64; 2]) -> [u32; 2] {
    [sec as u32, nsec as u32]
}

fn narrow(value: u64) -> Result<u32> {
    u32::try_from(value).map_err(|_| Errno::EOVERFLOW)
}

impl Layout<Stat> for Stat32 {
    fn load(self) -> Stat {
        Stat {
            dev: self.dev.into(),
            ino: self.ino.into(),
            nlink: self.nlink.into(),
            mode: self.mode.into(),
            uid: self.uid.into(),
            gid: self.gid.into(),
            rdev: self.rdev.into(),
            size: self.size.into(),
            blksize: self.blksize.into(),
            blocks: self.blocks.into(),
            atime: time_of(self.atime),
            mtime: time_of(self.mtime),
            ctime: time_of(self.ctime),
            ..Stat::default()
        }
    }
    fn store(value: &Stat) -> Result<Self> {
        let size = u32::try_from(value.size).ok().filter(|size| *size <= 0x7fff_ffff).ok_or(Errno::EOVERFLOW)?;
        Ok(Stat32 {
            dev: narrow(value.dev)?,
            ino: fold_ino(value.ino),
            mode: value.mode as u16,
            nlink: u16::try_from(value.nlink).map_err(|_| Errno::EOVERFLOW)?,
            uid: low_id(value.uid),
            gid: low_id(value.gid),
            rdev: narrow(value.rdev)?,
            size,
            blksize: value.blksize as u32,
            blocks: value.blocks as u32,
            atime: words(value.atime),
            mtime: words(value.mtime),
            ctime: words(value.ctime),
            unused: [0; 2],
        })
    }
}

impl Layout<Stat> for Stat64 {
    fn load(self) -> Stat {
        Stat {
            dev: whole(self.dev),
            ino: whole(self.ino),
            nlink: self.nlink.into(),
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            rdev: whole(self.rdev),
            size: whole(self.size) as i64,
            blksize: self.blksize.into(),
            blocks: whole(self.blocks) as i64,
            atime: time_of(self.atime),
            mtime: time_of(self.mtime),
            ctime: time_of(self.ctime),
            ..Stat::default()
        }
    }
    fn store(value: &Stat) -> Result<Self> {
        Ok(Stat64 {
            dev: halves(value.dev),
            pad0: 0,
            ino_low: fold_ino(value.ino),
            mode: value.mode,
            nlink: value.nlink as u32,
            uid: value.uid,
            gid: value.gid,
            rdev: halves(value.rdev),
            pad3: 0,
            size: halves(value.size as u64),
            blksize: value.blksize as u32,
            blocks: halves(value.blocks as u64),
            atime: words(value.atime),
            mtime: words(value.mtime),
            ctime: words(value.ctime),
            ino: [fold_ino(value.ino), 0],
        })
    }
}

impl Layout<Statfs> for Statfs32 {
    fn load(self) -> Statfs {
        Statfs {
            kind: self.kind.into(),
            bsize: self.bsize.into(),
            blocks: self.blocks.into(),
            bfree: self.bfree.into(),
            bavail: self.bavail.into(),
            files: self.files.into(),
            ffree: self.ffree.into(),
            fsid: whole(self.fsid),
            namelen: self.namelen.into(),
            frsize: self.frsize.into(),
            flags: self.flags.into(),
            spare: [0; 4],
        }
    }
    fn store(value: &Statfs) -> Result<Self> {
        // Unknown counts of files are all ones in either width.
        let files = |count: u64| if count == u64::MAX { Ok(u32::MAX) } else { narrow(count) };
        Ok(Statfs32 {
            kind: value.kind as u32,
            bsize: narrow(value.bsize as u64)?,
            blocks: narrow(value.blocks)?,
            bfree: narrow(value.bfree)?,
            bavail: narrow(value.bavail)?,
            files: files(value.files)?,
            ffree: files(value.ffree)?,
            fsid: halves(value.fsid),
            namelen: value.namelen as u32,
            frsize: narrow(value.frsize as u64)?,
            flags: value.flags as u32,
            spare: [0; 4],
        })
    }
}

impl Layout<Statfs> for Statfs64 {
    fn load(self) -> Statfs {
        Statfs {
            kind: self.kind.into(),
            bsize: self.bsize.into(),
            blocks: whole(self.blocks),
            bfree: whole(self.bfree),
            bavail: whole(self.bavail),
            files: whole(self.files),
            ffree: whole(self.ffree),
            fsid: whole(self.fsid),
            namelen: self.namelen.into(),
            frsize: self.frsize.into(),
            flags: self.flags.into(),
            spare: [0; 4],
        }
    }
    fn store(value: &Statfs) -> Result<Self> {
        Ok(Statfs64 {
            kind: value.kind as u32,
            bsize: narrow(value.bsize as u64)?,
            blocks: halves(value.blocks),
            bfree: halves(value.bfree),
            bavail: halves(value.bavail),
            files: halves(value.files),
            ffree: halves(value.ffree),
            fsid: halves(value.fsid),
            namelen: value.namelen as u32,
            frsize: narrow(value.frsize as u64)?,
            flags: value.flags as u32,
            spare: [0; 4],
        })
    }
}

impl Layout<Flock> for Flock32 {
    fn load(self) -> Flock {
        Flock {
            kind: self.kind,
            whence: self.whence,
            pad1: 0,
            start: self.start.into(),
            len: self.len.into(),
            pid: self.pid,
            pad2: 0,
        }
    }
    fn store(value: &Flock) -> Result<Self> {
        let start = i32::try_from(value.start).map_err(|_| Errno::EOVERFLOW)?;
        // A length that the structure has no room for is given as "to the end".
        let end = value.start.saturating_add(value.len);
        let len = if end > i64::from(i32::MAX) { 0 } else { value.len as i32 };
        Ok(Flock32 { kind: value.kind, whence: value.whence, start, len, pid: value.pid })
    }
}

impl Layout<Flock> for Flock64 {
    fn load(self) -> Flock {
        Flock {
            kind: self.kind,
            whence: self.whence,
            pad1: 0,
            start: whole(self.start) as i64,
            len: whole(self.len) as i64,
            pid: self.pid,
            pad2: 0,
        }
    }
    fn store(value: &Flock) -> Result<Self> {
        Ok(Flock64 {
            kind: value.kind,
            whence: value.whence,
            start: halves(value.start as u64),
            len: halves(value.len as u64),
            pid: value.pid,
        })
    }
}
