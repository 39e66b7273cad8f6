//! Memory objects, and the machine's descriptors: a line that only writes, and the bytes of the initial file tree.

use std::sync::{Arc, Mutex, Weak};

use janua_abi::linux::fcntl::open::O_RDWR;
use janua_abi::linux::poll::event;
use janua_abi::linux::stat::{S_IFCHR, S_IFREG};
use janua_abi::linux::{Errno, Result};
use janua_paging::{Object, PAGE};
use janua_port::host::{HostReady, HostStat};
use janua_port::{Host, HostFd};

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

    /// A new one. What [`Files::fail`] was given.
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

impl Host for Model {
    fn close(&self, _fd: HostFd) {}

    fn flags(&self, fd: HostFd) -> Result<u32> {
        if LINE.contains(&fd) { Ok(O_RDWR) } else { Err(Errno::EBADF) }
    }

    fn stat(&self, fd: HostFd) -> Result<HostStat> {
        const BLOCK: u32 = PAGE as u32;
        let plain = HostStat { ino: fd.0 as u64, nlink: 1, blksize: BLOCK, ..HostStat::default() };
        if LINE.contains(&fd) {
            return Ok(HostStat { mode: S_IFCHR | 0o620, ..plain });
        }
        if fd == TREE {
            return Ok(HostStat { mode: S_IFREG | 0o400, size: lock(&self.files.tree).len() as u64, ..plain });
        }
        Err(Errno::EBADF)
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
}
