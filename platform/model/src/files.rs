//! What stands for a host's files: memory objects, the bytes of the initial file tree, and a line that only writes.

use std::ops::Range;
use std::sync::{Arc, Mutex, Weak};

use janua_abi::linux::fcntl::open::O_RDWR;
use janua_abi::linux::poll::event;
use janua_abi::linux::stat::{S_IFCHR, S_IFREG};
use janua_abi::linux::{Errno, Result};
use janua_paging::{Object, PAGE};
use janua_port::host::{Fill, HostReady, HostStat, SocketCall};
use janua_port::{Host, HostFd, UserMemory};

use crate::machine::Model;
use crate::memory::{Memory, lock};

/// The line, three times; the initial file tree.
const LINE: [HostFd; 3] = [HostFd(0), HostFd(1), HostFd(2)];
const TREE: HostFd = HostFd(3);
/// The first descriptor of a memory object.
const FIRST: usize = 4;

type Anonymous = Arc<Object<Memory>>;

/// All of it. `None` in a place: its descriptor is free.
#[derive(Default)]
pub struct Files {
    objects: Mutex<Vec<Option<Anonymous>>>,
    tree: Mutex<Vec<u8>>,
    written: Mutex<Vec<u8>>,
    /// The next host call fails with this after so many that do not.
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

    /// Descriptors of memory objects in use.
    pub fn open(&self) -> usize {
        lock(&self.objects).iter().flatten().count()
    }

    /// The memory object of a descriptor. EBADF.
    pub fn object(&self, fd: HostFd) -> Result<Anonymous> {
        let index = usize::try_from(fd.0).ok().and_then(|fd| fd.checked_sub(FIRST)).ok_or(Errno::EBADF)?;
        lock(&self.objects).get(index).cloned().flatten().ok_or(Errno::EBADF)
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
            return Ok(self.object(fd)?.read(offset, out));
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

    fn close(&self, fd: HostFd) {
        let Some(index) = usize::try_from(fd.0).ok().and_then(|fd| fd.checked_sub(FIRST)) else { return };
        let gone = lock(&self.files.objects).get_mut(index).and_then(Option::take);
        drop(gone);
    }

    fn flags(&self, fd: HostFd) -> Result<u32> {
        if LINE.contains(&fd) { Ok(O_RDWR) } else { self.files.object(fd).map(|_| O_RDWR) }
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
        let object = self.files.object(fd)?;
        let blocks = (object.pages() * (PAGE / 512)) as u64;
        Ok(HostStat { mode: S_IFREG | 0o600, size: object.size(), blocks, ..plain })
    }

    fn lseek(&self, fd: HostFd, offset: i64, whence: u32) -> Result<u64> {
        if LINE.contains(&fd) {
            return Err(Errno::ESPIPE);
        }
        self.files.object(fd)?.lseek(offset, whence)
    }

    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize> {
        self.files.may_fail()?;
        if LINE.contains(&fd) {
            return Ok(0);
        }
        self.files.read_at(fd, out, offset.ok_or(Errno::EINVAL)?)
    }

    fn write(&self, fd: HostFd, data: &[u8], offset: Option<u64>) -> Result<usize> {
        self.files.may_fail()?;
        if LINE.contains(&fd) {
            self.files.write_line(data);
            return Ok(data.len());
        }
        self.files.object(fd)?.write(offset.ok_or(Errno::EINVAL)?, data)
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

    fn truncate(&self, fd: HostFd, len: u64) -> Result<()> {
        self.files.may_fail()?;
        self.files.object(fd)?.truncate(len)
    }

    fn fallocate(&self, fd: HostFd, mode: u32, offset: u64, len: u64) -> Result<()> {
        self.files.may_fail()?;
        self.files.object(fd)?.fallocate(mode, offset, len)
    }

    fn fsync(&self, _fd: HostFd, _data_only: bool) -> Result<()> {
        // Memory has nothing behind it.
        Ok(())
    }

    fn memfd(&self, _name: &[u8]) -> Result<HostFd> {
        self.files.may_fail()?;
        let object = Object::new(self.memory, 0);
        let mut objects = lock(&self.files.objects);
        let index = objects.iter().position(Option::is_none).unwrap_or(objects.len());
        if index == objects.len() {
            objects.push(None);
        }
        objects[index] = Some(object);
        i32::try_from(index + FIRST).map(HostFd).map_err(|_| Errno::ENFILE)
    }

    fn set_fill(&self, fd: HostFd, fill: Weak<dyn Fill>) -> Result<()> {
        self.files.object(fd)?.set_fill(fill);
        Ok(())
    }

    fn take_stored(&self, fd: HostFd, each: &mut dyn FnMut(Range<u64>)) -> Result<()> {
        self.files.object(fd)?.take_stored(each);
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
