//! A machine for tests: the test process' own clock and, where asked for, its host files.
#![allow(dead_code, reason = "each test uses its part")]

pub mod tree;

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Weak};

use janua_abi::linux::{Errno, Result};
use janua_object::vfs::access::Who;
use janua_object::vfs::{FileSystem, MountFlags, Path, Resolve, Start, Vfs, Walk};
use janua_object::{Caller, Cred};
use janua_port::guest::Guest;
use janua_port::host::{HostReady, HostStat};
use janua_port::machine::{Isa, Memory, NewSpace, Outside, SpawnKind};
use janua_port::{
    Clock, Console, Context, Fault, Fill, Host, HostFd, HostFiles, Machine, MemoryObject, Nanos, OwnedFd, Park, Space,
    UserMemory,
};

pub struct TestMachine {
    host: Option<TestHost>,
    /// Bytes.
    memory: u64,
}

/// A machine without a host.
pub fn bare() -> &'static TestMachine {
    Box::leak(Box::new(TestMachine { host: None, memory: 0 }))
}

/// A machine on this host.
pub fn hosted() -> &'static TestMachine {
    Box::leak(Box::new(TestMachine { host: Some(TestHost), memory: 0 }))
}

/// A machine on this host that believes to have so many bytes of memory.
pub fn small(memory: u64) -> &'static TestMachine {
    Box::leak(Box::new(TestMachine { host: Some(TestHost), memory }))
}

macro_rules! call {
    ($e:expr) => {
        // SAFETY: every pointer comes from a buffer or string that lives across the call.
        answer(unsafe { $e } as libc::c_long)
    };
}

thread_local! {
    /// The host's chmod fails, for the tests of this thread.
    pub static REFUSES_CHMOD: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// Who brings the pages of memory objects, where a test has this machine ask for that.
    pub static FILLS: RefCell<Option<Vec<Weak<dyn Fill>>>> = const { RefCell::new(None) };
    /// Pages that a mapping has stored into, for such a machine to report.
    pub static STORED: RefCell<Vec<Range<u64>>> = const { RefCell::new(Vec::new()) };
}

/// A caller with the given credentials.
pub struct TestCaller {
    pub machine: &'static TestMachine,
    pub cred: Arc<Cred>,
    /// What it returns when it is asked whether it is killed from then on.
    pub killed: bool,
}

pub fn root(machine: &'static TestMachine) -> TestCaller {
    TestCaller { machine, cred: Arc::new(Cred::of_user(0, 0, Vec::new())), killed: false }
}

/// A caller for files to which it does not matter who reads or writes them.
pub fn anybody() -> TestCaller {
    root(bare())
}

pub fn user(machine: &'static TestMachine, uid: u32) -> TestCaller {
    TestCaller { machine, cred: Arc::new(Cred::of_user(uid, uid, Vec::new())), killed: false }
}

/// A name space with `fs` as its root.
pub fn space(machine: &'static TestMachine, fs: impl FnOnce(&Vfs) -> Arc<dyn FileSystem>) -> (Vfs, Path) {
    let vfs = Vfs::new(machine);
    let mount = vfs.new_mount(fs(&vfs), b"test", MountFlags::RELATIME);
    vfs.set_root(&mount);
    let root = Path::of_mount(&mount);
    (vfs, root)
}

pub fn find(vfs: &Vfs, who: &TestCaller, root: &Path, path: &str) -> Result<Path> {
    find_from(vfs, who, root, root, path, Resolve::empty())
}

pub fn find_from(vfs: &Vfs, who: &TestCaller, root: &Path, base: &Path, path: &str, resolve: Resolve) -> Result<Path> {
    let start = Start { root: root.clone(), base: base.clone() };
    Walk::new(vfs, who, &start, resolve).whole(path.as_bytes(), true)
}

impl TestCaller {
    pub fn who(&self) -> Who<'_> {
        Who { caller: self, cred: &self.cred }
    }
}

