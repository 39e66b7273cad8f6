//! fcntl(2)'s F_NOTIFY: changes of a directory announced by a signal.

use alloc::sync::Arc;

use janua_kernel::{Errno, Result};
use janua_object::OpenFile;
use janua_object::dnotify::change;
use janua_object::file::{OwnerKind, SignalOwner};
use janua_object::vfs::FileKind;
use janua_rt::Notify;

use super::sigio::Message;
use crate::Thread;

struct Listener(Message);

impl Notify for Listener {
    fn notify(&self, _what: u32) {
        self.0.send();
    }
}

/// F_NOTIFY: what is to be announced besides what is already, or nothing any more. Linux ends it when the process closes any descriptor of the
/// description; here it ends with the last one, or the process. ENOTDIR, ENOMEM.
pub fn set(thread: &Thread, fd: i32, file: &Arc<OpenFile>, wanted: u32) -> Result<()> {
    let registry = &thread.kernel.files.inotify;
    let pid = thread.task.pid;
    if wanted & !change::MULTISHOT == 0 {
        if let Some(inode) = file.inode() {
            registry.silence(inode, file.id, Some(pid));
        }
        return Ok(());
    }
    if file.inode().is_none_or(|inode| inode.kind() != FileKind::Directory) {
        return Err(Errno::ENOTDIR);
    }
    let cred = thread.cred();
    let owner = file.signal_owner();
    let mut owner = owner.lock();
    *owner = SignalOwner { kind: OwnerKind::Process, id: pid, signal: owner.signal, uid: cred.uid, euid: cred.euid };
    drop(owner);
    thread.task.announced.store(true, core::sync::atomic::Ordering::SeqCst);
    // Noted first: what is announced from here on ends when the description does.
    file.note_lease();
    registry.announce(file, pid, wanted, Arc::new(Listener(Message::of(thread, file, fd))))
}
