//! Signals as a file (signalfd(2)).
//!
//! As in Linux the signals are those of the thread that reads or polls, its own and its process', not of the one that made the
//! descriptor. An epoll asks for the thread that waits in it, but is woken by signals of the process that added the descriptor.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::Ordering;

use janua_abi::linux::process::rlimit;
use janua_abi::linux::signal::*;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::table::Fd;
use janua_kernel::wait::PollTable;
use janua_object::file::flags::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use janua_object::vfs::Attr;
use janua_object::{Caller, Events, File, OpenFile, anon};
use janua_rt::AtomicU64;
use zerocopy::{FromZeros, IntoBytes};

use super::calls::SIGSET_SIZE;
use super::{UNBLOCKABLE, dequeue};
use crate::Thread;
use crate::caller::thread_of;
use crate::signal::SigSet;
use crate::thread::ThreadExt;

/// A set of signals to be read.
pub struct SignalFd {
    set: AtomicU64,
    attr: Attr,
}

impl SignalFd {
    /// The signals it takes.
    pub fn set(&self) -> SigSet {
        SigSet(self.set.load(Ordering::Relaxed))
    }
}

/// `struct signalfd_siginfo` of a signal.
fn record(info: &SigInfo) -> SignalFdInfo {
    let mut out = SignalFdInfo::new_zeroed();
    out.signo = info.signal();
    out.errno = info.errno;
    out.code = info.code;
    let signal = info.signal();
    let fault = matches!(signal, SIGSEGV | SIGBUS | SIGILL | SIGFPE | SIGTRAP);
    match info.code {
        si::TIMER => {
            let (id, overrun) = info.timer_fields();
            out.tid = id as u32;
            out.overrun = overrun as u32;
            out.ptr = info.value();
            out.int = info.value() as i32;
        }
        si::SIGIO => (out.band, out.fd) = (info.poll_fields().0 as u32, info.poll_fields().1),
        code if code < 0 => {
            (out.pid, out.uid) = (info.pid(), info.uid());
            out.ptr = info.value();
            out.int = info.value() as i32;
        }
        1.. if signal == SIGCHLD => {
            (out.pid, out.uid) = (info.pid(), info.uid());
            out.status = info.status();
            (out.utime, out.stime) = info.child_times();
        }
        1.. if fault && info.code != si::KERNEL => out.addr = info.addr(),
        1..=6 if signal == SIGIO || signal >= SIGRTMIN => {
            (out.band, out.fd) = (info.poll_fields().0 as u32, info.poll_fields().1);
        }
        _ => (out.pid, out.uid) = (info.pid(), info.uid()),
    }
    out
}

impl File for SignalFd {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn read(&self, _file: &OpenFile, caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        const SIZE: usize = size_of::<SignalFdInfo>();
        if buf.left() < SIZE {
            return Err(Errno::EINVAL);
        }
        let reader = thread_of(caller).ok_or(Errno::EAGAIN)?;
        let mut done = 0;
        while buf.left() >= SIZE {
            let Some(info) = dequeue(reader, self.set()) else { break };
            match buf.put(record(&info).as_bytes()) {
                Ok(put) => done += put,
                // What has been read is read.
                Err(_) if done > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        if done == 0 { Err(Errno::EAGAIN) } else { Ok(done) }
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    /// There is no position, and moving it is no error.
    fn seek(&self, _file: &OpenFile, _offset: i64, _whence: u32) -> Result<u64> {
        Ok(0)
    }

    fn poll(&self, _file: &OpenFile, caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        let Some(reader) = thread_of(caller) else { return Events::empty() };
        if let Some(table) = table {
            table.add(&reader.process().signalled);
        }
        let pending = reader.signals.pending().union(reader.process().pending()).and(self.set());
        if pending.is_empty() { Events::empty() } else { Events::IN | Events::RDNORM }
    }

    fn attr(&self) -> Result<Attr> {
        Ok(self.attr)
    }

    fn label(&self) -> String {
        String::from("anon_inode:[signalfd]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// signalfd(2) as the older call has it.
pub fn signalfd(thread: &Thread, fd: Fd, mask: UserPtr<u64>, size: usize) -> Result<Fd> {
    signalfd4(thread, fd, mask, size, 0)
}

/// signalfd(2): a new descriptor, or another set for an existing one.
pub fn signalfd4(thread: &Thread, fd: Fd, mask: UserPtr<u64>, size: usize, flags: u32) -> Result<Fd> {
    if size != SIGSET_SIZE || flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let set = SigSet(mask.read(thread.user())?).without(UNBLOCKABLE);
    let files = thread.files();
    if fd != Fd(-1) {
        let file = files.get(fd)?;
        let signals = file.downcast::<SignalFd>().ok_or(Errno::EINVAL)?;
        signals.set.store(set.0, Ordering::Relaxed);
        // Somebody may be waiting for what is now in the set.
        thread.process().signalled.wake_all();
        return Ok(fd);
    }
    let attr = anon::attr(thread.machine().clock());
    let signals = SignalFd { set: AtomicU64::new(set.0), attr };
    let file = OpenFile::new(Arc::new(signals), O_RDWR | flags & O_NONBLOCK, None);
    files.install(file, 0, flags & O_CLOEXEC != 0, thread.limit(rlimit::NOFILE))
}
