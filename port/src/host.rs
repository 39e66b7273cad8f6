//! The outside by descriptors, and a host's files and sockets, for platforms that run on one (`linux`).
//!
//! A thin, typed sheet over the host's calls; all names are relative to a descriptor, all memory is the kernel's. The two
//! exceptions, [`HostFiles::read_user`] and [`HostFiles::write_user`], take user ranges that have been checked, to save a copy.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::fcntl::whence::{SEEK_DATA, SEEK_HOLE};
use janua_abi::linux::{Errno, Result};
use serde::{Deserialize, Serialize};

use crate::MemoryObject;
use crate::user::Window;

/// A descriptor of the host. Not closed on drop: that is [`OwnedFd`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostFd(pub i32);

/// The offset of a write that goes to the end of a file, wherever that is by then.
pub const END: u64 = u64::MAX;

/// The host's `struct stat`, as far as it matters (inode(7)).
#[derive(Clone, Copy, Debug, Default)]
pub struct HostStat {
    pub dev: u64,
    pub ino: u64,
    pub mode: u32,
    pub nlink: u64,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u64,
    pub size: u64,
    pub blksize: u32,
    pub blocks: u64,
    /// Nanoseconds since 1970 (signed: files may be older).
    pub atime: i64,
    pub mtime: i64,
    pub ctime: i64,
    pub btime: i64,
}

/// Notified when a watched host descriptor becomes ready.
pub trait HostReady: Send + Sync {
    /// `events` are poll(2) bits. Called from a service thread; must not block.
    fn ready(&self, events: u32);
}

/// Descriptors that the outside has handed to the kernel: lines, streams, files; what goes through them, and when they are ready. Every method is
/// one host call (or a loop over EINTR); errors are the host's.
pub trait Host: Send + Sync {
    /// close(2). Nothing can be done about an error, so none is returned.
    fn close(&self, fd: HostFd);
    /// Access mode and status flags of the description (F_GETFL).
    fn flags(&self, fd: HostFd) -> Result<u32>;
    /// fstat(2).
    fn stat(&self, fd: HostFd) -> Result<HostStat>;
    /// `offset: None` uses the descriptor's own position.
    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize>;
    /// As [`Host::read`], the other way. At [`END`] the host finds the end and writes there in one step, and
    /// the descriptor's own position is behind what was written then.
    fn write(&self, fd: HostFd, data: &[u8], offset: Option<u64>) -> Result<usize>;
    /// ioctl(2) whose argument is a buffer of the kernel's (in and out).
    fn ioctl(&self, fd: HostFd, request: u32, arg: &mut [u8]) -> Result<usize>;
    /// ioctl(2) whose argument is a plain word.
    fn ioctl_word(&self, fd: HostFd, request: u32, arg: usize) -> Result<usize>;
    /// The poll(2) bits of `interest` that hold now, without waiting.
    fn poll(&self, fd: HostFd, interest: u32) -> u32;
    /// Notifies `target` whenever the descriptor's readiness changes (edge), until [`Host::unwatch`]. EPERM: always ready.
    fn watch(&self, fd: HostFd, target: Arc<dyn HostReady>) -> Result<()>;
    /// Ends [`Host::watch`].
    fn unwatch(&self, fd: HostFd);
    /// The host's files, where it has a file system: what is mapped of one is then the host's affair.
    fn files(&self) -> Option<&dyn HostFiles> {
        None
    }
    /// The host's network.
    fn sockets(&self) -> Option<&dyn HostSockets> {
        None
    }
}

