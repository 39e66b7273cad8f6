//! The calls that trace and wait, made of the kernel inside like any guest's.

use std::fs::File;
use std::io::{self, Error, Result};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// Register sets of PTRACE_GETREGSET.
pub const GENERAL: i32 = libc::NT_PRSTATUS;
pub const FXSAVE: i32 = libc::NT_PRFPREG;
pub const FXSAVE_32: i32 = 0x46e6_2b7f;
pub const XSAVE: i32 = 0x202;

/// Events of a tracee's stop.
pub const EVENT_FORK: i32 = 1;
pub const EVENT_VFORK: i32 = 2;
pub const EVENT_CLONE: i32 = 3;
pub const EVENT_EXEC: i32 = 4;
pub const EVENT_VFORK_DONE: i32 = 5;
pub const EVENT_STOP: i32 = 128;

/// Events the server asks for: forks, new threads, programs.
const OPTIONS: i32 = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEVFORKDONE;

const PTRACE_LISTEN: u32 = 0x4208;

/// Where `struct user` has the debug registers.
const DEBUG_REGISTERS: usize = 848;

/// `result`, with errno when it is -1.
fn checked(result: i64) -> Result<i64> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// A request whose words are no addresses of this process.
fn plain(request: u32, tid: u32, address: usize, data: usize) -> Result<()> {
    // SAFETY: no pointer to memory of this process is passed.
    checked(unsafe { libc::ptrace(request, tid, address, data) }).map(|_| ())
}

pub fn set_options(tid: u32) -> Result<()> {
    plain(libc::PTRACE_SETOPTIONS, tid, 0, OPTIONS as usize)
}

/// Has a stopped thread go on, for one instruction with `step`, with a signal or 0.
pub fn go_on(tid: u32, step: bool, signal: u32) -> Result<()> {
    plain(if step { libc::PTRACE_SINGLESTEP } else { libc::PTRACE_CONT }, tid, 0, signal as usize)
}

/// Leaves a thread in the stop that its whole process is in, until that is over.
pub fn listen(tid: u32) -> Result<()> {
    plain(PTRACE_LISTEN, tid, 0, 0)
}

pub fn interrupt(tid: u32) -> Result<()> {
    plain(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

pub fn detach(tid: u32, signal: u32) -> Result<()> {
    plain(libc::PTRACE_DETACH, tid, 0, signal as usize)
}

pub fn kill(pid: u32) {
    // SAFETY: plain words. One that is gone has ended, which is what was wanted.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}

/// The message of the event that a thread has stopped for.
pub fn message(tid: u32) -> Result<u64> {
    let mut word = 0u64;
    // SAFETY: the word is ours.
    checked(unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0usize, &raw mut word) })?;
    Ok(word)
}

/// `siginfo_t` of the signal that a thread has stopped for.
pub fn signal_info(tid: u32) -> Result<[u8; 128]> {
    let mut bytes = [0; 128];
    // SAFETY: the array has the size of the structure.
    checked(unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0usize, bytes.as_mut_ptr()) })?;
    Ok(bytes)
}

/// A register set of a stopped thread.
pub fn registers(tid: u32, set: i32) -> Result<Vec<u8>> {
    // The largest that processors have today is 11 KiB.
    let mut bytes = vec![0; 16 << 10];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the vector names a buffer of ours, and is ours.
    checked(unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, set as usize, &raw mut vector) })?;
    bytes.truncate(vector.iov_len);
    Ok(bytes)
}

pub fn set_registers(tid: u32, set: i32, bytes: &[u8]) -> Result<()> {
    let mut vector = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    // SAFETY: the vector names a slice of ours, which is only read, and is ours.
    checked(unsafe { libc::ptrace(libc::PTRACE_SETREGSET, tid, set as usize, &raw mut vector) })?;
    Ok(())
}

/// A debug register of a stopped thread.
pub fn debug_register(tid: u32, number: usize) -> Result<u64> {
    let mut word = 0u64;
    // The call itself stores what it has read where its fourth argument points; a C library's wrapper returns it.
    // SAFETY: the word is ours.
    checked(unsafe {
        libc::syscall(libc::SYS_ptrace, libc::PTRACE_PEEKUSER, tid, DEBUG_REGISTERS + 8 * number, &raw mut word)
    })?;
    Ok(word)
}

