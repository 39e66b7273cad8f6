//! The host's files and sockets.

use alloc::sync::Arc;
use core::mem::MaybeUninit;

use janua_abi::linux::fcntl::open::{O_CLOEXEC, O_CREAT, O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_PATH, O_TMPFILE};
use janua_abi::linux::fcntl::{F_GETFL, PATH_MAX, rwf};
use janua_abi::linux::mman::{MFD_CLOEXEC, MFD_EXEC};
use janua_abi::linux::stat::{OpenHow, Statx, StatxTime, UTIME_OMIT, at, device};
use janua_abi::linux::time::TimeSpec;
use janua_abi::linux::{Errno, Result};
use janua_port::host::{END, HostReady, HostStat, SocketCall};
use janua_port::user::Window;
use janua_port::{Host, HostFd, HostFiles, HostSockets, OwnedFd, PAGE, UserMemory};

use crate::boot::{self, Jail};
use crate::sys::{self, Call, nr, raw, raw_retry, words};
use crate::user::HostedUser;
use crate::{copying, descriptors, machine, window};

/// The host the sandbox runs on.
pub struct LinuxHost;

/// Room for a path with its NUL, on the stack; what follows the NUL was never written. Filled where it is: moving it would copy
/// all of it.
struct CPath {
    bytes: [MaybeUninit<u8>; PATH_MAX],
}

impl CPath {
    fn room() -> CPath {
        CPath { bytes: [const { MaybeUninit::uninit() }; PATH_MAX] }
    }

    fn set(&mut self, path: &[u8]) -> Result<()> {
        if path.len() >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        if path.contains(&0) {
            return Err(Errno::EINVAL);
        }
        self.put(0, path);
        Ok(())
    }

    /// Writes text and a NUL after the first `at` bytes. Panics when they do not fit.
    fn put(&mut self, at: usize, text: &[u8]) {
        let place = &mut self.bytes[at..=at + text.len()];
        // SAFETY: the place has one byte more than the text.
        unsafe { place.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
        place[text.len()].write(0);
    }

    fn addr(&self) -> usize {
        self.bytes.as_ptr() as usize
    }
}

/// "self/fd/N", below /proc, by which a descriptor opened with O_PATH is opened, changed or named again.
fn proc_path(room: &mut CPath, fd: HostFd) {
    const DIRECTORY: &[u8] = b"self/fd/";
    let mut digits = [0; 10];
    let (mut rest, mut at) = (fd.0.unsigned_abs(), digits.len());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    room.put(0, DIRECTORY);
    room.put(DIRECTORY.len(), &digits[at..]);
}

/// The host's /proc.
pub fn proc() -> HostFd {
    HostFd(boot::info().proc)
}

fn fd_word(fd: HostFd) -> usize {
    fd.0 as isize as usize
}

/// Directory word of an *at call, with its path in `room`; an empty path means the descriptor, by its name under /proc.
fn place(room: &mut CPath, dir: HostFd, path: &[u8]) -> Result<usize> {
    if path.is_empty() {
        proc_path(room, dir);
        return Ok(fd_word(proc()));
    }
    room.set(path)?;
    Ok(fd_word(dir))
}

/// A time of statx(2), in nanoseconds.
fn nanos(time: StatxTime) -> i64 {
    time.sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nsec))
}

fn timespec(time: Option<i64>) -> TimeSpec {
    match time {
        Some(nanos) => TimeSpec { sec: nanos.div_euclid(1_000_000_000), nsec: nanos.rem_euclid(1_000_000_000) },
        None => TimeSpec { sec: 0, nsec: UTIME_OMIT },
    }
}

/// `struct iovec`.
#[repr(C)]
pub struct IoVec {
    pub base: usize,
    pub len: usize,
}

/// `struct msghdr`.
#[repr(C)]
pub struct MsgHdr {
    pub name: usize,
    pub name_len: u32,
    pub iov: usize,
    pub iov_len: usize,
    pub control: usize,
    pub control_len: usize,
    pub flags: u32,
}

