//! Signals that announce readiness: O_ASYNC, F_SETOWN, F_SETSIG (fcntl(2)); and urgent data, for which an owner is enough.
//!
//! A description with O_ASYNC is registered with its file's wait queues like any other waiter. The announcement is made with
//! such a queue locked; it locks the owner and what sending a signal locks, which never waits for a file's queue: files whose
//! queues signals themselves wake (signalfd) do not announce.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use janua_abi::linux::signal::{SIGIO, SIGURG, SigInfo, si};
use janua_kernel::wait::PollTable;
use janua_object::file::{OwnerKind, SignalOwner, flags};
use janua_object::{Events, OpenFile};
use janua_rt::{Mutex, Notify, Target};

use crate::task::access;
use crate::thread::ThreadExt;
use crate::{Kernel, Seat, Task, Thread, signal};

struct Announcer {
    owner: Arc<Mutex<SignalOwner>>,
    kernel: Weak<Kernel>,
    fd: i32,
}

/// `si_band` of a message.
const MESSAGE: u64 = 0x441;

/// Whom to notify of something about a file other than readiness, by which descriptor.
pub struct Message {
    pub owner: Arc<Mutex<SignalOwner>>,
    kernel: Weak<Kernel>,
    fd: i32,
}

impl Message {
    pub fn of(thread: &Thread, file: &OpenFile, fd: i32) -> Message {
        Message { owner: file.signal_owner(), kernel: Arc::downgrade(&thread.kernel), fd }
    }

    pub fn send(&self) {
        let Some(kernel) = self.kernel.upgrade() else { return };
        let owner = *self.owner.lock();
        let info = match owner.signal {
            0 => SigInfo::new(SIGIO, si::KERNEL),
            number => SigInfo::poll(number, si::POLL_MSG, MESSAGE, self.fd),
        };
        send(&kernel, &owner, info);
    }
}

/// Announces urgent data.
struct UrgentAnnouncer {
    owner: Arc<Mutex<SignalOwner>>,
    kernel: Weak<Kernel>,
}

impl Notify for Announcer {
    fn notify(&self, events: u32) {
        let Some(kernel) = self.kernel.upgrade() else { return };
        let owner = *self.owner.lock();
        let events = Events::from_bits_truncate(events);
        let info = match owner.signal {
            0 => SigInfo::new(SIGIO, si::KERNEL),
            number => {
                let code = if events.contains(Events::HUP) {
                    si::POLL_HUP
                } else if events.contains(Events::ERR) {
                    si::POLL_ERR
                } else if events.intersects(Events::OUT | Events::WRNORM) {
                    si::POLL_OUT
                } else {
                    si::POLL_IN
                };
                SigInfo::poll(number, code, u64::from(events.bits()), self.fd)
            }
        };
        send(&kernel, &owner, info);
    }
}

impl Notify for UrgentAnnouncer {
    fn notify(&self, _events: u32) {
        let Some(kernel) = self.kernel.upgrade() else { return };
        let owner = *self.owner.lock();
        send(&kernel, &owner, SigInfo::new(SIGURG, si::KERNEL));
    }
}

/// Sends a signal to an owner.
pub fn send(kernel: &Kernel, owner: &SignalOwner, info: SigInfo) {
    let targets: Vec<Arc<Task>> = match owner.kind {
        OwnerKind::None => return,
        OwnerKind::Thread => {
            let target = kernel.tree.lock().thread(owner.id);
            if let Some(target) = target.filter(|target| may_reach(owner, target)) {
                let _ = signal::send_thread(&target, info);
            }
            return;
        }
        OwnerKind::Process => kernel.tree.lock().process(owner.id).cloned().into_iter().collect(),
        OwnerKind::Group => kernel.tree.lock().group(owner.id).cloned().collect(),
    };
    for target in targets {
        let first = target.group.lock().threads.first().cloned();
        if first.as_ref().is_some_and(|first| may_reach(owner, first)) {
            let _ = signal::send_task(&target, info);
        }
    }
}

/// Whether who has named the owner may send it signals: asked for each signal, for the number may be another's by then, or the
/// process have other rights.
fn may_reach(owner: &SignalOwner, target: &Seat) -> bool {
    if access::is_closed(&target.task.kernel, &target.task) {
        return false;
    }
    let target = target.cred();
    owner.euid == 0 || [owner.euid, owner.uid].iter().any(|uid| [target.suid, target.uid].contains(uid))
}

/// Begins or ends announcing after O_ASYNC may have changed.
pub fn follow(thread: &Thread, file: &Arc<OpenFile>, fd: i32) {
    let wanted = file.flags() & flags::O_ASYNC != 0 && file.ops.announces();
    if wanted == file.announce.lock().is_some() {
        return;
    }
    let table = wanted.then(|| {
        let announcer = Announcer { owner: file.signal_owner(), kernel: Arc::downgrade(&thread.kernel), fd };
        let mut table = PollTable::new(Target::Notify(Arc::new(announcer)), u32::MAX);
        file.poll(&thread.caller(), Some(&mut table));
        table
    });
    let old = core::mem::replace(&mut *file.announce.lock(), table);
    drop(old);
}

/// Begins or ends announcing urgent data after the owner has changed.
pub fn follow_urgent(thread: &Thread, file: &OpenFile, wanted: bool) {
    let Some(queue) = file.ops.urgency() else { return };
    if wanted == file.announce_urgent.lock().is_some() {
        return;
    }
    let registration = wanted.then(|| {
        let announcer = UrgentAnnouncer { owner: file.signal_owner(), kernel: Arc::downgrade(&thread.kernel) };
        queue.register(Target::Notify(Arc::new(announcer)), u32::MAX)
    });
    let old = core::mem::replace(&mut *file.announce_urgent.lock(), registration);
    drop(old);
}
