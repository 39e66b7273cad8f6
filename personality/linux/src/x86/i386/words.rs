//! Calls whose words differ: wide numbers in two words, arguments in memory, signed 32-bit numbers.

use janua_abi::linux::fcntl::{F_GETLK, F_SETLK, F_SETLKW};
use janua_abi::linux::i386::HIGHEST;
use janua_abi::linux::i386::stat::{Flock32, Flock64, Statfs64, fold_ino, whole};
use janua_abi::linux::i386::time::{TimeSpec32, TimeSpec64, TimeVal32};
use janua_abi::linux::mman::MAP_32BIT;
use janua_abi::linux::prctl::arch;
use janua_abi::linux::process::Rusage;
use janua_abi::linux::stat::Statx;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::{Arg, Fd};
use janua_kernel::{UserPtr, UserStr};

use crate::Thread;
use crate::caller::ThisThread;
use crate::fs::at::{AtFlags, DirFd};
use crate::fs::fcntl::{FcntlCommand, Request};
use crate::fs::rw::{RwFlags, Whence};
use crate::fs::{self, mount::UmountFlags};
use crate::futex::{self, FutexOp};
use crate::mm::{Addr, ArchCode, MapWord, ProtWord};
use crate::task::clone::CloneFlags;
use crate::task::wait::WaitOptions;
use crate::thread::ThreadExt;
use crate::{mm, poll, sched, task};

/// A file offset or size from its two words.
fn wide(low: u32, high: u32) -> i64 {
    whole([low, high]) as i64
}

/// lseek(2). Of a position that does not fit the program sees the low word, as under a 64-bit Linux.
pub fn lseek(thread: &Thread, fd: Fd, offset: i32, whence: Whence) -> Result<u64> {
    fs::rw::lseek(thread, fd, offset.into(), whence)
}

/// _llseek(2)
pub fn llseek(thread: &Thread, fd: Fd, high: u32, low: u32, result: UserPtr<i64>, whence: Whence) -> Result<()> {
    let position = fs::rw::lseek(thread, fd, wide(low, high), whence)?;
    result.write(thread.user(), &(position as i64))
}

pub async fn pread64(thread: &Thread, fd: Fd, buf: UserPtr<u8>, len: usize, low: u32, high: u32) -> Result<usize> {
    fs::rw::pread64(thread, fd, buf, len, wide(low, high)).await
}

pub async fn pwrite64(thread: &Thread, fd: Fd, buf: UserPtr<u8>, len: usize, low: u32, high: u32) -> Result<usize> {
    fs::rw::pwrite64(thread, fd, buf, len, wide(low, high)).await
}

type Vector = UserPtr<[u32; 2]>;

pub async fn preadv(thread: &Thread, fd: Fd, list: Vector, count: usize, low: u32, high: u32) -> Result<usize> {
    fs::rw::preadv(thread, fd, list, count, wide(low, high)).await
}

pub async fn pwritev(thread: &Thread, fd: Fd, list: Vector, count: usize, low: u32, high: u32) -> Result<usize> {
    fs::rw::pwritev(thread, fd, list, count, wide(low, high)).await
}

pub async fn preadv2(
    thread: &Thread,
    fd: Fd,
    list: Vector,
    count: usize,
    low: u32,
    high: u32,
    flags: RwFlags,
) -> Result<usize> {
    fs::rw::preadv2(thread, fd, list, count, wide(low, high), 0, flags).await
}

pub async fn pwritev2(
    thread: &Thread,
    fd: Fd,
    list: Vector,
    count: usize,
    low: u32,
    high: u32,
    flags: RwFlags,
) -> Result<usize> {
    fs::rw::pwritev2(thread, fd, list, count, wide(low, high), 0, flags).await
}

pub async fn truncate(thread: &Thread, path: UserStr, size: i32) -> Result<()> {
    fs::attr::truncate(thread, path, size.into()).await
}

pub fn ftruncate(thread: &Thread, fd: Fd, size: i32) -> Result<()> {
    fs::attr::ftruncate(thread, fd, size.into())
}

pub async fn truncate64(thread: &Thread, path: UserStr, low: u32, high: u32) -> Result<()> {
    fs::attr::truncate(thread, path, wide(low, high)).await
}

pub fn ftruncate64(thread: &Thread, fd: Fd, low: u32, high: u32) -> Result<()> {
    fs::attr::ftruncate(thread, fd, wide(low, high))
}

pub fn fadvise64(thread: &Thread, fd: Fd, low: u32, high: u32, len: u32, advice: u32) -> Result<()> {
    fs::sync::fadvise64(thread, fd, wide(low, high), len.into(), advice)
}

