//! The host's files for guests whose memory is not the host's to map: a file that is mapped becomes a memory object, which the kernel fills.
//!
//! It stays one for those who map it next, as long as it does not change outside. What shared mappings store reaches the file when it is
//! read or written, synchronized, and when a space goes.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_paging::{Object, PAGE};
use janua_platform_linux::host::LinuxHost;
use janua_port::host::{END, HostReady, HostStat, OwnedFd, SocketCall};
use janua_port::object::Fill;
use janua_port::{Host, HostFd, HostFiles, HostSockets, MemoryObject};
use janua_rt::Mutex;

use crate::physical::{MEMORY, Physical};

type Memory = Arc<Object<Physical>>;

/// Pages of a host's file that are read at a time: an aligned group of this many.
const GROUP: u64 = 16;
/// Files of the host's that are kept though nobody maps them.
const KEPT: usize = 64;

/// A file of the host's that is mapped, or was.
struct Mapped {
    object: Memory,
    /// Keeps the host's descriptor open.
    _file: Arc<dyn MemoryObject>,
    fd: HostFd,
    size: u64,
    mtime: i64,
    /// Mappings may store into it.
    shared: AtomicBool,
    filling: Mutex<()>,
}

/// Which file it is: device and inode.
type Key = (u64, u64);

/// Those there are. One that has changed since has a place of its own, which no file has, as long as somebody maps it.
static FILES: Mutex<BTreeMap<Key, Arc<Mapped>>> = Mutex::new(BTreeMap::new());
/// Whether any is shared.
static SHARED: AtomicBool = AtomicBool::new(false);

impl Fill for Mapped {
    fn fill(&self, page: u64) -> Result<()> {
        let _filling = self.filling.lock();
        if self.object.resident(page) {
            return Ok(());
        }
        let first = page & !(GROUP - 1);
        let mut bytes = vec![0; GROUP as usize * PAGE];
        let len = LinuxHost.read(self.fd, &mut bytes, Some(first * PAGE as u64))?;
        for (number, part) in (first..).zip(bytes[..len].chunks(PAGE)) {
            if !self.object.resident(number) {
                self.object.write(number * PAGE as u64, part).map_err(|_| Errno::ENOMEM)?;
            }
        }
        if self.object.resident(page) { Ok(()) } else { Err(Errno::EIO) }
    }
}

impl Mapped {
    /// Writes to the file what shared mappings have stored.
    fn write_back(&self) {
        if !self.shared.load(Ordering::Relaxed) {
            return;
        }
        let mut page = vec![0; PAGE];
        let mut runs: Vec<Range<u64>> = Vec::new();
        self.object.take_stored(&mut |run| runs.push(run));
        for number in runs.into_iter().flatten() {
            let len = self.object.read(number * PAGE as u64, &mut page);
            // Nobody is there to be told of a file system that is full.
            let _ = LinuxHost.write(self.fd, &page[..len], Some(number * PAGE as u64));
        }
    }

    fn is_mapped(&self) -> bool {
        Arc::strong_count(&self.object) > 1
    }
}

/// What stands for a file of the host's. The host's errors.
pub fn object(file: &Arc<dyn MemoryObject>, from: &OwnedFd, shared: bool) -> Result<Memory> {
    let stat = LinuxHost.stat(from.fd())?;
    let key = (stat.dev, stat.ino);
    let mut files = FILES.lock();
    let fits = |known: &&Arc<Mapped>| {
        let stores = known.shared.load(Ordering::Relaxed);
        stores || !shared && (known.size, known.mtime) == (stat.size, stat.mtime)
    };
    if let Some(known) = files.get(&key).filter(fits) {
        return Ok(known.object.clone());
    }
    let object = Object::new(&MEMORY, stat.size);
    let made = Arc::new(Mapped {
        object: object.clone(),
        _file: file.clone(),
        fd: from.fd(),
        size: stat.size,
        mtime: stat.mtime,
        shared: AtomicBool::new(shared),
        filling: Mutex::new(()),
    });
    SHARED.fetch_or(shared, Ordering::Relaxed);
    let fill: Arc<dyn Fill> = made.clone();
    let fill: Weak<dyn Fill> = Arc::downgrade(&fill);
    object.set_fill(fill);
    let mut gone = Vec::new();
    if files.len() >= KEPT {
        let unused: Vec<Key> = files.iter().filter(|(_, file)| !file.is_mapped()).map(|(key, _)| *key).collect();
        gone.extend(unused.iter().filter_map(|key| files.remove(key)));
    }
    if let Some(old) = files.insert(key, made) {
        if old.is_mapped() {
            files.insert((u64::MAX, Arc::as_ptr(&old) as usize as u64), old);
        } else {
            gone.push(old);
        }
    }
    drop(files);
    gone.iter().for_each(|file| file.write_back());
    Ok(object)
}

