//! The outside by descriptors; the host's files and sockets.
//!
//! Optional: a machine with nothing outside but its console returns `None` in [`Machine::host`](janua_port::Machine::host), and the kernel lives on
//! its own file systems and loopback. Each method is one call of the host's with the kernel's memory, retried on EINTR; errors
//! are passed on as they are. Nothing here takes an address of a guest's but [`HostFiles::read_user`] and [`HostFiles::write_user`].

use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_port::host::{HostReady, HostStat, SocketCall};
use janua_port::{Host, HostFd, HostFiles, HostSockets};

/// A host that offers nothing.
pub struct SkeletonHost;

impl Host for SkeletonHost {
    /// Gives a descriptor back; errors are ignored, since no caller could act on one. There is none to give back here, since `open` never made one.
    fn close(&self, _fd: HostFd) {}

    /// Asks the host, not a copy kept here: descriptors are shared with their origin.
    fn flags(&self, _fd: HostFd) -> Result<u32> {
        Err(Errno::ENOSYS)
    }

    /// Of the description as it is now.
    fn stat(&self, _fd: HostFd) -> Result<HostStat> {
        Err(Errno::ENOSYS)
    }

    /// One read; short counts are passed on.
    fn read(&self, _fd: HostFd, _out: &mut [u8], _offset: Option<u64>) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// One write; short counts are passed on. Where the host would signal a broken pipe, that has to be switched off.
    fn write(&self, _fd: HostFd, _data: &[u8], _offset: Option<u64>) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Only requests the kernel knows the size of come here.
    fn ioctl(&self, _fd: HostFd, _request: u32, _arg: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// The word is a number, never an address of a guest's.
    fn ioctl_word(&self, _fd: HostFd, _request: u32, _arg: usize) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Without waiting. No descriptor of this host is ready for anything.
    fn poll(&self, _fd: HostFd, _interest: u32) -> u32 {
        0
    }

    /// Reports changes from a service thread, the first time soon after the call if the descriptor is ready already.
    fn watch(&self, _fd: HostFd, _target: Arc<dyn HostReady>) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// After return the target is called no more. Nothing is ever watched here.
    fn unwatch(&self, _fd: HostFd) {}

    /// Only where names can be looked up and what is found can be mapped: a machine that has a line outside and no files leaves this to the trait.
    fn files(&self) -> Option<&dyn HostFiles> {
        Some(self)
    }

    /// For `--net host`; a machine without a network of the host's leaves this to the trait.
    fn sockets(&self) -> Option<&dyn HostSockets> {
        Some(self)
    }
}

impl HostFiles for SkeletonHost {
    /// Resolves below `dir` by the host's rules for `resolve`; the descriptor must not leak into programs the host starts.
    fn open(&self, _dir: HostFd, _path: &[u8], _flags: u32, _mode: u32, _resolve: u64) -> Result<HostFd> {
        Err(Errno::ENOSYS)
    }

    /// Never follows a link in the last place: the kernel resolves names itself.
    fn stat_at(&self, _dir: HostFd, _path: &[u8]) -> Result<HostStat> {
        Err(Errno::ENOSYS)
    }

    /// The words in Linux' order whatever the host's is.
    fn statfs(&self, _fd: HostFd) -> Result<[u64; 15]> {
        Err(Errno::ENOSYS)
    }

    /// Truncates like readlink(2): no NUL is added.
    fn readlink(&self, _dir: HostFd, _path: &[u8], _out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Records in the layout of Linux' `struct linux_dirent64`; 0 at the end.
    fn getdents(&self, _fd: HostFd, _out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// SEEK_DATA and SEEK_HOLE too, where the host knows them.
    fn lseek(&self, _fd: HostFd, _offset: i64, _whence: u32) -> Result<u64> {
        Err(Errno::ENOSYS)
    }

    /// Checks the range with [`UserMemory::is_user`](janua_port::UserMemory::is_user) again, then lets the host write into it.
    fn read_user(&self, _fd: HostFd, _addr: usize, _len: usize, _offset: Option<u64>) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// As [`HostFiles::read_user`], outward.
    fn write_user(&self, _fd: HostFd, _addr: usize, _len: usize, _offset: Option<u64>) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// ftruncate(2); mapped pages behind the end fault from then on.
    fn truncate(&self, _fd: HostFd, _len: u64) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Mode bits as in fallocate(2).
    fn fallocate(&self, _fd: HostFd, _mode: u32, _offset: u64, _len: u64) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Returns when the data is where the host reports it safe.
    fn fsync(&self, _fd: HostFd, _data_only: bool) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The same for all of the file system that a file is on.
    fn sync_fs(&self, _fd: HostFd) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The kernel has applied the umask.
    fn mkdir(&self, _dir: HostFd, _path: &[u8], _mode: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// FIFOs and sockets always; devices where the host permits.
    fn mknod(&self, _dir: HostFd, _path: &[u8], _mode: u32, _dev: u64) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// unlinkat(2), with AT_REMOVEDIR for directories.
    fn unlink(&self, _dir: HostFd, _path: &[u8], _is_dir: bool) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The target is a text and is not looked at.
    fn symlink(&self, _target: &[u8], _dir: HostFd, _path: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// linkat(2) without following.
    fn link(&self, _old_dir: HostFd, _old: &[u8], _new_dir: HostFd, _new: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// renameat2(2) with its flags; EINVAL for those the host lacks.
    fn rename(&self, _old_dir: HostFd, _old: &[u8], _new_dir: HostFd, _new: &[u8], _flags: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The twelve low bits of the mode.
    fn chmod(&self, _fd: HostFd, _mode: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Ids as the host counts them.
    fn chown(&self, _dir: HostFd, _path: &[u8], _uid: u32, _gid: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// To the nanosecond as far as the host keeps it.
    fn utimens(&self, _dir: HostFd, _path: &[u8], _atime: Option<i64>, _mtime: Option<i64>) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// ERANGE when the value does not fit; an empty buffer asks for its length.
    fn getxattr(&self, _fd: HostFd, _name: &[u8], _out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// XATTR_CREATE and XATTR_REPLACE as in setxattr(2).
    fn setxattr(&self, _fd: HostFd, _name: &[u8], _value: &[u8], _flags: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Names with a NUL behind each.
    fn listxattr(&self, _fd: HostFd, _out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// ENODATA where there is none of the name.
    fn removexattr(&self, _fd: HostFd, _name: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }
}

impl HostSockets for SkeletonHost {
    /// Each call with its arguments as they are.
    fn socket_call(&self, _call: SocketCall<'_>) -> Result<usize> {
        Err(Errno::ENOSYS)
    }
}
