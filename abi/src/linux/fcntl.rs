//! Open files: flags of open(2), commands and structures of fcntl(2), the words of lseek(2), fallocate(2) and preadv2(2) (source:
//! asm-generic/fcntl.h, linux/fcntl.h, linux/falloc.h, linux/fs.h).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// open(2) flags, x86-64 values.
pub mod open {
    pub const O_ACCMODE: u32 = 3;
    pub const O_RDONLY: u32 = 0;
    pub const O_WRONLY: u32 = 1;
    pub const O_RDWR: u32 = 2;
    pub const O_CREAT: u32 = 0o100;
    pub const O_EXCL: u32 = 0o200;
    pub const O_NOCTTY: u32 = 0o400;
    pub const O_TRUNC: u32 = 0o1000;
    pub const O_APPEND: u32 = 0o2000;
    pub const O_NONBLOCK: u32 = 0o4000;
    pub const O_DSYNC: u32 = 0o10000;
    pub const O_ASYNC: u32 = 0o20000;
    pub const O_DIRECT: u32 = 0o40000;
    pub const O_LARGEFILE: u32 = 0o100000;
    pub const O_DIRECTORY: u32 = 0o200000;
    pub const O_NOFOLLOW: u32 = 0o400000;
    pub const O_NOATIME: u32 = 0o1000000;
    pub const O_CLOEXEC: u32 = 0o2000000;
    pub const O_SYNC: u32 = 0o4010000;
    pub const O_PATH: u32 = 0o10000000;
    pub const O_TMPFILE: u32 = 0o20200000;
}

/// lseek(2): what an offset counts from, or is looked for from.
pub mod whence {
    pub const SEEK_SET: u32 = 0;
    pub const SEEK_CUR: u32 = 1;
    pub const SEEK_END: u32 = 2;
    pub const SEEK_DATA: u32 = 3;
    pub const SEEK_HOLE: u32 = 4;
}

/// fallocate(2) modes.
pub mod falloc {
    pub const KEEP_SIZE: u32 = 1;
    pub const PUNCH_HOLE: u32 = 2;
    pub const COLLAPSE_RANGE: u32 = 8;
    pub const ZERO_RANGE: u32 = 0x10;
    pub const INSERT_RANGE: u32 = 0x20;
    pub const UNSHARE_RANGE: u32 = 0x40;
}

/// preadv2(2) and pwritev2(2): RWF_*.
pub mod rwf {
    pub const HIPRI: u32 = 0x1;
    pub const DSYNC: u32 = 0x2;
    pub const SYNC: u32 = 0x4;
    pub const NOWAIT: u32 = 0x8;
    pub const APPEND: u32 = 0x10;
    pub const NOAPPEND: u32 = 0x20;
}

/// setxattr(2).
pub const XATTR_CREATE: u32 = 1;
pub const XATTR_REPLACE: u32 = 2;

/// Longest path, with its NUL (limits.h).
pub const PATH_MAX: usize = 4096;

pub const F_DUPFD: u32 = 0;
pub const F_GETFD: u32 = 1;
pub const F_SETFD: u32 = 2;
pub const F_GETFL: u32 = 3;
pub const F_SETFL: u32 = 4;
pub const F_GETLK: u32 = 5;
pub const F_SETLK: u32 = 6;
pub const F_SETLKW: u32 = 7;
pub const F_SETOWN: u32 = 8;
pub const F_GETOWN: u32 = 9;
pub const F_SETSIG: u32 = 10;
pub const F_GETSIG: u32 = 11;
pub const F_SETOWN_EX: u32 = 15;
pub const F_GETOWN_EX: u32 = 16;
pub const F_GETOWNER_UIDS: u32 = 17;
pub const F_OFD_GETLK: u32 = 36;
pub const F_OFD_SETLK: u32 = 37;
pub const F_OFD_SETLKW: u32 = 38;
pub const F_SETLEASE: u32 = 1024;
pub const F_GETLEASE: u32 = 1025;
pub const F_NOTIFY: u32 = 1026;
pub const F_DUPFD_QUERY: u32 = 1027;
pub const F_CREATED_QUERY: u32 = 1028;
pub const F_CANCELLK: u32 = 1029;
pub const F_DUPFD_CLOEXEC: u32 = 1030;
pub const F_SETPIPE_SZ: u32 = 1031;
pub const F_GETPIPE_SZ: u32 = 1032;
pub const F_ADD_SEALS: u32 = 1033;
pub const F_GET_SEALS: u32 = 1034;
pub const F_GET_RW_HINT: u32 = 1035;
pub const F_SET_RW_HINT: u32 = 1036;

/// Names by number, for the trace.
pub const COMMANDS: &[(u32, &str)] = &[
    (F_DUPFD, "F_DUPFD"),
    (F_GETFD, "F_GETFD"),
    (F_SETFD, "F_SETFD"),
    (F_GETFL, "F_GETFL"),
    (F_SETFL, "F_SETFL"),
    (F_GETLK, "F_GETLK"),
    (F_SETLK, "F_SETLK"),
    (F_SETLKW, "F_SETLKW"),
    (F_SETOWN, "F_SETOWN"),
    (F_GETOWN, "F_GETOWN"),
    (F_SETSIG, "F_SETSIG"),
    (F_GETSIG, "F_GETSIG"),
    (F_SETOWN_EX, "F_SETOWN_EX"),
    (F_GETOWN_EX, "F_GETOWN_EX"),
    (F_GETOWNER_UIDS, "F_GETOWNER_UIDS"),
    (F_OFD_GETLK, "F_OFD_GETLK"),
    (F_OFD_SETLK, "F_OFD_SETLK"),
    (F_OFD_SETLKW, "F_OFD_SETLKW"),
    (F_SETLEASE, "F_SETLEASE"),
    (F_GETLEASE, "F_GETLEASE"),
    (F_NOTIFY, "F_NOTIFY"),
    (F_DUPFD_QUERY, "F_DUPFD_QUERY"),
    (F_CREATED_QUERY, "F_CREATED_QUERY"),
    (F_DUPFD_CLOEXEC, "F_DUPFD_CLOEXEC"),
    (F_SETPIPE_SZ, "F_SETPIPE_SZ"),
    (F_GETPIPE_SZ, "F_GETPIPE_SZ"),
    (F_ADD_SEALS, "F_ADD_SEALS"),
    (F_GET_SEALS, "F_GET_SEALS"),
    (F_GET_RW_HINT, "F_GET_RW_HINT"),
    (F_SET_RW_HINT, "F_SET_RW_HINT"),
];

pub const FD_CLOEXEC: u32 = 1;

/// `l_type` of [`Flock`].
pub const F_RDLCK: i16 = 0;
pub const F_WRLCK: i16 = 1;
pub const F_UNLCK: i16 = 2;

/// `struct flock`
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Flock {
    pub kind: i16,
    pub whence: i16,
    pub pad1: u32,
    pub start: i64,
    /// 0 is to the end of the file, however far that moves.
    pub len: i64,
    pub pid: i32,
    pub pad2: u32,
}

/// `type` of [`OwnerEx`].
pub const F_OWNER_TID: i32 = 0;
pub const F_OWNER_PID: i32 = 1;
pub const F_OWNER_PGRP: i32 = 2;

/// `struct f_owner_ex`
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OwnerEx {
    pub kind: i32,
    pub pid: i32,
}