/// A host's file system: names, contents, attributes. Calls as in [`Host`].
pub trait HostFiles: Host {
    /// openat2(2) relative to `dir` with O_CLOEXEC|O_NOCTTY added; `resolve` are RESOLVE_* bits. An empty path reopens `dir`
    /// itself (through /proc/self/fd).
    fn open(&self, dir: HostFd, path: &[u8], flags: u32, mode: u32, resolve: u64) -> Result<HostFd>;
    /// fstatat(2) with AT_SYMLINK_NOFOLLOW; an empty path means the descriptor itself.
    fn stat_at(&self, dir: HostFd, path: &[u8]) -> Result<HostStat>;
    /// statfs(2) of what the descriptor is on, as Linux' 64-bit `struct statfs` in 15 words.
    fn statfs(&self, fd: HostFd) -> Result<[u64; 15]>;
    /// readlinkat(2): the bytes put into `out`, which may be a cut target.
    fn readlink(&self, dir: HostFd, path: &[u8], out: &mut [u8]) -> Result<usize>;
    /// getdents64(2): raw records into `out`.
    fn getdents(&self, fd: HostFd, out: &mut [u8]) -> Result<usize>;
    /// lseek(2), SEEK_DATA and SEEK_HOLE included: the new position.
    fn lseek(&self, fd: HostFd, offset: i64, whence: u32) -> Result<u64>;
    /// Like `read`, into user memory that [`crate::UserMemory::is_user`] has accepted; only where [`HostFiles::reads_copy`].
    fn read_user(&self, fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize>;
    /// Whether a read of the descriptor stores into memory while it goes on, by the calling thread's own right to store there.
    /// Otherwise the host may hold on to pages and fill them although that right has gone meanwhile.
    fn reads_copy(&self, _fd: HostFd) -> bool {
        true
    }
    /// Like `write`, from user memory that [`crate::UserMemory::is_user`] has accepted.
    fn write_user(&self, fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize>;
    /// ftruncate(2).
    fn truncate(&self, fd: HostFd, len: u64) -> Result<()>;
    /// fallocate(2); `mode` are FALLOC_FL_* bits.
    fn fallocate(&self, fd: HostFd, mode: u32, offset: u64, len: u64) -> Result<()>;
    /// fsync(2), or fdatasync(2) with `data_only`.
    fn fsync(&self, fd: HostFd, data_only: bool) -> Result<()>;
    /// syncfs(2): all that is written to the file system that the descriptor, of a file opened for reading or writing, is on.
    fn sync_fs(&self, fd: HostFd) -> Result<()>;
    /// mkdirat(2).
    fn mkdir(&self, dir: HostFd, path: &[u8], mode: u32) -> Result<()>;
    /// mknodat(2); `mode` has the file type.
    fn mknod(&self, dir: HostFd, path: &[u8], mode: u32, dev: u64) -> Result<()>;
    /// unlinkat(2), with AT_REMOVEDIR for a directory.
    fn unlink(&self, dir: HostFd, path: &[u8], is_dir: bool) -> Result<()>;
    /// symlinkat(2).
    fn symlink(&self, target: &[u8], dir: HostFd, path: &[u8]) -> Result<()>;
    /// linkat(2), not following; an empty old path means the descriptor itself.
    fn link(&self, old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8]) -> Result<()>;
    /// renameat2(2); `flags` are RENAME_* bits.
    fn rename(&self, old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8], flags: u32) -> Result<()>;
    /// fchmod(2), of any descriptor, those opened with O_PATH too. There is none by name: a name may be a link by now.
    fn chmod(&self, fd: HostFd, mode: u32) -> Result<()>;
    /// fchownat(2), not following; `u32::MAX` leaves an id alone.
    fn chown(&self, dir: HostFd, path: &[u8], uid: u32, gid: u32) -> Result<()>;
    /// utimensat(2), not following; `None` leaves a time alone. Nanoseconds since 1970.
    fn utimens(&self, dir: HostFd, path: &[u8], atime: Option<i64>, mtime: Option<i64>) -> Result<()>;
    /// [`MemoryObject::window`] of an anonymous file in memory. ENOSYS where the kernel reaches such files otherwise.
    fn window(&self, _fd: HostFd, _at: u64, _len: usize) -> Result<Arc<dyn Window>> {
        Err(Errno::ENOSYS)
    }
    /// fgetxattr(2): the length; with an empty `out` that of the value.
    fn getxattr(&self, fd: HostFd, name: &[u8], out: &mut [u8]) -> Result<usize>;
    /// getxattrat(2), not following: the same of a file by its name in a directory. ENOSYS where the host has no such call.
    fn getxattr_at(&self, _dir: HostFd, _path: &[u8], _name: &[u8], _out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }
    /// fsetxattr(2); `flags` are XATTR_CREATE and XATTR_REPLACE.
    fn setxattr(&self, fd: HostFd, name: &[u8], value: &[u8], flags: u32) -> Result<()>;
    /// flistxattr(2): names one behind the other, each closed by a zero byte.
    fn listxattr(&self, fd: HostFd, out: &mut [u8]) -> Result<usize>;
    /// fremovexattr(2).
    fn removexattr(&self, fd: HostFd, name: &[u8]) -> Result<()>;
}