pub fn set_debug_register(tid: u32, number: usize, value: u64) -> Result<()> {
    plain(libc::PTRACE_POKEUSER, tid, DEBUG_REGISTERS + 8 * number, value as usize)
}

/// Reads memory of a traced process: how many bytes there were.
pub fn read_memory(pid: u32, address: u64, bytes: &mut [u8]) -> Result<usize> {
    let file = File::open(format!("/proc/{pid}/mem"))?;
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], address.wrapping_add(done as u64)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Writes all of it, whatever the rights of the pages.
pub fn write_memory(pid: u32, address: u64, bytes: &[u8]) -> Result<()> {
    File::options().write(true).open(format!("/proc/{pid}/mem"))?.write_all_at(bytes, address)
}

/// What a wait has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A thread has stopped, by this signal and event.
    Stopped { signal: u32, event: i32 },
    /// A thread or process has ended with this code.
    Exited(u32),
    /// The same by a signal.
    Killed(u32),
}

/// Looks at what traced threads, or one of them, have to report, and leaves an end to be reaped by [`reap`]. `None` without `block`:
/// there is nothing; otherwise: there is nobody to wait for.
pub fn look(only: Option<u32>, block: bool) -> Option<(u32, Found)> {
    let (kind, id) = only.map_or((libc::P_ALL, 0), |tid| (libc::P_PID, tid));
    let options = libc::WEXITED | libc::WSTOPPED | libc::__WALL | libc::WNOWAIT | if block { 0 } else { libc::WNOHANG };
    // SAFETY: an all-zero structure is valid, and it is ours.
    let (done, info) = unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        (libc::waitid(kind, id, &raw mut info, options), info)
    };
    // SAFETY: waitid(2) fills in what SIGCHLD has; zeroes mean that there is nothing.
    let (pid, status) = unsafe { (info.si_pid() as u32, info.si_status() as u32) };
    if done != 0 || pid == 0 {
        return None;
    }
    let found = match info.si_code {
        libc::CLD_EXITED => Found::Exited(status & 0xff),
        libc::CLD_KILLED | libc::CLD_DUMPED => Found::Killed(status & 0x7f),
        // It may have been killed since.
        _ => reap(pid)?,
    };
    Some((pid, found))
}

/// Takes what a thread has reported.
pub fn reap(tid: u32) -> Option<Found> {
    let mut status = 0;
    // SAFETY: the status is ours.
    if unsafe { libc::waitpid(tid as i32, &raw mut status, libc::__WALL | libc::WNOHANG) } <= 0 {
        return None;
    }
    Some(if libc::WIFEXITED(status) {
        Found::Exited(libc::WEXITSTATUS(status) as u32)
    } else if libc::WIFSIGNALED(status) {
        Found::Killed(libc::WTERMSIG(status) as u32)
    } else {
        Found::Stopped { signal: libc::WSTOPSIG(status) as u32, event: status >> 16 }
    })
}

/// Names this process, and takes SIGCHLD by a descriptor; no other signal but SIGKILL reaches it.
pub fn begin() -> Result<File> {
    // SAFETY: signal sets are plain data, the name is a constant.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"janua-gdb".as_ptr());
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let fd = checked(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into())?;
        Ok(File::from_raw_fd(fd as RawFd))
    }
}

/// The file at a descriptor that this process was started with, for good.
pub fn inherited(fd: RawFd) -> File {
    // SAFETY: the kernel has opened it for this process (`--gdb`), and nobody else here uses the number.
    unsafe { File::from_raw_fd(fd) }
}

/// Waits until one of the files can be read: which.
pub fn wait<const N: usize>(files: [&File; N]) -> [bool; N] {
    let mut all = files.map(|file| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    // SAFETY: an array of ours.
    unsafe { libc::poll(all.as_mut_ptr(), N as libc::nfds_t, -1) };
    all.map(|entry| entry.revents != 0)
}
