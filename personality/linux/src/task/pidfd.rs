//! Descriptors of processes (pidfd_open(2)).

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::any::Any;

use janua_abi::linux::process::rlimit;
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::table::Fd;
use janua_kernel::wait::PollTable;
use janua_object::file::flags::{O_EXCL, O_NONBLOCK, O_RDWR};
use janua_object::vfs::Attr;
use janua_object::{Caller, Events, File, OpenFile, anon};

use super::access;
use crate::thread::ThreadExt;
use crate::{Seat, Task, Thread};

/// A process (or one thread of it) as a file: readable when it has ended.
pub struct PidFd {
    task: Arc<Task>,
    /// The thread, when the descriptor is a thread's.
    thread: Option<Weak<Seat>>,
}

impl PidFd {
    pub fn new(task: &Arc<Task>, thread: Option<&Arc<Seat>>) -> PidFd {
        PidFd { task: task.clone(), thread: thread.map(Arc::downgrade) }
    }

    pub fn task(&self) -> Arc<Task> {
        self.task.clone()
    }

    pub(super) fn is_thread(&self) -> bool {
        self.thread.is_some()
    }

    /// The thread it is for; of a process's, the first that lives.
    pub(super) fn seat(&self) -> Option<Arc<Seat>> {
        match &self.thread {
            Some(thread) => thread.upgrade(),
            None => self.task.threads().into_iter().next(),
        }
    }

    /// The number of the process or thread; `None` once it has been waited for.
    pub fn number(&self) -> Option<u32> {
        if self.is_gone() {
            return None;
        }
        Some(self.seat().filter(|_| self.is_thread()).map_or(self.task.pid, |seat| seat.tid()))
    }

    /// Whether nothing is known of it any more: it has been waited for.
    pub(super) fn is_gone(&self) -> bool {
        self.is_thread() && self.has_ended() || self.was_reaped()
    }

    fn was_reaped(&self) -> bool {
        self.task.kernel.process(self.task.pid).is_none_or(|known| !Arc::ptr_eq(&known, &self.task))
    }

    /// The thread, when the descriptor is a thread's. ESRCH when that has ended.
    pub fn target(&self) -> Result<Option<Arc<Seat>>> {
        match &self.thread {
            None => Ok(None),
            Some(_) if self.has_ended() => Err(Errno::ESRCH),
            Some(thread) => thread.upgrade().map(Some).ok_or(Errno::ESRCH),
        }
    }

    fn has_ended(&self) -> bool {
        match &self.thread {
            None => self.task.ended().is_some(),
            Some(thread) => match thread.upgrade() {
                None => true,
                Some(thread) => !self.task.group.lock().threads.iter().any(|seat| Arc::ptr_eq(seat, &thread)),
            },
        }
    }
}

impl File for PidFd {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.task.changes);
        }
        if !self.has_ended() {
            return Events::empty();
        }
        Events::IN | Events::RDNORM | if self.was_reaped() { Events::HUP } else { Events::empty() }
    }

    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        super::pidinfo::ioctl(self, caller, request, arg)
    }

    fn attr(&self) -> Result<Attr> {
        let now = self.task.kernel.vfs.now();
        Ok(Attr { dev: anon::PROCESS_DEV, ino: self.task.inode, mode: 0o700, ..anon::attr_since(now) })
    }

    fn label(&self) -> String {
        String::from("anon_inode:[pidfd]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// pidfd_open(2).
pub fn pidfd_open(thread: &Thread, pid: i32, flags: u32) -> Result<Fd> {
    const THREAD: u32 = O_EXCL;
    if flags & !(O_NONBLOCK | THREAD) != 0 || pid <= 0 {
        return Err(Errno::EINVAL);
    }
    let pid = pid.unsigned_abs();
    let pidfd = if flags & THREAD != 0 {
        let seat = thread.kernel.thread(pid).ok_or(Errno::ESRCH)?;
        PidFd::new(&seat.task, Some(&seat))
    } else {
        match thread.kernel.process(pid) {
            Some(task) => PidFd::new(&task, None),
            // A thread that leads no process is no process.
            None if thread.kernel.thread(pid).is_some() => return Err(Errno::ENOENT),
            None => return Err(Errno::ESRCH),
        }
    };
    let file = OpenFile::new(Arc::new(pidfd), O_RDWR | flags & O_NONBLOCK, None);
    thread.files().install(file, 0, true, thread.limit(rlimit::NOFILE))
}

/// pidfd_getfd(2): a descriptor of another process, for who might trace it.
pub fn pidfd_getfd(thread: &Thread, pidfd: Fd, target: Fd, flags: u32) -> Result<Fd> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let file = thread.files().get(pidfd)?;
    let pidfd = file.downcast::<PidFd>().ok_or(Errno::EBADF)?;
    let task = pidfd.task();
    let wanted = {
        let _held = access::hold(&task);
        access::check_process(thread, &task)?;
        if task.ended().is_some() {
            return Err(Errno::ESRCH);
        }
        match pidfd.target()? {
            Some(seat) => seat.files().get(target)?,
            None => task.files().get(target)?,
        }
    };
    thread.files().install(wanted, 0, true, thread.limit(rlimit::NOFILE))
}