pub fn fadvise64_64(thread: &Thread, fd: Fd, low: u32, high: u32, len_low: u32, len_high: u32, advice: u32) -> Result<()> {
    fs::sync::fadvise64(thread, fd, wide(low, high), wide(len_low, len_high), advice)
}

pub fn fallocate(thread: &Thread, fd: Fd, mode: u32, low: u32, high: u32, len_low: u32, len_high: u32) -> Result<()> {
    fs::attr::fallocate(thread, fd, mode, wide(low, high), wide(len_low, len_high))
}

pub async fn sync_file_range(
    thread: &Thread,
    fd: Fd,
    low: u32,
    high: u32,
    len_low: u32,
    len_high: u32,
    flags: u32,
) -> Result<()> {
    fs::sync::sync_file_range(thread, fd, wide(low, high), wide(len_low, len_high), flags).await
}

pub fn readahead(thread: &Thread, fd: Fd, low: u32, high: u32, count: usize) -> Result<()> {
    fs::sync::readahead(thread, fd, wide(low, high), count)
}

/// The size a program gives for its `struct statfs64`. EINVAL.
fn check_statfs(size: usize) -> Result<()> {
    if size == size_of::<Statfs64>() { Ok(()) } else { Err(Errno::EINVAL) }
}

pub fn statfs64(thread: &Thread, path: UserStr, size: usize, out: UserPtr<Statfs64>) -> Result<()> {
    check_statfs(size)?;
    fs::stat::statfs(thread, path, out)
}

pub fn fstatfs64(thread: &Thread, fd: Fd, size: usize, out: UserPtr<Statfs64>) -> Result<()> {
    check_statfs(size)?;
    fs::stat::fstatfs(thread, fd, out)
}

/// statx(2), with the inode number that stat(2) reports.
pub fn statx(thread: &Thread, dir: DirFd, path: UserStr, flags: AtFlags, mask: u32, out: UserPtr<Statx>) -> Result<()> {
    let wide = fs::stat::extended(thread, dir, path, flags, mask)?;
    out.write(thread.user(), &Statx { ino: fold_ino(wide.ino).into(), ..wide })
}

/// F_GETLK64, F_SETLK64, F_SETLKW64.
const WIDE_LOCKS: [(u32, u32); 3] = [(12, F_GETLK), (13, F_SETLK), (14, F_SETLKW)];

/// fcntl64(2), and fcntl(2), which a 64-bit Linux handles alike: narrow and wide record locks have numbers of their own.
pub async fn fcntl64(thread: &Thread, fd: Fd, command: FcntlCommand, arg: usize) -> Result<usize> {
    if let Some((_, plain)) = WIDE_LOCKS.iter().find(|(number, _)| *number == command.0) {
        return fs::fcntl::control::<Flock64>(thread, fd, FcntlCommand(*plain), arg).await;
    }
    match command.0 {
        F_GETLK | F_SETLK | F_SETLKW => fs::fcntl::control::<Flock32>(thread, fd, command, arg).await,
        _ => fs::fcntl::control::<Flock64>(thread, fd, command, arg).await,
    }
}

/// ioctl(2): requests whose number holds the size of a `long` have another number. Two whose structures hold words are missing.
pub fn ioctl(thread: &Thread, fd: Fd, request: Request, arg: usize) -> Result<usize> {
    /// FS_IOC32_* and FS_IOC_*: flags and version, get and set.
    const NARROW: [(u32, u32); 4] =
        [(0x8004_6601, 0x8008_6601), (0x4004_6602, 0x4008_6602), (0x8004_7601, 0x8008_7601), (0x4004_7602, 0x4008_7602)];
    let found = NARROW.iter().find(|(narrow, _)| *narrow == request.0);
    fs::fcntl::ioctl_by(thread, &ThisThread(thread, true), fd, found.map_or(request, |(_, wide)| Request(*wide)), arg)
}

/// umount(2) of old.
pub fn umount(thread: &Thread, target: UserStr) -> Result<()> {
    fs::mount::umount2(thread, target, UmountFlags::decode(0)?)
}

/// mmap2(2): the offset counts pages.
pub fn mmap2(thread: &Thread, addr: Addr, length: usize, prot: ProtWord, flags: MapWord, fd: Fd, page: u32) -> Result<usize> {
    map(thread, addr, length, prot, flags, fd, u64::from(page) << 12)
}