impl Caller for TestCaller {
    fn machine(&self) -> &'static dyn Machine {
        self.machine
    }
    fn user(&self) -> &dyn UserMemory {
        self.machine
    }
    fn cred(&self) -> Arc<Cred> {
        self.cred.clone()
    }
    fn pid(&self) -> u32 {
        1
    }
    fn tid(&self) -> u32 {
        1
    }
    fn pgrp(&self) -> u32 {
        1
    }
    fn session(&self) -> u32 {
        1
    }
    fn signal_group(&self, _pgrp: u32, _signal: u32) -> bool {
        false
    }
    fn job_signal_ignored(&self, _signal: u32) -> bool {
        true
    }
    fn session_of_group(&self, _pgrp: u32) -> Option<u32> {
        None
    }
    fn terminal(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
    fn set_terminal(&self, _terminal: Option<Arc<dyn Any + Send + Sync>>) {}
    fn is_session_leader(&self) -> bool {
        false
    }
    fn limit(&self, _resource: u32) -> u64 {
        u64::MAX
    }
    fn is_killed(&self) -> bool {
        self.killed
    }
}

fn clock(id: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Clock for TestMachine {
    fn monotonic(&self) -> Nanos {
        clock(libc::CLOCK_MONOTONIC)
    }
    fn realtime(&self) -> Nanos {
        clock(libc::CLOCK_REALTIME)
    }
}

impl Console for TestMachine {
    fn write(&self, bytes: &[u8]) {
        eprint!("{}", String::from_utf8_lossy(bytes));
    }
}

impl Park for TestMachine {
    fn park(&self, _word: &AtomicU32, _expected: u32, _deadline: Option<Nanos>) {
        std::thread::yield_now();
    }
    fn unpark(&self, _word: &AtomicU32, _count: u32) {}
    fn yield_now(&self) {
        std::thread::yield_now();
    }
}

/// There are no guests, so there is no user memory.
impl UserMemory for TestMachine {
    fn is_user(&self, _addr: usize, _len: usize) -> bool {
        false
    }
    fn copy_in_partial(&self, _dst: &mut [u8], _src: usize) -> usize {
        0
    }
    fn copy_out_partial(&self, _dst: usize, _src: &[u8]) -> usize {
        0
    }
    fn load_u32(&self, _addr: usize) -> std::result::Result<u32, Fault> {
        Err(Fault)
    }
    fn cmpxchg_u32(&self, _addr: usize, _old: u32, _new: u32) -> std::result::Result<u32, Fault> {
        Err(Fault)
    }
}

impl Machine for TestMachine {
    fn clock(&self) -> &dyn Clock {
        self
    }
    fn console(&self) -> &dyn Console {
        self
    }
    fn park(&self) -> &dyn Park {
        self
    }
    fn host(&self) -> Option<&dyn Host> {
        self.host.as_ref().map(|host| host as &dyn Host)
    }
    fn memory_object(&self, label: &str) -> Result<Arc<dyn MemoryObject>> {
        if self.host.is_none() {
            return Err(Errno::ENODEV);
        }
        let text = name(label.as_bytes());
        let fd = call!(libc::memfd_create(text.as_ptr(), libc::MFD_CLOEXEC))?;
        Ok(Arc::new(TestObject(OwnedFd::new(&TestHost, HostFd(fd as i32)))))
    }
    fn wake_service(&self) {}
    fn spawn_first(&self, _guest: Arc<dyn Guest>) -> Result<(Arc<dyn Context>, Arc<dyn Space>)> {
        Err(Errno::ENOSYS)
    }
    fn spawn_kernel(&self, _name: &'static str, _body: Box<dyn FnOnce() + Send>) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn space_for(&self, _kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<NewSpace> {
        Ok(NewSpace::Whole(parent.clone()))
    }
    fn isa(&self) -> Isa {
        Isa::default()
    }
    fn cpus(&self) -> usize {
        1
    }
    fn cpu(&self) -> usize {
        0
    }
    fn memory(&self) -> Memory {
        Memory { total: self.memory, ..Memory::default() }
    }
    fn random(&self, out: &mut [u8]) {
        out.fill(4);
    }
    fn notify_outside(&self, event: Outside) {
        if let Outside::Over(code) = event {
            std::process::exit(i32::from(code))
        }
    }
}

/// An anonymous file of the host's, with the hook where a test asks for it.
struct TestObject(Arc<OwnedFd>);

impl MemoryObject for TestObject {
    fn read(&self, at: u64, out: &mut [u8]) -> Result<usize> {
        self.0.read(at, out)
    }
    fn write(&self, at: u64, data: &[u8]) -> Result<usize> {
        self.0.write(at, data)
    }
    fn truncate(&self, size: u64) -> Result<()> {
        self.0.truncate(size)
    }
    fn allocate(&self, mode: u32, at: u64, len: u64) -> Result<()> {
        self.0.allocate(mode, at, len)
    }
    fn seek(&self, at: u64, hole: bool) -> Result<u64> {
        self.0.seek(at, hole)
    }
    fn resident(&self) -> u64 {
        self.0.resident()
    }
    fn set_fill(&self, fill: Weak<dyn Fill>) -> Result<()> {
        FILLS.with_borrow_mut(|fills| {
            fills.as_mut().ok_or(Errno::ENOSYS)?.push(fill);
            Ok(())
        })
    }
    fn take_stored(&self, each: &mut dyn FnMut(Range<u64>)) -> Result<()> {
        STORED.take().into_iter().for_each(each);
        Ok(())
    }
    fn host_file(&self) -> Option<&OwnedFd> {
        Some(&self.0)
    }
}

/// The host's files by the C library.
pub struct TestHost;

thread_local! {
    /// What somebody else makes of the name of a directory or special file as soon as the calling thread has made it.
    pub static TAKEN: RefCell<Option<fn(HostFd, &CStr)>> = const { RefCell::new(None) };
}

thread_local! {
    /// Inode numbers of the files that have been written back, or by which their file systems have been.
    pub static SYNCED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn taken(dir: HostFd, name: &CStr) {
    if let Some(take) = TAKEN.with_borrow(|take| *take) {
        take(dir, name);
    }
}

fn answer(result: libc::c_long) -> Result<usize> {
    if result < 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(5);
        return Err(Errno::from_raw(-(errno as isize)).expect_err("negative is an error"));
    }
    Ok(result as usize)
}

fn name(path: &[u8]) -> CString {
    CString::new(path).expect("no NUL in names")
}

/// Directory and name, an empty name being the descriptor itself by its /proc name.
fn place(dir: HostFd, path: &[u8]) -> (i32, CString) {
    if path.is_empty() { (libc::AT_FDCWD, name(format!("/proc/self/fd/{}", dir.0).as_bytes())) } else { (dir.0, name(path)) }
}

fn time(nanos: Option<i64>) -> libc::timespec {
    match nanos {
        Some(nanos) => libc::timespec { tv_sec: nanos.div_euclid(1_000_000_000), tv_nsec: nanos.rem_euclid(1_000_000_000) },
        None => libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT },
    }
}