/// What shared mappings have stored reaches its files.
pub fn write_back() {
    if SHARED.load(Ordering::Relaxed) {
        let files: Vec<_> = FILES.lock().values().cloned().collect();
        files.iter().for_each(|file| file.write_back());
    }
}

/// The file behind a descriptor, if it is mapped, or was.
fn mapped(fd: HostFd) -> Option<Arc<Mapped>> {
    let stat = LinuxHost.stat(fd).ok()?;
    FILES.lock().get(&(stat.dev, stat.ino)).cloned()
}

/// What shared mappings have stored into a file is in the file.
fn settle(fd: HostFd) {
    if SHARED.load(Ordering::Relaxed)
        && let Some(file) = mapped(fd)
    {
        file.write_back();
    }
}

/// What was written to a file is in its pages that are in memory.
fn show(fd: HostFd, data: &[u8], at: u64) {
    let Some(file) = mapped(fd) else { return };
    let (mut done, mut at) = (0, at);
    while done < data.len() {
        let part = (PAGE - at as usize % PAGE).min(data.len() - done);
        if file.object.resident(at / PAGE as u64) {
            let _ = file.object.write(at, &data[done..done + part]);
        }
        (done, at) = (done + part, at + part as u64);
    }
}

/// The host, as the kernel of guests in processes of their own has it.
pub struct ProcessHost;

impl Host for ProcessHost {
    fn close(&self, fd: HostFd) {
        LinuxHost.close(fd);
    }

    fn flags(&self, fd: HostFd) -> Result<u32> {
        LinuxHost.flags(fd)
    }

    fn stat(&self, fd: HostFd) -> Result<HostStat> {
        LinuxHost.stat(fd)
    }

    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize> {
        settle(fd);
        LinuxHost.read(fd, out, offset)
    }

    fn write(&self, fd: HostFd, data: &[u8], offset: Option<u64>) -> Result<usize> {
        settle(fd);
        let done = LinuxHost.write(fd, data, offset)?;
        if let Some(at) = offset.filter(|at| *at != END) {
            show(fd, &data[..done], at);
        }
        Ok(done)
    }

    fn ioctl(&self, fd: HostFd, request: u32, arg: &mut [u8]) -> Result<usize> {
        LinuxHost.ioctl(fd, request, arg)
    }

    fn ioctl_word(&self, fd: HostFd, request: u32, arg: usize) -> Result<usize> {
        LinuxHost.ioctl_word(fd, request, arg)
    }

    fn poll(&self, fd: HostFd, interest: u32) -> u32 {
        LinuxHost.poll(fd, interest)
    }

    fn watch(&self, fd: HostFd, target: Arc<dyn HostReady>) -> Result<()> {
        LinuxHost.watch(fd, target)
    }

    fn unwatch(&self, fd: HostFd) {
        LinuxHost.unwatch(fd);
    }

    fn files(&self) -> Option<&dyn HostFiles> {
        Some(self)
    }

    fn sockets(&self) -> Option<&dyn HostSockets> {
        Some(self)
    }
}

impl HostFiles for ProcessHost {
    fn open(&self, dir: HostFd, path: &[u8], flags: u32, mode: u32, resolve: u64) -> Result<HostFd> {
        LinuxHost.open(dir, path, flags, mode, resolve)
    }