/// Whether the user's memory at `addr` can be stored to. The host's own copies stop at a page that is executable at the moment
/// although it was asked to be writable as well; a store of ours, which changes nothing, makes it writable.
fn may_store(addr: usize) -> bool {
    let word = addr & !3;
    HostedUser.load_u32(word).and_then(|value| HostedUser.cmpxchg_u32(word, value, value)).is_ok()
}

/// statx(2); `name` is the address of a text of ours that a NUL ends.
fn statx(dir: HostFd, name: usize, flags: u32) -> Result<HostStat> {
    const BASIC_AND_BIRTH: usize = 0xfff;
    let mut room = MaybeUninit::<Statx>::uninit();
    let out = room.as_mut_ptr() as usize;
    // SAFETY: text and structure are ours.
    unsafe { raw(nr::STATX, [fd_word(dir), name, flags as usize, BASIC_AND_BIRTH, out, 0]) }?;
    // SAFETY: the host has filled all of it.
    let stat = unsafe { room.assume_init_ref() };
    Ok(HostStat {
        dev: device::number(stat.dev_major, stat.dev_minor),
        ino: stat.ino,
        mode: u32::from(stat.mode),
        nlink: u64::from(stat.nlink),
        uid: stat.uid,
        gid: stat.gid,
        rdev: device::number(stat.rdev_major, stat.rdev_minor),
        size: stat.size,
        blksize: stat.blksize,
        blocks: stat.blocks,
        atime: nanos(stat.atime),
        mtime: nanos(stat.mtime),
        ctime: nanos(stat.ctime),
        btime: nanos(stat.btime),
    })
}

impl Host for LinuxHost {
    fn close(&self, fd: HostFd) {
        machine::get().reactor.unwatch(fd.0);
        descriptors::closed(fd, || {
            let _ = words(nr::CLOSE, [fd_word(fd), 0, 0, 0, 0, 0]);
        });
    }

    fn flags(&self, fd: HostFd) -> Result<u32> {
        words(nr::FCNTL, [fd_word(fd), F_GETFL as usize, 0, 0, 0, 0]).map(|flags| flags as u32)
    }

    fn stat(&self, fd: HostFd) -> Result<HostStat> {
        statx(fd, c"".as_ptr().addr(), at::EMPTY_PATH)
    }

    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize> {
        transfer(nr::READ, nr::PREAD64, fd, out.as_mut_ptr() as usize, out.len(), offset)
    }

    fn write(&self, fd: HostFd, data: &[u8], offset: Option<u64>) -> Result<usize> {
        store(fd, data.as_ptr() as usize, data.len(), offset)
    }

    fn ioctl(&self, fd: HostFd, request: u32, arg: &mut [u8]) -> Result<usize> {
        // SAFETY: the caller gives a buffer of the size the request has.
        unsafe { raw(nr::IOCTL, [fd_word(fd), request as usize, arg.as_mut_ptr() as usize, 0, 0, 0]) }
    }

    fn ioctl_word(&self, fd: HostFd, request: u32, arg: usize) -> Result<usize> {
        words(nr::IOCTL, [fd_word(fd), request as usize, arg, 0, 0, 0])
    }

    fn poll(&self, fd: HostFd, interest: u32) -> u32 {
        #[repr(C)]
        struct PollFd {
            fd: i32,
            events: i16,
            revents: i16,
        }
        let mut poll = PollFd { fd: fd.0, events: interest as i16, revents: 0 };
        // SAFETY: one entry of ours; a timeout of zero does not wait.
        match unsafe { raw(nr::POLL, [&raw mut poll as usize, 1, 0, 0, 0, 0]) } {
            Ok(_) => u32::from(poll.revents as u16),
            Err(_) => 0,
        }
    }

    fn watch(&self, fd: HostFd, target: Arc<dyn HostReady>) -> Result<()> {
        machine::get().reactor.watch(fd.0, target)
    }

    fn unwatch(&self, fd: HostFd) {
        machine::get().reactor.unwatch(fd.0);
    }