impl Host for TestHost {
    fn close(&self, fd: HostFd) {
        let _ = call!(libc::close(fd.0));
    }
    fn flags(&self, fd: HostFd) -> Result<u32> {
        call!(libc::fcntl(fd.0, libc::F_GETFL)).map(|flags| flags as u32)
    }
    fn stat(&self, fd: HostFd) -> Result<HostStat> {
        self.stat_at(fd, b"")
    }
    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize> {
        match offset {
            Some(at) => call!(libc::pread(fd.0, out.as_mut_ptr().cast(), out.len(), at as i64)),
            None => call!(libc::read(fd.0, out.as_mut_ptr().cast(), out.len())),
        }
    }
    fn write(&self, fd: HostFd, data: &[u8], offset: Option<u64>) -> Result<usize> {
        match offset {
            Some(janua_port::host::END) => {
                let range = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
                call!(libc::pwritev2(fd.0, &raw const range, 1, -1, libc::RWF_APPEND))
            }
            Some(at) => call!(libc::pwrite(fd.0, data.as_ptr().cast(), data.len(), at as i64)),
            None => call!(libc::write(fd.0, data.as_ptr().cast(), data.len())),
        }
    }
    fn ioctl(&self, _fd: HostFd, _request: u32, _arg: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOTTY)
    }
    fn ioctl_word(&self, _fd: HostFd, _request: u32, _arg: usize) -> Result<usize> {
        Err(Errno::ENOTTY)
    }
    fn poll(&self, _fd: HostFd, interest: u32) -> u32 {
        interest
    }
    fn watch(&self, _fd: HostFd, _target: Arc<dyn HostReady>) -> Result<()> {
        Err(Errno::EPERM)
    }
    fn unwatch(&self, _fd: HostFd) {}
    fn files(&self) -> Option<&dyn HostFiles> {
        Some(self)
    }
}