    fn stat_at(&self, dir: HostFd, path: &[u8]) -> Result<HostStat> {
        LinuxHost.stat_at(dir, path)
    }

    fn statfs(&self, fd: HostFd) -> Result<[u64; 15]> {
        LinuxHost.statfs(fd)
    }

    fn readlink(&self, dir: HostFd, path: &[u8], out: &mut [u8]) -> Result<usize> {
        LinuxHost.readlink(dir, path, out)
    }

    fn getdents(&self, fd: HostFd, out: &mut [u8]) -> Result<usize> {
        LinuxHost.getdents(fd, out)
    }

    fn lseek(&self, fd: HostFd, offset: i64, whence: u32) -> Result<u64> {
        LinuxHost.lseek(fd, offset, whence)
    }

    // No memory of a guest's is where the caller runs, so that nobody asks for these two.
    fn read_user(&self, _fd: HostFd, _addr: usize, _len: usize, _offset: Option<u64>) -> Result<usize> {
        Err(Errno::EFAULT)
    }

    fn write_user(&self, _fd: HostFd, _addr: usize, _len: usize, _offset: Option<u64>) -> Result<usize> {
        Err(Errno::EFAULT)
    }

    fn reads_copy(&self, _fd: HostFd) -> bool {
        false
    }

    fn truncate(&self, fd: HostFd, len: u64) -> Result<()> {
        settle(fd);
        LinuxHost.truncate(fd, len)?;
        mapped(fd).map_or(Ok(()), |file| file.object.truncate(len))
    }

    fn fallocate(&self, fd: HostFd, mode: u32, offset: u64, len: u64) -> Result<()> {
        LinuxHost.fallocate(fd, mode, offset, len)
    }

    fn fsync(&self, fd: HostFd, data_only: bool) -> Result<()> {
        settle(fd);
        LinuxHost.fsync(fd, data_only)
    }

    fn mkdir(&self, dir: HostFd, path: &[u8], mode: u32) -> Result<()> {
        LinuxHost.mkdir(dir, path, mode)
    }

    fn mknod(&self, dir: HostFd, path: &[u8], mode: u32, dev: u64) -> Result<()> {
        LinuxHost.mknod(dir, path, mode, dev)
    }

    fn unlink(&self, dir: HostFd, path: &[u8], is_dir: bool) -> Result<()> {
        LinuxHost.unlink(dir, path, is_dir)
    }

    fn symlink(&self, target: &[u8], dir: HostFd, path: &[u8]) -> Result<()> {
        LinuxHost.symlink(target, dir, path)
    }

    fn link(&self, old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8]) -> Result<()> {
        LinuxHost.link(old_dir, old, new_dir, new)
    }

    fn rename(&self, old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8], flags: u32) -> Result<()> {
        LinuxHost.rename(old_dir, old, new_dir, new, flags)
    }

    fn chmod(&self, fd: HostFd, mode: u32) -> Result<()> {
        LinuxHost.chmod(fd, mode)
    }

    fn chown(&self, dir: HostFd, path: &[u8], uid: u32, gid: u32) -> Result<()> {
        LinuxHost.chown(dir, path, uid, gid)
    }

    fn utimens(&self, dir: HostFd, path: &[u8], atime: Option<i64>, mtime: Option<i64>) -> Result<()> {
        LinuxHost.utimens(dir, path, atime, mtime)
    }

    fn getxattr(&self, fd: HostFd, name: &[u8], out: &mut [u8]) -> Result<usize> {
        LinuxHost.getxattr(fd, name, out)
    }

    fn setxattr(&self, fd: HostFd, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        LinuxHost.setxattr(fd, name, value, flags)
    }

    fn listxattr(&self, fd: HostFd, out: &mut [u8]) -> Result<usize> {
        LinuxHost.listxattr(fd, out)
    }

    fn removexattr(&self, fd: HostFd, name: &[u8]) -> Result<()> {
        LinuxHost.removexattr(fd, name)
    }
}

impl HostSockets for ProcessHost {
    fn socket_call(&self, call: SocketCall<'_>) -> Result<usize> {
        LinuxHost.socket_call(call)
    }
}