    fn files(&self) -> Option<&dyn HostFiles> {
        Some(self)
    }

    fn sockets(&self) -> Option<&dyn HostSockets> {
        Some(self)
    }
}

impl HostFiles for LinuxHost {
    fn open(&self, dir: HostFd, path: &[u8], flags: u32, mode: u32, resolve: u64) -> Result<HostFd> {
        descriptors::charged(|| open(dir, path, flags, mode, resolve))
    }

    fn stat_at(&self, dir: HostFd, path: &[u8]) -> Result<HostStat> {
        let mut name_text = CPath::room();
        name_text.set(path)?;
        statx(dir, name_text.addr(), at::SYMLINK_NOFOLLOW | if path.is_empty() { at::EMPTY_PATH } else { 0 })
    }

    fn statfs(&self, fd: HostFd) -> Result<[u64; 15]> {
        let mut out = [0u64; 15];
        // SAFETY: struct statfs is 120 bytes on x86-64.
        unsafe { raw(nr::FSTATFS, [fd_word(fd), out.as_mut_ptr() as usize, 0, 0, 0, 0]) }?;
        Ok(out)
    }

    fn readlink(&self, dir: HostFd, path: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut name_text = CPath::room();
        name_text.set(path)?;
        // SAFETY: both buffers are ours.
        unsafe { raw(nr::READLINKAT, [fd_word(dir), name_text.addr(), out.as_mut_ptr() as usize, out.len(), 0, 0]) }
    }

    fn getdents(&self, fd: HostFd, out: &mut [u8]) -> Result<usize> {
        // SAFETY: the buffer is ours.
        unsafe { raw(nr::GETDENTS64, [fd_word(fd), out.as_mut_ptr() as usize, out.len(), 0, 0, 0]) }
    }

    fn lseek(&self, fd: HostFd, offset: i64, whence: u32) -> Result<u64> {
        words(nr::LSEEK, [fd_word(fd), offset as usize, whence as usize, 0, 0, 0]).map(|at| at as u64)
    }

