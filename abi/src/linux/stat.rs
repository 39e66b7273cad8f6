//! Structures of the stat family (stat(2), statx(2), statfs(2), getdents64(2)).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct stat` of x86-64.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Stat {
    pub dev: u64,
    pub ino: u64,
    pub nlink: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub pad: u32,
    pub rdev: u64,
    pub size: i64,
    pub blksize: i64,
    pub blocks: i64,
    pub atime: [i64; 2],
    pub mtime: [i64; 2],
    pub ctime: [i64; 2],
    pub unused: [i64; 3],
}

const _: () = assert!(size_of::<Stat>() == 144);

/// `struct statx_timestamp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct StatxTime {
    pub sec: i64,
    pub nsec: u32,
    pub pad: i32,
}

/// `struct statx`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Statx {
    pub mask: u32,
    pub blksize: u32,
    pub attributes: u64,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub mode: u16,
    pub pad: u16,
    pub ino: u64,
    pub size: u64,
    pub blocks: u64,
    pub attributes_mask: u64,
    pub atime: StatxTime,
    pub btime: StatxTime,
    pub ctime: StatxTime,
    pub mtime: StatxTime,
    pub rdev_major: u32,
    pub rdev_minor: u32,
    pub dev_major: u32,
    pub dev_minor: u32,
    pub mnt_id: u64,
    pub dio_mem_align: u32,
    pub dio_offset_align: u32,
    pub spare: [u64; 12],
}

const _: () = assert!(size_of::<Statx>() == 256);

/// STATX_* bits.
pub mod statx {
    pub const BASIC_STATS: u32 = 0x7ff;
    pub const BTIME: u32 = 0x800;
    pub const MNT_ID: u32 = 0x1000;
    pub const RESERVED: u32 = 0x8000_0000;
    /// STATX_ATTR_MOUNT_ROOT.
    pub const ATTR_MOUNT_ROOT: u64 = 0x2000;
    /// STATX_ATTR_IMMUTABLE, APPEND and NODUMP: of files that have such flags, whose FS_*_FL are the same bits.
    pub const ATTR_FLAGS: u64 = 0x70;
    /// What is known of every file: STATX_ATTR_AUTOMOUNT, MOUNT_ROOT and DAX.
    pub const ATTR_ALWAYS: u64 = 0x20_3000;
}

/// `struct statfs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Statfs {
    pub kind: i64,
    pub bsize: i64,
    pub blocks: u64,
    pub bfree: u64,
    pub bavail: u64,
    pub files: u64,
    pub ffree: u64,
    pub fsid: u64,
    pub namelen: i64,
    pub frsize: i64,
    pub flags: i64,
    pub spare: [i64; 4],
}

const _: () = assert!(size_of::<Statfs>() == 120);

/// AT_* flags of the *at family.
pub mod at {
    pub const FDCWD: i32 = -100;
    pub const SYMLINK_NOFOLLOW: u32 = 0x100;
    /// unlinkat(2); the same bit is AT_EACCESS for faccessat2(2).
    pub const REMOVEDIR: u32 = 0x200;
    pub const EACCESS: u32 = 0x200;
    pub const SYMLINK_FOLLOW: u32 = 0x400;
    pub const NO_AUTOMOUNT: u32 = 0x800;
    pub const EMPTY_PATH: u32 = 0x1000;
    pub const STATX_FORCE_SYNC: u32 = 0x2000;
    pub const STATX_DONT_SYNC: u32 = 0x4000;
    pub const STATX_SYNC_TYPE: u32 = STATX_FORCE_SYNC | STATX_DONT_SYNC;
}

/// Device numbers in the encoding of `st_rdev` (makedev(3)).
pub mod device {
    /// The number of a major and a minor one.
    pub const fn number(major: u32, minor: u32) -> u64 {
        let (major, minor) = (major as u64, minor as u64);
        (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32
    }

    /// The major number of a device.
    pub const fn major(dev: u64) -> u32 {
        ((dev >> 8 & 0xfff) | (dev >> 32 & !0xfff)) as u32
    }

    /// The minor number of a device.
    pub const fn minor(dev: u64) -> u32 {
        ((dev & 0xff) | (dev >> 12 & !0xff)) as u32
    }
}

/// Nanoseconds that mean something else to utimensat(2).
pub const UTIME_NOW: i64 = (1 << 30) - 1;
pub const UTIME_OMIT: i64 = (1 << 30) - 2;

/// The kind of a file in `st_mode`, and the bits that hold it.
pub const S_IFMT: u32 = 0o170000;
pub const S_IFIFO: u32 = 0o010000;
pub const S_IFCHR: u32 = 0o020000;
pub const S_IFDIR: u32 = 0o040000;
pub const S_IFBLK: u32 = 0o060000;
pub const S_IFREG: u32 = 0o100000;
pub const S_IFLNK: u32 = 0o120000;
pub const S_IFSOCK: u32 = 0o140000;

/// `struct open_how` of openat2(2).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct OpenHow {
    pub flags: u64,
    pub mode: u64,
    pub resolve: u64,
}
