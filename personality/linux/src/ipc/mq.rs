//! mq_open(2) and the other calls of POSIX message queues.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::capability::CAP_SYS_RESOURCE;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::signal::{SigInfo, si};
use janua_abi::linux::time::{SigEvent, sigev};
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::{UserPtr, UserStr};
use janua_object::file::flags::{O_ACCMODE, O_CREAT, O_EXCL, O_NONBLOCK};
use janua_object::mqueue::{
    self, MSG_DEFAULT, MSG_MOST, MSGSIZE_DEFAULT, MSGSIZE_MOST, MessageQueue, Notice, Notify, OpenQueue, QueueFile,
};
use janua_object::vfs::NAME_MAX;
use janua_object::{Caller, OpenFile};
use janua_port::Nanos;

use crate::Thread;
use crate::fs::fd;
use crate::fs::open::OpenFlags;
use crate::signal::is_signal;
use crate::signal::send_task;
use crate::task::access;
use crate::thread::ThreadExt;
use crate::user::QueueCharge;

/// `struct mq_attr`: flags, most messages, bytes of a message, messages now, and four words of nothing.
pub type MqAttr = [i64; 8];

fn name(thread: &Thread, name: UserStr) -> Result<Vec<u8>> {
    let name = name.path(thread.user())?;
    match name.len() {
        0 => Err(Errno::ENOENT),
        _ if name.contains(&b'/') => Err(Errno::EACCES),
        len if len > NAME_MAX => Err(Errno::ENAMETOOLONG),
        _ => Ok(name),
    }
}

/// mq_open(2). The C library has taken the slash off the name.
pub fn mq_open(thread: &Thread, path: UserStr, flags: OpenFlags, mode: u32, attr: UserPtr<impl Layout<MqAttr>>) -> Result<Fd> {
    let name = name(thread, path)?;
    let flags = flags.0;
    let cred = thread.caller().cred();
    let (mut most, mut size) = (MSG_DEFAULT, MSGSIZE_DEFAULT);
    if flags & O_CREAT != 0 && !attr.is_null() {
        let attr: MqAttr = attr.load(thread.user())?;
        let (most_ever, size_ever) =
            if cred.capable(CAP_SYS_RESOURCE) { (MSG_MOST, MSGSIZE_MOST) } else { (MSG_DEFAULT, MSGSIZE_DEFAULT) };
        let within = |value: i64, ever: usize| usize::try_from(value).ok().filter(|value| (1..=ever).contains(value));
        most = within(attr[1], most_ever).ok_or(Errno::EINVAL)?;
        size = within(attr[2], size_ever).ok_or(Errno::EINVAL)?;
    }
    let umask = thread.fs().umask.load(core::sync::atomic::Ordering::Relaxed);
    let how = OpenQueue {
        name: &name,
        create: flags & O_CREAT != 0,
        exclusive: flags & O_EXCL != 0,
        want: mqueue::rights(flags & O_ACCMODE),
        mode: mode & !umask,
        most,
        size,
    };
    let reserved = fd::reserve(thread)?;
    let user = thread.kernel.users.of(cred.uid);
    let limit = thread.limit(rlimit::MSGQUEUE);
    let charge =
        |bytes| -> Result<mqueue::Charge> { Ok(Box::new(QueueCharge::take(user, bytes, limit).ok_or(Errno::EMFILE)?)) };
    let queue = thread.kernel.ipc.posix.open(&how, &cred, charge)?;
    let file = OpenFile::new(Arc::new(QueueFile::new(queue, &name)), flags & (O_ACCMODE | O_NONBLOCK), None);
    // Closed by exec, whether that is asked for or not.
    reserved.install(file, true)
}

/// mq_unlink(2).
pub fn mq_unlink(thread: &Thread, path: UserStr) -> Result<()> {
    thread.kernel.ipc.posix.unlink(&name(thread, path)?, &thread.caller().cred())
}

/// The open queue behind a descriptor. EBADF.
fn queue(thread: &Thread, fd: Fd) -> Result<(Arc<OpenFile>, Arc<MessageQueue>)> {
    let file = thread.files().get(fd)?;
    let queue = file.downcast::<QueueFile>().ok_or(Errno::EBADF)?.queue.clone();
    Ok((file, queue))
}

/// A `struct timespec` since 1970 as a monotonic deadline. EINVAL.
fn deadline(thread: &Thread, timeout: UserPtr<impl Layout<[i64; 2]>>) -> Result<Option<Nanos>> {
    let Some(timeout) = timeout.non_null() else { return Ok(None) };
    let [seconds, nanos] = timeout.load(thread.user())?;
    if seconds < 0 || !(0..1_000_000_000).contains(&nanos) {
        return Err(Errno::EINVAL);
    }
    let at = (seconds as u64).saturating_mul(1_000_000_000).saturating_add(nanos as u64);
    let clock = thread.machine().clock();
    Ok(Some(clock.monotonic().saturating_add(at.saturating_sub(clock.realtime()))))
}