    fn read_user(&self, fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize> {
        if !crate::user::is_user(addr, len) {
            return Err(Errno::EFAULT);
        }
        let (mut read, mut tried) = (0, None);
        loop {
            let at = offset.map(|offset| offset + read as u64);
            let result = transfer(nr::READ, nr::PREAD64, fd, addr + read, len - read, at);
            let stopped = match result {
                Ok(n) => {
                    read += n;
                    // A file's end is seldom on a border of pages of the buffer; a stream has given what it had.
                    n > 0 && read < len && (addr + read).is_multiple_of(PAGE) && offset.is_some() && boot::jail() == Jail::Pkey
                }
                Err(errno) => errno == Errno::EFAULT,
            };
            // At each place once: the host may have other reasons.
            if !stopped || tried.replace(read) == Some(read) || !may_store(addr + read) {
                return if read > 0 { Ok(read) } else { result };
            }
        }
    }

    fn reads_copy(&self, fd: HostFd) -> bool {
        copying::reads_copy(fd)
    }

    fn write_user(&self, fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize> {
        if !crate::user::is_user(addr, len) {
            return Err(Errno::EFAULT);
        }
        store(fd, addr, len, offset)
    }

    fn truncate(&self, fd: HostFd, len: u64) -> Result<()> {
        words(nr::FTRUNCATE, [fd_word(fd), len as usize, 0, 0, 0, 0]).map(|_| ())
    }

    fn fallocate(&self, fd: HostFd, mode: u32, offset: u64, len: u64) -> Result<()> {
        words(nr::FALLOCATE, [fd_word(fd), mode as usize, offset as usize, len as usize, 0, 0]).map(|_| ())
    }

    fn fsync(&self, fd: HostFd, data_only: bool) -> Result<()> {
        words(if data_only { nr::FDATASYNC } else { nr::FSYNC }, [fd_word(fd), 0, 0, 0, 0, 0]).map(|_| ())
    }

    fn sync_fs(&self, fd: HostFd) -> Result<()> {
        words(nr::SYNCFS, [fd_word(fd), 0, 0, 0, 0, 0]).map(|_| ())
    }

    fn mkdir(&self, dir: HostFd, path: &[u8], mode: u32) -> Result<()> {
        let mut name_text = CPath::room();
        name_text.set(path)?;
        // SAFETY: the path is ours.
        unsafe { raw(nr::MKDIRAT, [fd_word(dir), name_text.addr(), mode as usize, 0, 0, 0]) }.map(|_| ())
    }

    fn mknod(&self, dir: HostFd, path: &[u8], mode: u32, dev: u64) -> Result<()> {
        let mut name_text = CPath::room();
        name_text.set(path)?;
        // SAFETY: the path is ours.
        unsafe { raw(nr::MKNODAT, [fd_word(dir), name_text.addr(), mode as usize, dev as usize, 0, 0]) }.map(|_| ())
    }

    fn unlink(&self, dir: HostFd, path: &[u8], is_dir: bool) -> Result<()> {
        let mut name_text = CPath::room();
        name_text.set(path)?;
        let flags = if is_dir { at::REMOVEDIR } else { 0 };
        // SAFETY: the path is ours.
        unsafe { raw(nr::UNLINKAT, [fd_word(dir), name_text.addr(), flags as usize, 0, 0, 0]) }.map(|_| ())
    }

    fn symlink(&self, target: &[u8], dir: HostFd, path: &[u8]) -> Result<()> {
        let (mut target_text, mut name_text) = (CPath::room(), CPath::room());
        target_text.set(target)?;
        name_text.set(path)?;
        // SAFETY: the paths are ours.
        unsafe { raw(nr::SYMLINKAT, [target_text.addr(), fd_word(dir), name_text.addr(), 0, 0, 0]) }.map(|_| ())
    }

    fn link(&self, old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8]) -> Result<()> {
        let mut path_text = CPath::room();
        let from = place(&mut path_text, old_dir, old)?;
        let flags = if old.is_empty() { at::SYMLINK_FOLLOW } else { 0 };
        let mut name_text = CPath::room();
        name_text.set(new)?;
        // SAFETY: the paths are ours.
        unsafe { raw(nr::LINKAT, [from, path_text.addr(), fd_word(new_dir), name_text.addr(), flags as usize, 0]) }.map(|_| ())
    }

    fn rename(&self, old_dir: HostFd, old: &[u8], new_dir: HostFd, new: &[u8], flags: u32) -> Result<()> {
        let (mut from_text, mut to_text) = (CPath::room(), CPath::room());
        from_text.set(old)?;
        to_text.set(new)?;
        let args = [fd_word(old_dir), from_text.addr(), fd_word(new_dir), to_text.addr(), flags as usize, 0];
        // SAFETY: the paths are ours.
        unsafe { raw(nr::RENAMEAT2, args) }.map(|_| ())
    }

    fn chmod(&self, fd: HostFd, mode: u32) -> Result<()> {
        // A descriptor opened with O_PATH goes by its name.
        match words(nr::FCHMOD, [fd_word(fd), mode as usize, 0, 0, 0, 0]) {
            Err(Errno::EBADF) => {}
            other => return other.map(|_| ()),
        }
        let mut path_text = CPath::room();
        let dir = place(&mut path_text, fd, b"")?;
        // SAFETY: the path is ours.
        unsafe { raw(nr::FCHMODAT, [dir, path_text.addr(), mode as usize, 0, 0, 0]) }.map(|_| ())
    }

    fn chown(&self, dir: HostFd, path: &[u8], uid: u32, gid: u32) -> Result<()> {
        if path.is_empty() {
            // Without a walk of no names. A descriptor opened with O_PATH has to go the other way.
            match words(nr::FCHOWN, [fd_word(dir), uid as usize, gid as usize, 0, 0, 0]) {
                Err(Errno::EBADF) => {}
                answer => return answer.map(|_| ()),
            }
        }
        let mut name_text = CPath::room();
        name_text.set(path)?;
        let flags = at::SYMLINK_NOFOLLOW | if path.is_empty() { at::EMPTY_PATH } else { 0 };
        let args = [fd_word(dir), name_text.addr(), uid as usize, gid as usize, flags as usize, 0];
        // SAFETY: the path is ours.
        unsafe { raw(nr::FCHOWNAT, args) }.map(|_| ())
    }

    fn utimens(&self, dir: HostFd, path: &[u8], atime: Option<i64>, mtime: Option<i64>) -> Result<()> {
        let times = [timespec(atime), timespec(mtime)];
        if path.is_empty() {
            // As in `chown`.
            // SAFETY: the times are ours, and no name is a null pointer.
            match unsafe { raw(nr::UTIMENSAT, [fd_word(dir), 0, times.as_ptr() as usize, 0, 0, 0]) } {
                Err(Errno::EBADF) => {}
                answer => return answer.map(|_| ()),
            }
        }
        let mut name_text = CPath::room();
        name_text.set(path)?;
        let flags = at::SYMLINK_NOFOLLOW | if path.is_empty() { at::EMPTY_PATH } else { 0 };
        // SAFETY: path and times are ours.
        unsafe { raw(nr::UTIMENSAT, [fd_word(dir), name_text.addr(), times.as_ptr() as usize, flags as usize, 0, 0]) }
            .map(|_| ())
    }

    fn getxattr(&self, fd: HostFd, name: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut name_text = CPath::room();
        name_text.set(name)?;
        // SAFETY: name and buffer are ours.
        unsafe { raw(nr::FGETXATTR, [fd_word(fd), name_text.addr(), out.as_mut_ptr() as usize, out.len(), 0, 0]) }
    }

    fn getxattr_at(&self, dir: HostFd, path: &[u8], name: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut path_text = CPath::room();
        path_text.set(path)?;
        let mut name_text = CPath::room();
        name_text.set(name)?;
        let value = XattrArgs { value: out.as_mut_ptr() as u64, size: out.len() as u32, flags: 0 };
        let args = [
            fd_word(dir),
            path_text.addr(),
            at::SYMLINK_NOFOLLOW as usize,
            name_text.addr(),
            &raw const value as usize,
            size_of::<XattrArgs>(),
        ];
        // SAFETY: path, name, the structure and the buffer it describes are ours.
        unsafe { raw(nr::GETXATTRAT, args) }
    }

    fn setxattr(&self, fd: HostFd, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let mut name_text = CPath::room();
        name_text.set(name)?;
        let args = [fd_word(fd), name_text.addr(), value.as_ptr() as usize, value.len(), flags as usize, 0];
        // SAFETY: name and value are ours.
        unsafe { raw(nr::FSETXATTR, args) }.map(|_| ())
    }

    fn listxattr(&self, fd: HostFd, out: &mut [u8]) -> Result<usize> {
        // SAFETY: the buffer is ours.
        unsafe { raw(nr::FLISTXATTR, [fd_word(fd), out.as_mut_ptr() as usize, out.len(), 0, 0, 0]) }
    }

    fn removexattr(&self, fd: HostFd, name: &[u8]) -> Result<()> {
        let mut name_text = CPath::room();
        name_text.set(name)?;
        // SAFETY: the name is ours.
        unsafe { raw(nr::FREMOVEXATTR, [fd_word(fd), name_text.addr(), 0, 0, 0, 0]) }.map(|_| ())
    }

    fn window(&self, fd: HostFd, at: u64, len: usize) -> Result<Arc<dyn Window>> {
        window::open(fd, at, len)
    }
}

/// `struct xattr_args`.
#[repr(C)]
struct XattrArgs {
    value: u64,
    size: u32,
    flags: u32,
}

impl HostSockets for LinuxHost {
    fn socket_call(&self, call: SocketCall<'_>) -> Result<usize> {
        socket_call(call)
    }
}

/// A file below the host's /proc, to be read by the kernel.
pub fn open_proc(path: &[u8]) -> Result<HostFd> {
    descriptors::own(|| open(proc(), path, 0, 0, 0))
}

/// [`HostFiles::open`], as the host's number.
fn open(dir: HostFd, path: &[u8], flags: u32, mode: u32, resolve: u64) -> Result<usize> {
    let mut path_text = CPath::room();
    let dir = place(&mut path_text, dir, path)?;
    // One name, and no link, leads nowhere else: the host need not keep watch over the walk.
    let simple = flags & O_NOFOLLOW != 0 && path != b".." && !path.contains(&b'/');
    let how = OpenHow {
        flags: u64::from(flags | O_CLOEXEC | if flags & O_PATH == 0 { O_NOCTTY } else { 0 }),
        // openat2 refuses a mode where none is used.
        mode: if flags & (O_CREAT | O_TMPFILE & !O_DIRECTORY) != 0 { u64::from(mode) & 0o7777 } else { 0 },
        // The /proc name of a descriptor is a magic link and is outside any tree.
        resolve: if simple || dir == fd_word(proc()) { 0 } else { resolve },
    };
    let how = &raw const how as usize;
    // SAFETY: path and structure are ours.
    unsafe { raw_retry(nr::OPENAT2, [dir, path_text.addr(), how, size_of::<OpenHow>(), 0, 0]) }
}

/// An anonymous file of the host's, for which the caller pays.
pub fn memory_object(name: &str) -> Result<Arc<OwnedFd>> {
    descriptors::charged(|| memfd(name)).map(|fd| OwnedFd::new(&LinuxHost, fd))
}

/// memfd_create(2): executable, no seals of the host's; the host's number of it.
pub fn memfd(name: &str) -> Result<usize> {
    let mut name_text = CPath::room();
    name_text.set(name.as_bytes())?;
    // SAFETY: the name is ours.
    match unsafe { raw(nr::MEMFD_CREATE, [name_text.addr(), (MFD_CLOEXEC | MFD_EXEC) as usize, 0, 0, 0, 0]) } {
        // MFD_EXEC came with Linux 6.3; before it every memfd was executable.
        // SAFETY: as above.
        Err(Errno::EINVAL) => unsafe { raw(nr::MEMFD_CREATE, [name_text.addr(), MFD_CLOEXEC as usize, 0, 0, 0, 0]) },
        other => other,
    }
}

/// read, pread64, write or pwrite64 of a range that is ours or a guest's.
fn transfer(stream: Call, at: Call, fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize> {
    // SAFETY: a slice of the caller's, or guest memory, which holds no Rust object and where a fault is an error.
    unsafe {
        match offset {
            None => raw(stream, [fd_word(fd), addr, len, 0, 0, 0]),
            // A guest never sees EINTR from a read or write at an offset: a kick that met a slow file system is no event of the guest's.
            Some(offset) => raw_retry(at, [fd_word(fd), addr, len, offset as usize, 0, 0]),
        }
    }
}

/// [`transfer`] of a write, which may go to the end of the file.
fn store(fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize> {
    /// Both halves of an offset of -1.
    const OWN_POSITION: usize = usize::MAX;
    if offset != Some(END) {
        return transfer(nr::WRITE, nr::PWRITE64, fd, addr, len, offset);
    }
    let range = [addr, len];
    // SAFETY: as in `transfer`; the range is ours.
    unsafe {
        raw_retry(nr::PWRITEV2, [fd_word(fd), range.as_ptr() as usize, 1, OWN_POSITION, OWN_POSITION, rwf::APPEND as usize])
    }
}

fn named(call: Call, fd: HostFd, addr: &mut [u8], addr_len: &mut usize, flags: usize) -> Result<usize> {
    let mut len = addr.len() as u32;
    // SAFETY: buffer and length are ours.
    let result = unsafe { sys::raw(call, [fd_word(fd), addr.as_mut_ptr() as usize, &raw mut len as usize, flags, 0, 0]) }?;
    *addr_len = len as usize;
    Ok(result)
}

fn socket_call(call: SocketCall<'_>) -> Result<usize> {
    const SOCK_CLOEXEC_NONBLOCK: usize = 0o2000000 | 0o4000;
    match call {
        SocketCall::Socket { domain, kind, protocol } => {
            let args = [domain as usize, kind as usize | SOCK_CLOEXEC_NONBLOCK, protocol as usize, 0, 0, 0];
            descriptors::charged(|| words(nr::SOCKET, args)).map(|fd| fd.0 as usize)
        }
        // SAFETY: the address is the caller's slice.
        SocketCall::Bind { fd, addr } => unsafe { raw(nr::BIND, [fd_word(fd), addr.as_ptr() as usize, addr.len(), 0, 0, 0]) },
        // SAFETY: as above.
        SocketCall::Connect { fd, addr } => unsafe {
            raw(nr::CONNECT, [fd_word(fd), addr.as_ptr() as usize, addr.len(), 0, 0, 0])
        },
        SocketCall::Listen { fd, backlog } => words(nr::LISTEN, [fd_word(fd), backlog as usize, 0, 0, 0, 0]),
        SocketCall::Accept { fd, addr, addr_len } => {
            descriptors::charged(|| named(nr::ACCEPT4, fd, addr, addr_len, SOCK_CLOEXEC_NONBLOCK)).map(|fd| fd.0 as usize)
        }
        SocketCall::Getsockname { fd, addr, addr_len } => named(nr::GETSOCKNAME, fd, addr, addr_len, 0),
        SocketCall::Getpeername { fd, addr, addr_len } => named(nr::GETPEERNAME, fd, addr, addr_len, 0),
        SocketCall::Send { fd, data, flags, addr, control } => {
            let iov = IoVec { base: data.as_ptr() as usize, len: data.len() };
            let header = MsgHdr {
                name: if addr.is_empty() { 0 } else { addr.as_ptr() as usize },
                name_len: addr.len() as u32,
                iov: &raw const iov as usize,
                iov_len: 1,
                control: if control.is_empty() { 0 } else { control.as_ptr() as usize },
                control_len: control.len(),
                flags: 0,
            };
            // SAFETY: everything the header points at are the caller's slices.
            unsafe { raw(nr::SENDMSG, [fd_word(fd), &raw const header as usize, flags as usize, 0, 0, 0]) }
        }
        SocketCall::Recv { fd, data, flags, addr, addr_len, control, control_len, flags_out } => {
            let iov = IoVec { base: data.as_mut_ptr() as usize, len: data.len() };
            let mut header = MsgHdr {
                name: if addr.is_empty() { 0 } else { addr.as_mut_ptr() as usize },
                name_len: addr.len() as u32,
                iov: &raw const iov as usize,
                iov_len: 1,
                control: if control.is_empty() { 0 } else { control.as_mut_ptr() as usize },
                control_len: control.len(),
                flags: 0,
            };
            // SAFETY: everything the header points at are the caller's slices.
            let n = unsafe { raw(nr::RECVMSG, [fd_word(fd), &raw mut header as usize, flags as usize, 0, 0, 0]) }?;
            *addr_len = header.name_len as usize;
            *control_len = header.control_len;
            *flags_out = header.flags;
            Ok(n)
        }
        SocketCall::Shutdown { fd, how } => words(nr::SHUTDOWN, [fd_word(fd), how as usize, 0, 0, 0, 0]),
        SocketCall::Setsockopt { fd, level, name, value } => {
            let args = [fd_word(fd), level as usize, name as usize, value.as_ptr() as usize, value.len(), 0];
            // SAFETY: the value is the caller's slice.
            unsafe { raw(nr::SETSOCKOPT, args) }
        }
        SocketCall::Getsockopt { fd, level, name, value, value_len } => {
            let mut len = value.len() as u32;
            let (out, len_at) = (value.as_mut_ptr() as usize, &raw mut len as usize);
            // SAFETY: buffer and length are ours.
            let result = unsafe { raw(nr::GETSOCKOPT, [fd_word(fd), level as usize, name as usize, out, len_at, 0]) }?;
            *value_len = len as usize;
            Ok(result)
        }
    }
}