/// A host's network. Calls as in [`Host`].
pub trait HostSockets: Host {
    /// A raw host socket call by number (socket, bind, connect, ...) whose memory arguments are the kernel's; used by
    /// `--net host` only. Arguments are words; pointers among them must come from slices that live across the call.
    fn socket_call(&self, call: SocketCall<'_>) -> Result<usize>;
}

/// A file of the host, by a descriptor that is closed with its last user.
pub struct OwnedFd {
    host: &'static dyn HostFiles,
    fd: HostFd,
    /// [`HostFiles::reads_copy`], as far as it is known.
    copies: AtomicBool,
    /// It is in memory, and has no name: nobody else has it open.
    anonymous: bool,
}

impl OwnedFd {
    /// Of an anonymous file in memory.
    pub fn new(host: &'static dyn HostFiles, fd: HostFd) -> Arc<OwnedFd> {
        Arc::new(OwnedFd { host, fd, copies: AtomicBool::new(true), anonymous: true })
    }

    /// Of a file of which nothing is known.
    pub fn of_file(host: &'static dyn HostFiles, fd: HostFd) -> Arc<OwnedFd> {
        Arc::new(OwnedFd { host, fd, copies: AtomicBool::new(false), anonymous: false })
    }

    /// It is now known whether reads of the file copy.
    pub fn set_copies(&self, copies: bool) {
        self.copies.store(copies, Ordering::Relaxed);
    }

    /// Whether reads of the file are known to copy.
    #[inline]
    pub fn copies(&self) -> bool {
        self.copies.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn fd(&self) -> HostFd {
        self.fd
    }

    #[inline]
    pub fn host(&self) -> &'static dyn HostFiles {
        self.host
    }
}

impl Drop for OwnedFd {
    fn drop(&mut self) {
        self.host.close(self.fd);
    }
}

/// What is mapped of a file is the host's affair.
impl MemoryObject for OwnedFd {
    fn read(&self, at: u64, out: &mut [u8]) -> Result<usize> {
        self.host.read(self.fd, out, Some(at))
    }

    fn write(&self, at: u64, data: &[u8]) -> Result<usize> {
        self.host.write(self.fd, data, Some(at))
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.host.truncate(self.fd, size)
    }

    fn allocate(&self, mode: u32, at: u64, len: u64) -> Result<()> {
        self.host.fallocate(self.fd, mode, at, len)
    }

    fn seek(&self, at: u64, hole: bool) -> Result<u64> {
        self.host.lseek(self.fd, at as i64, if hole { SEEK_HOLE } else { SEEK_DATA })
    }

    fn resident(&self) -> u64 {
        self.host.stat(self.fd).map_or(0, |stat| stat.blocks * 512)
    }

    fn window(&self, at: u64, len: usize) -> Result<Arc<dyn Window>> {
        // A touch of another file could take as long as its disk does.
        if self.anonymous { self.host.window(self.fd, at, len) } else { Err(Errno::ENOSYS) }
    }

    fn host_file(&self) -> Option<&OwnedFd> {
        Some(self)
    }
}

/// Host socket calls. Buffers are the kernel's.
#[rustfmt::skip]
pub enum SocketCall<'a> {
    Socket { domain: u32, kind: u32, protocol: u32 },
    Bind { fd: HostFd, addr: &'a [u8] },
    Connect { fd: HostFd, addr: &'a [u8] },
    Listen { fd: HostFd, backlog: u32 },
    Accept { fd: HostFd, addr: &'a mut [u8], addr_len: &'a mut usize },
    Getsockname { fd: HostFd, addr: &'a mut [u8], addr_len: &'a mut usize },
    Getpeername { fd: HostFd, addr: &'a mut [u8], addr_len: &'a mut usize },
    Send { fd: HostFd, data: &'a [u8], flags: u32, addr: &'a [u8], control: &'a [u8] },
    /// Returns the bytes received; `addr_len`, `control_len` and `flags_out` are set.
    Recv {
        fd: HostFd,
        data: &'a mut [u8],
        flags: u32,
        addr: &'a mut [u8],
        addr_len: &'a mut usize,
        control: &'a mut [u8],
        control_len: &'a mut usize,
        flags_out: &'a mut u32,
    },
    Shutdown { fd: HostFd, how: u32 },
    Setsockopt { fd: HostFd, level: u32, name: u32, value: &'a [u8] },
    Getsockopt { fd: HostFd, level: u32, name: u32, value: &'a mut [u8], value_len: &'a mut usize },
}
