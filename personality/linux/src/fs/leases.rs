//! Leases: fcntl(2)'s F_SETLEASE and F_GETLEASE, and who waits for one.

use alloc::sync::Arc;

use janua_abi::linux::capability::CAP_LEASE;
use janua_abi::linux::fcntl::{F_RDLCK, F_UNLCK, F_WRLCK};
use janua_kernel::{Errno, Result};
use janua_object::OpenFile;
use janua_object::fdtable::FdTable;
use janua_object::file::{OwnerKind, SignalOwner, flags};
use janua_object::lease::notice;
use janua_object::lock::{FileKey, Mode};
use janua_object::mm::Label;
use janua_object::vfs::FileKind;
use janua_rt::Notify;

use super::at;
use super::sigio::Message;
use crate::{Task, Thread};

struct Holder(Message);

impl Notify for Holder {
    fn notify(&self, what: u32) {
        if what == notice::OVER {
            *self.0.owner.lock() = SignalOwner::default();
        } else {
            self.0.send();
        }
    }
}

fn now(thread: &Thread) -> u64 {
    thread.machine().clock().monotonic()
}

fn key(file: &OpenFile) -> Option<FileKey> {
    file.inode()?.id()
}

/// F_GETLEASE.
pub fn get(thread: &Thread, file: &OpenFile) -> u32 {
    let leases = &at::vfs(thread).leases;
    let mode = key(file).filter(|_| leases.any()).and_then(|key| leases.get(key, file.id, now(thread)));
    let kind = match mode {
        None => F_UNLCK,
        Some(Mode::Shared) => F_RDLCK,
        Some(Mode::Exclusive) => F_WRLCK,
    };
    kind as u32
}

/// F_SETLEASE. EACCES for another's file, EINVAL for what is no regular file of this kernel's alone, EAGAIN while it is used.
pub fn set(thread: &Thread, fd: i32, file: &Arc<OpenFile>, kind: u32) -> Result<()> {
    let mode = match kind as i16 {
        F_UNLCK => None,
        F_RDLCK => Some(Mode::Shared),
        F_WRLCK => Some(Mode::Exclusive),
        _ => return Err(Errno::EINVAL),
    };
    let inode = file.inode().ok_or(Errno::EINVAL)?;
    let cred = thread.cred();
    if inode.perm()?.uid != cred.fsuid && !cred.capable(CAP_LEASE) {
        return Err(Errno::EACCES);
    }
    // Of a file that the outside has too nobody is notified of who opens it.
    if inode.kind() != FileKind::Regular || inode.checks_names() {
        return Err(Errno::EINVAL);
    }
    let key = inode.id().ok_or(Errno::EINVAL)?;
    let leases = &at::vfs(thread).leases;
    let Some(mode) = mode else { return leases.clear(key, file.id, now(thread)) };
    let holder = Holder(Message::of(thread, file, fd));
    let before = leases.set(key, file.id, mode, Arc::new(holder), now(thread))?;
    // From here on who opens the file sees the lease; who has opened it before is seen here.
    if is_used_otherwise(thread, file, key, mode) {
        match before {
            None => leases.withdraw(key, file.id, now(thread)),
            Some(mode) => drop(leases.set(key, file.id, mode, Arc::new(Nobody), now(thread))?),
        }
        return Err(Errno::EAGAIN);
    }
    file.note_lease();
    let owner = file.signal_owner();
    let mut owner = owner.lock();
    if before.is_none() && owner.kind == OwnerKind::None {
        let signal = owner.signal;
        *owner = SignalOwner { kind: OwnerKind::Process, id: thread.task.pid, signal, uid: cred.uid, euid: cred.euid };
    }
    Ok(())
}

/// The holder of a lease that has one already.
struct Nobody;

impl Notify for Nobody {
    fn notify(&self, _what: u32) {}
}

/// Whether the file is open in a way that forbids a lease: for writing at all, or, for an exclusive one, by any other description.
fn is_used_otherwise(thread: &Thread, file: &Arc<OpenFile>, key: FileKey, mode: Mode) -> bool {
    let writers = file.inode().and_then(|inode| inode.busy()).map_or(0, |busy| busy.users());
    if mode == Mode::Shared {
        return writers > 0;
    }
    let own = i32::from(file.flags() & flags::O_ACCMODE != flags::O_RDONLY);
    writers != own || thread.kernel.processes().iter().any(|task| has_another(task, file, key))
}

/// Whether a process has another description of the file, by number or in its memory.
fn has_another(task: &Arc<Task>, file: &Arc<OpenFile>, key: FileKey) -> bool {
    let other =
        |open: &Arc<OpenFile>| !Arc::ptr_eq(open, file) && open.flags() & flags::O_PATH == 0 && self::key(open) == Some(key);
    let in_table =
        |files: Arc<FdTable>| files.numbers().into_iter().filter_map(|fd| files.get(fd).ok()).any(|open| other(&open));
    let mapped = || {
        let regions = task.mm().map(|mm| mm.regions()).unwrap_or_default();
        regions.iter().any(|region| matches!(&region.label, Label::File(open) if other(open)))
    };
    task.tables().into_iter().any(in_table) || mapped()
}

/// Repeats what has met a lease until it meets none. EAGAIN for who does not want to wait.
pub async fn wait<T>(thread: &Thread, nonblocking: bool, mut attempt: impl FnMut() -> Result<T> + Send) -> Result<T> {
    if nonblocking {
        return Err(Errno::EAGAIN);
    }
    let leases = &at::vfs(thread).leases;
    let step = |table: Option<&mut janua_kernel::wait::PollTable>| {
        if let Some(table) = table {
            table.add(&leases.changed);
            // What is late by now the attempt ends, if it is in its way.
            table.wake_at(leases.deadline(now(thread)));
        }
        match attempt() {
            Err(Errno::EJUKEBOX) => None,
            result => Some(result),
        }
    };
    thread.wait_polling(None, step).await.unwrap_or(Err(Errno::ERESTARTSYS))
}

/// After a file has got its number: a lease that was given meanwhile is broken too.
pub async fn opened(thread: &Thread, file: &OpenFile) {
    let leases = &at::vfs(thread).leases;
    let Some(key) = key(file) else { return };
    let writes = file.flags() & flags::O_ACCMODE != flags::O_RDONLY;
    let attempt = || leases.open(key, writes, now(thread));
    if file.flags() & flags::O_PATH == 0 && attempt().is_err() {
        let _ = wait(thread, file.nonblocking(), attempt).await;
    }
}