impl HostFiles for TestHost {
    fn open(&self, dir: HostFd, path: &[u8], flags: u32, mode: u32, resolve: u64) -> Result<HostFd> {
        let (at, text) = place(dir, path);
        let creates = flags & (0o100 | 0o20000000) != 0;
        let how = [
            u64::from(flags) | libc::O_CLOEXEC as u64,
            if creates { u64::from(mode) } else { 0 },
            if path.is_empty() { 0 } else { resolve },
        ];
        call!(libc::syscall(libc::SYS_openat2, at, text.as_ptr(), how.as_ptr(), 24usize)).map(|fd| HostFd(fd as i32))
    }
    fn stat_at(&self, dir: HostFd, path: &[u8]) -> Result<HostStat> {
        // SAFETY: all zeroes is a valid stat.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        let text = name(path);
        let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
        call!(libc::fstatat(dir.0, text.as_ptr(), &raw mut stat, flags))?;
        let nanos = |sec: i64, nsec: i64| sec * 1_000_000_000 + nsec;
        Ok(HostStat {
            dev: stat.st_dev,
            ino: stat.st_ino,
            mode: stat.st_mode,
            nlink: stat.st_nlink,
            uid: stat.st_uid,
            gid: stat.st_gid,
            rdev: stat.st_rdev,
            size: stat.st_size as u64,
            blksize: stat.st_blksize as u32,
            blocks: stat.st_blocks as u64,
            atime: nanos(stat.st_atime, stat.st_atime_nsec),
            mtime: nanos(stat.st_mtime, stat.st_mtime_nsec),
            ctime: nanos(stat.st_ctime, stat.st_ctime_nsec),
            btime: {
                // SAFETY: all zeroes is a valid statx.
                let mut more: libc::statx = unsafe { std::mem::zeroed() };
                call!(libc::statx(dir.0, text.as_ptr(), flags, libc::STATX_BTIME, &raw mut more))?;
                nanos(more.stx_btime.tv_sec, more.stx_btime.tv_nsec.into())
            },
        })
    }
    fn statfs(&self, fd: HostFd) -> Result<[u64; 15]> {
        let mut words = [0; 15];
        call!(libc::syscall(libc::SYS_fstatfs, fd.0, words.as_mut_ptr()))?;
        Ok(words)
    }
    fn readlink(&self, dir: HostFd, path: &[u8], out: &mut [u8]) -> Result<usize> {
        let text = name(path);
        call!(libc::readlinkat(dir.0, text.as_ptr(), out.as_mut_ptr().cast(), out.len()))
    }
    fn getdents(&self, fd: HostFd, out: &mut [u8]) -> Result<usize> {
        call!(libc::syscall(libc::SYS_getdents64, fd.0, out.as_mut_ptr(), out.len()))
    }
    fn lseek(&self, fd: HostFd, offset: i64, whence: u32) -> Result<u64> {
        call!(libc::lseek(fd.0, offset, whence as i32)).map(|at| at as u64)
    }
    fn read_user(&self, _fd: HostFd, _addr: usize, _len: usize, _offset: Option<u64>) -> Result<usize> {
        Err(Errno::EFAULT)
    }
    fn write_user(&self, _fd: HostFd, _addr: usize, _len: usize, _offset: Option<u64>) -> Result<usize> {
        Err(Errno::EFAULT)
    }
    fn truncate(&self, fd: HostFd, len: u64) -> Result<()> {
        call!(libc::ftruncate(fd.0, len as i64)).map(|_| ())
    }
    fn fallocate(&self, fd: HostFd, mode: u32, offset: u64, len: u64) -> Result<()> {
        call!(libc::fallocate(fd.0, mode as i32, offset as i64, len as i64)).map(|_| ())
    }
    fn fsync(&self, fd: HostFd, _data_only: bool) -> Result<()> {
        let stat = self.stat(fd)?;
        SYNCED.with_borrow_mut(|synced| synced.push(stat.ino));
        call!(libc::fsync(fd.0)).map(|_| ())
    }
    fn sync_fs(&self, fd: HostFd) -> Result<()> {
        // Noted and not done: it would write back all of the machine's.
        let stat = self.stat(fd)?;
        SYNCED.with_borrow_mut(|synced| synced.push(stat.ino));
        Ok(())
    }
    fn mkdir(&self, dir: HostFd, path: &[u8], mode: u32) -> Result<()> {
        let text = name(path);
        call!(libc::mkdirat(dir.0, text.as_ptr(), mode)).map(|_| taken(dir, &text))
    }
    fn mknod(&self, dir: HostFd, path: &[u8], mode: u32, dev: u64) -> Result<()> {
        let text = name(path);
        call!(libc::mknodat(dir.0, text.as_ptr(), mode, dev)).map(|_| taken(dir, &text))
    }
    fn unlink(&self, dir: HostFd, path: &[u8], is_dir: bool) -> Result<()> {
        let text = name(path);
        call!(libc::unlinkat(dir.0, text.as_ptr(), if is_dir { libc::AT_REMOVEDIR } else { 0 })).map(|_| ())
    }
    fn symlink(&self, target: &[u8], dir: HostFd, path: &[u8]) -> Result<()> {
        let (target, text) = (name(target), name(path));
        call!(libc::symlinkat(target.as_ptr(), dir.0, text.as_ptr())).map(|_| ())
    }
    fn link(&self, old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8]) -> Result<()> {
        let (old, new) = (name(old), name(new));
        call!(libc::linkat(old_dir.0, old.as_ptr(), new_dir.0, new.as_ptr(), 0)).map(|_| ())
    }
    fn rename(&self, old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8], flags: u32) -> Result<()> {
        let (old, new) = (name(old), name(new));
        call!(libc::syscall(libc::SYS_renameat2, old_dir.0, old.as_ptr(), new_dir.0, new.as_ptr(), flags)).map(|_| ())
    }
    fn chmod(&self, fd: HostFd, mode: u32) -> Result<()> {
        if REFUSES_CHMOD.get() {
            return Err(Errno::EIO);
        }
        let (at, text) = place(fd, b"");
        call!(libc::fchmodat(at, text.as_ptr(), mode, 0)).map(|_| ())
    }
    fn chown(&self, dir: HostFd, path: &[u8], uid: u32, gid: u32) -> Result<()> {
        let text = name(path);
        let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
        call!(libc::fchownat(dir.0, text.as_ptr(), uid, gid, flags)).map(|_| ())
    }
    fn utimens(&self, dir: HostFd, path: &[u8], atime: Option<i64>, mtime: Option<i64>) -> Result<()> {
        let (at, text) = place(dir, path);
        let times = [time(atime), time(mtime)];
        let flags = if path.is_empty() { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
        call!(libc::utimensat(at, text.as_ptr(), times.as_ptr(), flags)).map(|_| ())
    }
    fn getxattr(&self, fd: HostFd, attr: &[u8], out: &mut [u8]) -> Result<usize> {
        let text = name(attr);
        call!(libc::fgetxattr(fd.0, text.as_ptr(), out.as_mut_ptr().cast(), out.len()))
    }
    fn setxattr(&self, fd: HostFd, attr: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let text = name(attr);
        call!(libc::fsetxattr(fd.0, text.as_ptr(), value.as_ptr().cast(), value.len(), flags as i32)).map(|_| ())
    }
    fn listxattr(&self, fd: HostFd, out: &mut [u8]) -> Result<usize> {
        call!(libc::flistxattr(fd.0, out.as_mut_ptr().cast(), out.len()))
    }
    fn removexattr(&self, fd: HostFd, attr: &[u8]) -> Result<()> {
        let text = name(attr);
        call!(libc::fremovexattr(fd.0, text.as_ptr())).map(|_| ())
    }
}
