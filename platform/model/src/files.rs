//! Memory objects, and what stands for a host's files: the bytes of the initial file tree, and a line that only writes.

use std::sync::{Arc, Mutex, Weak};

use janua_abi::linux::fcntl::open::O_RDWR;
use janua_abi::linux::poll::event;
use janua_abi::linux::stat::{S_IFCHR, S_IFREG};
use janua_abi::linux::{Errno, Result};
use janua_paging::{Object, PAGE};
use janua_port::host::{HostReady, HostStat, SocketCall};
use janua_port::{Host, HostFd, UserMemory};

use crate::machine::Model;
use crate::memory::{Memory, lock};

/// The line, three times; the initial file tree.
const LINE: [HostFd; 3] = [HostFd(0), HostFd(1), HostFd(2)];
const TREE: HostFd = HostFd(3);

/// All of it.
#[derive(Default)]
pub struct Files {
    objects: Mutex<Vec<Weak<Object<Memory>>>>,
    tree: Mutex<Vec<u8>>,
    written: Mutex<Vec<u8>>,
    /// The next transfer, or memory object, fails with this after so many that do not.
    fail: Mutex<Option<(usize, Errno)>>,
}

impl Files {
    pub fn set_tree(&self, bytes: Vec<u8>) {
        *lock(&self.tree) = bytes;
    }

    /// What was written to the line so far.
    pub fn written(&self) -> Vec<u8> {
        lock(&self.written).clone()
    }

    pub fn write_line(&self, bytes: &[u8]) {
        lock(&self.written).extend_from_slice(bytes);
    }

    pub fn fail(&self, after: usize, errno: Errno) {
        *lock(&self.fail) = Some((after, errno));
    }

    /// Memory objects in use.
    pub fn objects(&self) -> usize {
        lock(&self.objects).iter().filter(|object| object.strong_count() > 0).count()
    }

    /// A new one. What [`Files::fail`] was told.
    pub fn object(&self, memory: &'static Memory) -> Result<Arc<Object<Memory>>> {
        self.may_fail()?;
        let object = Object::new(memory, 0);
        let mut objects = lock(&self.objects);
        objects.retain(|object| object.strong_count() > 0);
        objects.push(Arc::downgrade(&object));
        Ok(object)
    }