/// mmap(2) of old: six words in memory.
pub fn old_mmap(thread: &Thread, args: UserPtr<[u32; 6]>) -> Result<usize> {
    let [addr, length, prot, flags, fd, offset] = args.read(thread.user())?;
    map(thread, Addr(addr as usize), length as usize, ProtWord(prot), MapWord(flags), Fd(fd as i32), offset.into())
}

fn map(thread: &Thread, addr: Addr, length: usize, prot: ProtWord, flags: MapWord, fd: Fd, offset: u64) -> Result<usize> {
    // A 64-bit program that makes this call wants an address it can name by this call.
    let high = thread.process().mm().is_some_and(|mm| mm.bounds().high > HIGHEST);
    let flags = MapWord(if high { flags.0 | MAP_32BIT } else { flags.0 });
    mm::mmap(thread, addr, length, prot, flags, fd, offset)
}

/// select(2) of old: five words in memory.
pub async fn old_select(thread: &Thread, args: UserPtr<[u32; 5]>) -> Result<usize> {
    let [count, read, write, except, timeout] = args.read(thread.user())?;
    let set = |word: u32| UserPtr::<u32>::new(word as usize);
    let timeout = UserPtr::<TimeVal32>::new(timeout as usize);
    poll::select::select(thread, count as i32, set(read), set(write), set(except), timeout).await
}

pub async fn futex(
    thread: &Thread,
    addr: usize,
    op: FutexOp,
    value: u32,
    timeout: usize,
    addr2: usize,
    value3: u32,
) -> Result<usize> {
    futex::operate::<TimeSpec32>(thread, addr, op, value, timeout, addr2, value3).await
}

pub async fn futex_time64(
    thread: &Thread,
    addr: usize,
    op: FutexOp,
    value: u32,
    timeout: usize,
    addr2: usize,
    value3: u32,
) -> Result<usize> {
    futex::operate::<TimeSpec64>(thread, addr, op, value, timeout, addr2, value3).await
}

/// clone(2): the thread pointer comes before the child's word, and is a descriptor.
pub async fn clone(
    thread: &Thread,
    flags: CloneFlags,
    stack: usize,
    parent_tid: UserPtr<u32>,
    tls: usize,
    child_tid: UserPtr<u32>,
) -> Result<u32> {
    task::clone::clone(thread, flags, stack, parent_tid, child_tid, tls).await
}

pub async fn waitpid(thread: &Thread, pid: i32, status: UserPtr<u32>, options: WaitOptions) -> Result<u32> {
    task::wait::wait4(thread, pid, status, options, UserPtr::<Rusage>::new(0)).await
}

/// stime(2): the clock is the machine's.
pub fn stime(thread: &Thread, seconds: UserPtr<i32>) -> Result<()> {
    let seconds = seconds.read(thread.user())?;
    if seconds < 0 { Err(Errno::EINVAL) } else { Err(Errno::EPERM) }
}

/// nice(2)
pub fn nice(thread: &Thread, increment: i32) -> Result<()> {
    const PRIO_PROCESS: u32 = 0;
    // What getpriority(2) returns is turned round, to be positive.
    let now = 20 - sched::getpriority(thread, PRIO_PROCESS, 0)?;
    let niceness = now.saturating_add(increment.clamp(-40, 40)).clamp(-20, 19);
    sched::setpriority(thread, PRIO_PROCESS, 0, niceness)
        .map_err(|errno| if errno == Errno::EACCES { Errno::EPERM } else { errno })
}

/// The first five names in fields of `size` bytes each.
fn names(thread: &Thread, out: UserPtr<u8>, size: usize) -> Result<()> {
    let uts = crate::misc::names(thread);
    let fields = [uts.sysname, uts.nodename, uts.release, uts.version, uts.machine];
    for (at, field) in fields.iter().enumerate() {
        let mut field = *field;
        field[size - 1] = 0;
        thread.user().copy_out(out.addr().wrapping_add(at * size), &field[..size]).map_err(|_| Errno::EFAULT)?;
    }
    Ok(())
}

/// uname(2) without a domain name.
pub fn olduname(thread: &Thread, out: UserPtr<u8>) -> Result<()> {
    names(thread, out, 65)
}

/// uname(2) with names of eight characters.
pub fn oldolduname(thread: &Thread, out: UserPtr<u8>) -> Result<()> {
    names(thread, out, 9)
}

/// arch_prctl(2): what is not about the bases of 64-bit code.
pub fn arch_prctl(thread: &Thread, code: ArchCode, addr: Addr) -> Result<usize> {
    if (arch::SET_GS..=arch::GET_GS).contains(&code.0) { Err(Errno::EINVAL) } else { mm::arch_prctl(thread, code, addr) }
}
