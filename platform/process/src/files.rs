//! The host's files for guests whose memory is not the host's to map: a file that is mapped becomes a memory object, which the kernel fills.
//!
//! It stays one for those who map it next, as long as it does not change outside. What shared mappings store is what reads find at once, and
//! reaches the file when it is written to or synchronized, and when a space goes.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_abi::linux::fcntl::open::{O_ACCMODE, O_RDWR};
use janua_abi::linux::fcntl::{falloc, whence::SEEK_CUR};
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
const GROUP: u64 = 64;
/// The least and the most bytes of host files that are kept in memory.
const LEAST: usize = 16 << 20;
const MOST: usize = 1 << 30;
/// Files of the host's that are kept though nobody maps them.
const KEPT: usize = 64;

/// A file of the host's that is mapped, or was.
struct Mapped {
    object: Memory,
    source: Mutex<Source>,
    size: u64,
    mtime: i64,
    /// Mappings may store into it.
    shared: AtomicBool,
    /// Held while the file and its pages in memory are made the same, in either direction.
    busy: Mutex<()>,
}

/// By which descriptor of the host's the file is read and written.
struct Source {
    /// Keeps it open.
    _file: Arc<dyn MemoryObject>,
    fd: HostFd,
    writable: bool,
}

impl Source {
    fn new(file: &Arc<dyn MemoryObject>, fd: HostFd) -> Source {
        let writable = LinuxHost.flags(fd).is_ok_and(|flags| flags & O_ACCMODE == O_RDWR);
        Source { _file: file.clone(), fd, writable }
    }
}

/// Which file it is: device and inode.
type Key = (u64, u64);

/// Those there are. One that has changed since has a place of its own, which no file has, as long as somebody maps it.
static FILES: Mutex<BTreeMap<Key, Arc<Mapped>>> = Mutex::new(BTreeMap::new());
/// How many of them are shared.
static SHARED: AtomicUsize = AtomicUsize::new(0);

/// Pages of host files that may be in memory, and how many are at most.
static BOUND: AtomicUsize = AtomicUsize::new(LEAST / PAGE);
static KNOWN: AtomicUsize = AtomicUsize::new(0);

/// How many bytes of host files are kept in memory of which guests may have `limit`.
pub fn set_bound(limit: usize) -> usize {
    let bound = (limit / 4).clamp(LEAST, MOST);
    BOUND.store(bound / PAGE, Ordering::Relaxed);
    bound
}

/// Sees to it that `more` pages of host files find room, for who holds [`Mapped::busy`] of `own`: pages that are as their files have
/// them go, those that nobody maps first.
fn make_room(own: &Mapped, more: usize) {
    let bound = BOUND.load(Ordering::Relaxed);
    if KNOWN.fetch_add(more, Ordering::Relaxed) + more <= bound {
        return;
    }
    let files: Vec<_> = FILES.lock().values().cloned().collect();
    let mut pages = files.iter().map(|file| file.object.pages()).sum::<usize>() + more;
    // Some more than must be, as it takes a look at all files.
    let (enough, mut excess) = (bound - bound / 8, pages > bound);
    for mapped in [false, true] {
        for file in files.iter().filter(|file| file.is_mapped() == mapped) {
            excess &= pages > enough;
            let is_own = core::ptr::eq(&**file, own);
            // Who is busy with another file may wait for this one.
            let busy = if is_own || !excess { None } else { file.busy.try_lock() };
            if excess && (is_own || busy.is_some()) && file.write_back_held().is_ok() {
                pages -= file.object.forget_clean(pages - enough).min(pages);
            }
        }
    }
    KNOWN.store(pages, Ordering::Relaxed);
}

impl Fill for Mapped {
    fn fill(&self, page: u64) -> Result<()> {
        let _busy = self.busy.lock();
        if self.object.resident(page) {
            return Ok(());
        }
        make_room(self, GROUP as usize);
        let first = page & !(GROUP - 1);
        let mut bytes = vec![0; GROUP as usize * PAGE];
        let len = LinuxHost.read(self.fd(), &mut bytes, Some(first * PAGE as u64))?;
        for (number, part) in (first..).zip(bytes[..len].chunks(PAGE)) {
            if !self.object.resident(number) {
                self.object.write(number * PAGE as u64, part).map_err(|_| Errno::ENOMEM)?;
            }
        }
        if self.object.resident(page) { Ok(()) } else { Err(Errno::EIO) }
    }
}

impl Mapped {
    fn fd(&self) -> HostFd {
        self.source.lock().fd
    }

    /// Somebody maps it anew, by this descriptor.
    fn renew(&self, file: &Arc<dyn MemoryObject>, from: &OwnedFd) -> Result<()> {
        let _busy = self.busy.lock();
        if !self.source.lock().writable {
            // What its mappings store could not be written by the one that is there.
            let next = Source::new(file, from.fd());
            let before = next.writable.then(|| core::mem::replace(&mut *self.source.lock(), next));
            drop(before);
        }
        self.follow_size().map(|_| ())
    }