    /// Whether it is this call's turn to fail.
    fn may_fail(&self) -> Result<()> {
        let mut fail = lock(&self.fail);
        match &mut *fail {
            Some((0, errno)) => {
                let errno = *errno;
                *fail = None;
                Err(errno)
            }
            Some((after, _)) => {
                *after -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn read_at(&self, fd: HostFd, out: &mut [u8], offset: u64) -> Result<usize> {
        if fd != TREE {
            return Err(Errno::EBADF);
        }
        let tree = lock(&self.tree);
        let rest = usize::try_from(offset).ok().and_then(|at| tree.get(at..)).unwrap_or_default();
        let len = out.len().min(rest.len());
        out[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

/// Calls that need names: there are none.
macro_rules! nameless {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> Result<$result> {
            let _ = ($($arg,)*);
            Err(Errno::ENOSYS)
        })*
    };
}

impl Host for Model {
    nameless! {
        open(dir: HostFd, path: &[u8], flags: u32, mode: u32, resolve: u64) -> HostFd;
        statfs(fd: HostFd) -> [u64; 15];
        readlink(dir: HostFd, path: &[u8], out: &mut [u8]) -> usize;
        getdents(fd: HostFd, out: &mut [u8]) -> usize;
        mkdir(dir: HostFd, path: &[u8], mode: u32) -> ();
        mknod(dir: HostFd, path: &[u8], mode: u32, dev: u64) -> ();
        unlink(dir: HostFd, path: &[u8], is_dir: bool) -> ();
        symlink(target: &[u8], dir: HostFd, path: &[u8]) -> ();
        link(old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8]) -> ();
        rename(old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8], flags: u32) -> ();
        chmod(fd: HostFd, mode: u32) -> ();
        chown(dir: HostFd, path: &[u8], uid: u32, gid: u32) -> ();
        utimens(dir: HostFd, path: &[u8], atime: Option<i64>, mtime: Option<i64>) -> ();
        getxattr(fd: HostFd, name: &[u8], out: &mut [u8]) -> usize;
        setxattr(fd: HostFd, name: &[u8], value: &[u8], flags: u32) -> ();
        listxattr(fd: HostFd, out: &mut [u8]) -> usize;
        removexattr(fd: HostFd, name: &[u8]) -> ();
    }

    fn close(&self, _fd: HostFd) {}

    fn flags(&self, fd: HostFd) -> Result<u32> {
        if LINE.contains(&fd) { Ok(O_RDWR) } else { Err(Errno::EBADF) }
    }

    fn stat(&self, fd: HostFd, path: &[u8]) -> Result<HostStat> {
        const BLOCK: u32 = PAGE as u32;
        if !path.is_empty() {
            return Err(Errno::ENOSYS);
        }
        let plain = HostStat { ino: fd.0 as u64, nlink: 1, blksize: BLOCK, ..HostStat::default() };
        if LINE.contains(&fd) {
            return Ok(HostStat { mode: S_IFCHR | 0o620, ..plain });
        }
        if fd == TREE {
            return Ok(HostStat { mode: S_IFREG | 0o400, size: lock(&self.files.tree).len() as u64, ..plain });
        }
        Err(Errno::EBADF)
    }

    fn lseek(&self, _fd: HostFd, _offset: i64, _whence: u32) -> Result<u64> {
        Err(Errno::ESPIPE)
    }

    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize> {
        self.files.may_fail()?;
        if LINE.contains(&fd) {
            return Ok(0);
        }
        self.files.read_at(fd, out, offset.ok_or(Errno::EINVAL)?)
    }

    fn write(&self, fd: HostFd, data: &[u8], _offset: Option<u64>) -> Result<usize> {
        self.files.may_fail()?;
        if LINE.contains(&fd) {
            self.files.write_line(data);
            return Ok(data.len());
        }
        Err(Errno::EBADF)
    }

    fn read_user(&self, fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize> {
        let mut bytes = vec![0; len];
        let n = self.read(fd, &mut bytes, offset)?;
        match self.copy_out_partial(addr, &bytes[..n]) {
            0 if n > 0 => Err(Errno::EFAULT),
            copied => Ok(copied),
        }
    }

    fn write_user(&self, fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize> {
        let mut bytes = vec![0; len];
        match self.copy_in_partial(&mut bytes, addr) {
            0 if len > 0 => Err(Errno::EFAULT),
            have => self.write(fd, &bytes[..have], offset),
        }
    }

    fn truncate(&self, _fd: HostFd, _len: u64) -> Result<()> {
        Err(Errno::EINVAL)
    }

    fn fallocate(&self, _fd: HostFd, _mode: u32, _offset: u64, _len: u64) -> Result<()> {
        Err(Errno::ENODEV)
    }

    fn fsync(&self, _fd: HostFd, _data_only: bool) -> Result<()> {
        // Memory has nothing behind it.
        Ok(())
    }

    fn ioctl(&self, _fd: HostFd, _request: u32, _arg: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOTTY)
    }

    fn ioctl_word(&self, _fd: HostFd, _request: u32, _arg: usize) -> Result<usize> {
        Err(Errno::ENOTTY)
    }

    fn poll(&self, _fd: HostFd, interest: u32) -> u32 {
        // The line is at its end, which is to be read at once.
        (event::IN | event::OUT) & interest
    }

    fn watch(&self, _fd: HostFd, _target: Arc<dyn HostReady>) -> Result<()> {
        Err(Errno::EPERM)
    }

    fn unwatch(&self, _fd: HostFd) {}

    fn socket_call(&self, _call: SocketCall<'_>) -> Result<usize> {
        Err(Errno::EAFNOSUPPORT)
    }
}