/// mq_timedsend(2); the timeout is a `struct timespec` since 1970.
pub async fn mq_timedsend(
    thread: &Thread,
    fd: Fd,
    message: UserPtr<u8>,
    len: usize,
    priority: u32,
    timeout: UserPtr<impl Layout<[i64; 2]>>,
) -> Result<()> {
    if priority >= mqueue::PRIO_MAX {
        return Err(Errno::EINVAL);
    }
    let deadline = deadline(thread, timeout)?;
    let (file, queue) = queue(thread, fd)?;
    file.check_write()?;
    if len > queue.size {
        return Err(Errno::EMSGSIZE);
    }
    let mut text = vec![0; len];
    thread.user().copy_in(&mut text, message.addr()).map_err(|_| Errno::EFAULT)?;
    let waits = !file.nonblocking();
    let waiters = queue.waiters.clone();
    thread
        .wait_on(&waiters, deadline, || match queue.send(&text, priority) {
            Err(Errno::EAGAIN) if waits => None,
            result => Some(result),
        })
        .await
        .map_err(|cut| cut.errno(Errno::ETIMEDOUT))??
        .into_iter()
        .for_each(|notice| notify(thread, notice));
    Ok(())
}

/// Sends the signal of a registration, unless the process has called exec since: the new program may have more rights.
fn notify(thread: &Thread, notice: Notice) {
    let Some(task) = thread.kernel.process(notice.pid) else { return };
    let _held = access::hold(&task);
    if task.program() == notice.program {
        let info =
            SigInfo::by_process(notice.signal, si::MESGQ, thread.process().pid, thread.cred().uid).with_value(notice.value);
        // A full queue is the receiver's loss.
        let _ = send_task(&task, info);
    }
}

/// mq_notify(2).
pub fn mq_notify(thread: &Thread, fd: Fd, event: UserPtr<impl Layout<SigEvent>>) -> Result<()> {
    let pid = thread.process().pid;
    let Some(event) = event.non_null() else {
        queue(thread, fd)?.1.unregister(pid);
        return Ok(());
    };
    let event: SigEvent = event.load(thread.user())?;
    let notify = match event.notify {
        sigev::NONE => Notify::Nothing,
        sigev::SIGNAL if is_signal(event.signo as u32) => Notify::Signal { signal: event.signo as u32, value: event.value },
        sigev::THREAD => {
            let mut cookie = [0; mqueue::COOKIE];
            thread.user().copy_in(&mut cookie, event.value as usize).map_err(|_| Errno::EFAULT)?;
            let socket = thread.files().get(Fd(event.signo))?;
            mqueue::netlink_of(&socket).ok_or(Errno::EINVAL)?;
            Notify::Thread { socket, cookie }
        }
        _ => return Err(Errno::EINVAL),
    };
    let queue = queue(thread, fd)?.1;
    // One that has ended while somebody looked at its descriptors has closed them without a word.
    if let Some(before) =
        queue.registered().filter(|before| thread.kernel.process(*before).is_none_or(|task| task.ended().is_some()))
    {
        queue.unregister(before);
    }
    queue.register(pid, thread.process().program(), notify)
}

/// mq_timedreceive(2): the bytes of the message.
pub async fn mq_timedreceive(
    thread: &Thread,
    fd: Fd,
    message: UserPtr<u8>,
    len: usize,
    priority: UserPtr<u32>,
    timeout: UserPtr<impl Layout<[i64; 2]>>,
) -> Result<usize> {
    let deadline = deadline(thread, timeout)?;
    let (file, queue) = queue(thread, fd)?;
    file.check_read()?;
    if len < queue.size {
        return Err(Errno::EMSGSIZE);
    }
    let waits = !file.nonblocking();
    let waiters = queue.waiters.clone();
    let mut receiver = None;
    let (text, sent_with) = thread
        .wait_on(&waiters, deadline, || match queue.receive() {
            Err(Errno::EAGAIN) if waits => {
                receiver.get_or_insert_with(|| queue.receiver());
                None
            }
            result => Some(result),
        })
        .await
        .map_err(|cut| cut.errno(Errno::ETIMEDOUT))??;
    thread.user().copy_out(message.addr(), &text).map_err(|_| Errno::EFAULT)?;
    if let Some(priority) = priority.non_null() {
        priority.write(thread.user(), &sent_with)?;
    }
    Ok(text.len())
}

/// mq_getsetattr(2): O_NONBLOCK is what can be set.
pub fn mq_getsetattr(
    thread: &Thread,
    fd: Fd,
    new: UserPtr<impl Layout<MqAttr>>,
    old: UserPtr<impl Layout<MqAttr>>,
) -> Result<()> {
    let (file, queue) = queue(thread, fd)?;
    let before = file.flags();
    if let Some(new) = new.non_null() {
        let flags = new.load(thread.user())?[0];
        if flags & !i64::from(O_NONBLOCK) != 0 {
            return Err(Errno::EINVAL);
        }
        file.set_flags(before & !O_NONBLOCK | flags as u32);
    }
    if let Some(old) = old.non_null() {
        let words = [i64::from(before & O_NONBLOCK), queue.most as i64, queue.size as i64, queue.len() as i64];
        let mut attr: MqAttr = [0; 8];
        attr[..4].copy_from_slice(&words);
        old.store(thread.user(), &attr)?;
    }
    Ok(())
}