    /// Writes to the file what shared mappings have stored. What the host refuses stays noted, and its error is returned.
    fn write_back(&self) -> Result<()> {
        if !self.shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _busy = self.busy.lock();
        self.write_back_held()
    }

    /// The same, for who holds [`Mapped::busy`].
    fn write_back_held(&self) -> Result<()> {
        if !self.shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut page = vec![0; PAGE];
        let mut runs: Vec<Range<u64>> = Vec::new();
        self.object.take_stored(&mut |run| runs.push(run));
        let mut result = Ok(());
        for number in runs.into_iter().flatten() {
            if let Err(error) = self.write_page(number, &mut page) {
                self.object.note_store(number);
                result = Err(error);
            }
        }
        result
    }

    fn write_page(&self, number: u64, page: &mut [u8]) -> Result<()> {
        let at = number * PAGE as u64;
        let len = self.object.read(at, page);
        let mut done = 0;
        while done < len {
            match LinuxHost.write(self.fd(), &page[done..len], Some(at + done as u64))? {
                0 => return Err(Errno::EIO),
                more => done += more,
            }
        }
        Ok(())
    }

    /// The object is as long as the file; for who holds [`Mapped::busy`].
    fn follow_size(&self) -> Result<u64> {
        let size = LinuxHost.stat(self.fd())?.size;
        if size != self.object.size() {
            self.object.truncate(size)?;
        }
        Ok(size)
    }

    /// Reads the file. What shared mappings have stored, and has not been written yet, is read from them.
    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize> {
        let _busy = self.busy.lock();
        let at = match offset {
            Some(at) => at,
            None => LinuxHost.lseek(fd, 0, SEEK_CUR)?,
        };
        let len = LinuxHost.read(fd, out, offset)?;
        self.each_page(at, len, |at, range| {
            // A page that nobody has stored into may be older than the file, which others change outside.
            if self.object.is_stored(at / PAGE as u64) {
                self.object.read(at, &mut out[range]);
            }
        });
        Ok(len)
    }

    /// Writes to the file, and to those of its pages that are in memory.
    fn write(&self, fd: HostFd, data: &[u8], offset: Option<u64>) -> Result<usize> {
        let _busy = self.busy.lock();
        // A page that is stored into and written to is one in memory: it goes there first.
        self.write_back_held()?;
        let done = LinuxHost.write(fd, data, offset)?;
        let at = match offset {
            // Both know where it went by where the next one would go.
            None | Some(END) => LinuxHost.lseek(fd, 0, SEEK_CUR)?.saturating_sub(done as u64),
            Some(at) => at,
        };
        self.follow_size()?;
        self.each_page(at, done, |at, range| {
            if self.object.resident(at / PAGE as u64) {
                let _ = self.object.write(at, &data[range]);
            }
        });
        Ok(done)
    }

    /// Calls `each(at, range)` for the pieces by pages of `len` bytes from `at` on; the range counts from `at`.
    fn each_page(&self, at: u64, len: usize, mut each: impl FnMut(u64, Range<usize>)) {
        let mut done = 0;
        while done < len {
            let from = at + done as u64;
            let part = (PAGE - from as usize % PAGE).min(len - done);
            each(from, done..done + part);
            done += part;
        }
    }

    fn truncate(&self, fd: HostFd, len: u64) -> Result<()> {
        let _busy = self.busy.lock();
        self.write_back_held()?;
        LinuxHost.truncate(fd, len)?;
        self.object.truncate(len)
    }

    fn fallocate(&self, fd: HostFd, mode: u32, offset: u64, len: u64) -> Result<()> {
        let _busy = self.busy.lock();
        self.write_back_held()?;
        LinuxHost.fallocate(fd, mode, offset, len)?;
        // The pages of what has changed are as the file has them: they come again from there.
        let first = offset & !(PAGE as u64 - 1);
        if mode & (falloc::COLLAPSE_RANGE | falloc::INSERT_RANGE) != 0 {
            // All behind it has moved.
            const BEYOND_ALL_FILES: u64 = 1 << 63;
            self.object.punch(first, BEYOND_ALL_FILES.saturating_sub(first));
        } else if mode & (falloc::PUNCH_HOLE | falloc::ZERO_RANGE) != 0 {
            let end = offset.saturating_add(len).checked_next_multiple_of(PAGE as u64).unwrap_or(u64::MAX);
            self.object.punch(first, end - first);
        }
        self.follow_size().map(|_| ())
    }

    fn is_mapped(&self) -> bool {
        Arc::strong_count(&self.object) > 1
    }

