//! The host's calls, as this platform needs them.
//!
//! Safe wrappers take what the compiler can check (words, slices); everything else goes through [`raw`].

use janua_abi::linux::{Errno, Result};
use janua_arch::x86_64::hostcall::hostcall;

/// Host call numbers (x86-64).
pub mod nr {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const POLL: usize = 7;
    pub const LSEEK: usize = 8;
    pub const MMAP: usize = 9;
    pub const MPROTECT: usize = 10;
    pub const MUNMAP: usize = 11;
    pub const RT_SIGACTION: usize = 13;
    pub const RT_SIGPROCMASK: usize = 14;
    pub const IOCTL: usize = 16;
    pub const PREAD64: usize = 17;
    pub const PWRITE64: usize = 18;
    pub const MREMAP: usize = 25;
    pub const MSYNC: usize = 26;
    pub const MINCORE: usize = 27;
    pub const MADVISE: usize = 28;
    pub const GETPID: usize = 39;
    pub const SOCKET: usize = 41;
    pub const CONNECT: usize = 42;
    pub const SENDMSG: usize = 46;
    pub const RECVMSG: usize = 47;
    pub const SHUTDOWN: usize = 48;
    pub const BIND: usize = 49;
    pub const LISTEN: usize = 50;
    pub const GETSOCKNAME: usize = 51;
    pub const GETPEERNAME: usize = 52;
    pub const SETSOCKOPT: usize = 54;
    pub const GETSOCKOPT: usize = 55;
    pub const KILL: usize = 62;
    pub const SCHED_YIELD: usize = 24;
    pub const FSYNC: usize = 74;
    pub const FDATASYNC: usize = 75;
    pub const FTRUNCATE: usize = 77;
    pub const GETRUSAGE: usize = 98;
    pub const SYSINFO: usize = 99;
    pub const SIGALTSTACK: usize = 131;
    pub const FSTATFS: usize = 138;
    pub const PRCTL: usize = 157;
    pub const ARCH_PRCTL: usize = 158;
    pub const GETTID: usize = 186;
    pub const FSETXATTR: usize = 190;
    pub const FGETXATTR: usize = 193;
    pub const FLISTXATTR: usize = 196;
    pub const FREMOVEXATTR: usize = 199;
    pub const FUTEX: usize = 202;
    pub const SCHED_SETAFFINITY: usize = 203;
    pub const SCHED_GETAFFINITY: usize = 204;
    pub const GETDENTS64: usize = 217;
    pub const CLOCK_GETTIME: usize = 228;
    pub const EXIT_GROUP: usize = 231;
    pub const EPOLL_CTL: usize = 233;
    pub const TGKILL: usize = 234;
    pub const MKDIRAT: usize = 258;
    pub const MKNODAT: usize = 259;
    pub const FCHOWNAT: usize = 260;
    pub const NEWFSTATAT: usize = 262;
    pub const UNLINKAT: usize = 263;
    pub const LINKAT: usize = 265;
    pub const SYMLINKAT: usize = 266;
    pub const READLINKAT: usize = 267;
    pub const FCHMODAT: usize = 268;
    pub const UTIMENSAT: usize = 280;
    pub const EPOLL_PWAIT: usize = 281;
    pub const FALLOCATE: usize = 285;
    pub const ACCEPT4: usize = 288;
    pub const EPOLL_CREATE1: usize = 291;
    pub const PROCESS_VM_READV: usize = 310;
    pub const PROCESS_VM_WRITEV: usize = 311;
    pub const RENAMEAT2: usize = 316;
    pub const GETRANDOM: usize = 318;
    pub const MEMFD_CREATE: usize = 319;
    pub const MEMBARRIER: usize = 324;
    pub const STATX: usize = 332;
    pub const OPENAT2: usize = 437;
}

/// A host call of six words.
///
/// # Safety
/// Memory the call reads or writes through its arguments must be valid for that.
pub unsafe fn raw(number: usize, args: [usize; 6]) -> Result<usize> {
    // SAFETY: the caller's promise.
    Errno::from_raw(unsafe { hostcall(number, args[0], args[1], args[2], args[3], args[4], args[5]) })
}

/// Like [`raw`], again while it is interrupted.
///
/// # Safety
/// As [`raw`].
pub unsafe fn raw_retry(number: usize, args: [usize; 6]) -> Result<usize> {
    loop {
        // SAFETY: the caller's promise.
        match unsafe { raw(number, args) } {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}

/// A call whose arguments are words and never addresses.
pub fn words(number: usize, args: [usize; 6]) -> Result<usize> {
    // SAFETY: no memory is involved, by this function's contract; its callers are in this crate.
    unsafe { raw(number, args) }
}

/// Writes all of `bytes`, giving up on errors.
pub fn write_all(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: a slice of ours.
        match unsafe { raw_retry(nr::WRITE, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) } {
            Ok(n) if n > 0 => bytes = &bytes[n..],
            _ => return,
        }
    }
}

/// Ends this host process at once.
pub fn exit_group(code: u8) -> ! {
    let _ = words(nr::EXIT_GROUP, [usize::from(code), 0, 0, 0, 0, 0]);
    unreachable!("exit_group does not return")
}