    fn set_unshared(&self) {
        if self.shared.swap(false, Ordering::Relaxed) {
            SHARED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.set_unshared();
    }
}

/// What represents a file of the host's. The host's errors.
pub fn object(file: &Arc<dyn MemoryObject>, from: &OwnedFd, shared: bool) -> Result<Memory> {
    let stat = LinuxHost.stat(from.fd())?;
    let key = (stat.dev, stat.ino);
    // With its object, which it keeps as long as somebody has that.
    let known = |files: &BTreeMap<Key, Arc<Mapped>>| {
        let known = files.get(&key)?;
        let stores = known.shared.load(Ordering::Relaxed);
        let fits = stores || !shared && (known.size, known.mtime) == (stat.size, stat.mtime);
        fits.then(|| (known.clone(), known.object.clone()))
    };
    let found = known(&FILES.lock());
    if let Some((known, object)) = found {
        if known.shared.load(Ordering::Relaxed) {
            known.renew(file, from)?;
        }
        return Ok(object);
    }
    forget_unused();
    let object = Object::new(&MEMORY, stat.size);
    let made = Arc::new(Mapped {
        object: object.clone(),
        source: Mutex::new(Source::new(file, from.fd())),
        size: stat.size,
        mtime: stat.mtime,
        shared: AtomicBool::new(shared),
        busy: Mutex::new(()),
    });
    let fill: Arc<dyn Fill> = made.clone();
    let fill: Weak<dyn Fill> = Arc::downgrade(&fill);
    object.set_fill(fill);
    let mut files = FILES.lock();
    if let Some((known, object)) = known(&files) {
        // Somebody else was first.
        drop(files);
        known.renew(file, from)?;
        return Ok(object);
    }
    SHARED.fetch_add(usize::from(shared), Ordering::Relaxed);
    // One whose mappings store fits always: there is nothing to be written of the old one.
    if let Some(old) = files.insert(key, made)
        && old.is_mapped()
    {
        files.insert((u64::MAX, Arc::as_ptr(&old) as usize as u64), old);
    }
    Ok(object)
}

/// Lets files go that nobody maps, when there are many. What cannot be written stays, until it can.
fn forget_unused() {
    if FILES.lock().len() >= KEPT {
        forget(|_| true);
    }
}

/// Lets the files go that nobody maps, and that have no name any more: they would keep room on the host's disk.
pub fn forget_nameless() {
    forget(|file| LinuxHost.stat(file.fd()).is_ok_and(|stat| stat.nlink == 0));
}

fn forget(goes: impl Fn(&Mapped) -> bool) {
    let unused: Vec<(Key, Arc<Mapped>)> = {
        let files = FILES.lock();
        files.iter().filter(|(_, file)| !file.is_mapped()).map(|(key, file)| (*key, file.clone())).collect()
    };
    for (key, file) in unused.into_iter().filter(|(_, file)| goes(file)) {
        let _ = file.write_back();
        let mut files = FILES.lock();
        let is_there = files.get(&key).is_some_and(|known| Arc::ptr_eq(known, &file));
        if is_there && !file.is_mapped() && !file.object.has_stored() {
            files.remove(&key);
        }
    }
}

/// What shared mappings have stored reaches its files. The last error, if some could not be written.
pub fn write_back() -> Result<()> {
    if SHARED.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let files: Vec<_> = FILES.lock().values().cloned().collect();
    let mut result = Ok(());
    for file in files {
        // All of them, whatever one of them meets.
        result = file.write_back().and(result);
    }
    // With the list locked nobody maps one meanwhile. What comes next of it must find the file as it was when this was made, and makes another otherwise.
    for file in FILES.lock().values().filter(|file| !file.is_mapped() && !file.object.has_stored()) {
        file.set_unshared();
    }
    result
}

/// The file behind a descriptor, if it is mapped, or was.
fn mapped(fd: HostFd) -> Option<Arc<Mapped>> {
    let stat = LinuxHost.stat(fd).ok()?;
    FILES.lock().get(&(stat.dev, stat.ino)).cloned()
}

/// The same, if mappings may have stored into it.
fn shared(fd: HostFd) -> Option<Arc<Mapped>> {
    let known = if SHARED.load(Ordering::Relaxed) > 0 { mapped(fd) } else { None };
    known.filter(|file| file.shared.load(Ordering::Relaxed))
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
        match shared(fd) {
            Some(file) => file.read(fd, out, offset),
            None => LinuxHost.read(fd, out, offset),
        }
    }

    fn write(&self, fd: HostFd, data: &[u8], offset: Option<u64>) -> Result<usize> {
        match mapped(fd) {
            Some(file) => file.write(fd, data, offset),
            None => LinuxHost.write(fd, data, offset),
        }
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
        match mapped(fd) {
            Some(file) => file.truncate(fd, len),
            None => LinuxHost.truncate(fd, len),
        }
    }

    fn fallocate(&self, fd: HostFd, mode: u32, offset: u64, len: u64) -> Result<()> {
        match mapped(fd) {
            Some(file) => file.fallocate(fd, mode, offset, len),
            None => LinuxHost.fallocate(fd, mode, offset, len),
        }
    }

    fn fsync(&self, fd: HostFd, data_only: bool) -> Result<()> {
        if let Some(file) = shared(fd) {
            file.write_back()?;
        }
        LinuxHost.fsync(fd, data_only)
    }

    fn sync_fs(&self, fd: HostFd) -> Result<()> {
        write_back()?;
        LinuxHost.sync_fs(fd)
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
    fn getxattr_at(&self, dir: HostFd, path: &[u8], name: &[u8], out: &mut [u8]) -> Result<usize> {
        LinuxHost.getxattr_at(dir, path, name, out)
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
