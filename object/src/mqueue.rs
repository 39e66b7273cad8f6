//! POSIX message queues (mq_overview(7)).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::cmp::Reverse;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::{Mutex, WaitQueue};

use crate::caller::{Caller, Cred};
use crate::file::{Events, File, OpenFile};
use crate::net::SocketFile;
use crate::net::netlink::NetlinkSocket;
use crate::vfs::access::{self, READ, WRITE};
use crate::vfs::{Attr, FileFlags, FileKind, Perm};

/// Defaults and limits (/proc/sys/fs/mqueue): messages, bytes of a message, queues.
pub const MSG_DEFAULT: usize = 10;
pub const MSGSIZE_DEFAULT: usize = 8192;
pub const MSG_MOST: usize = 65536;
pub const MSGSIZE_MOST: usize = 16 << 20;
const QUEUES_MOST: usize = 256;
/// What a message costs beside its bytes: on Linux a head and a node of a tree.
const OVERHEAD: u64 = 96;
/// Priorities are below this.
pub const PRIO_MAX: u32 = 32768;

/// What happens when a message arrives in an empty queue nobody waits at (mq_notify(3)).
#[derive(Clone)]
pub enum Notify {
    /// The registration goes, and that is all (SIGEV_NONE).
    Nothing,
    Signal {
        signal: u32,
        value: u64,
    },
    /// The C library's thread waits at a netlink socket for this cookie, whose last byte states what happened.
    Thread {
        socket: Arc<OpenFile>,
        cookie: [u8; COOKIE],
    },
}

/// Bytes of a cookie.
pub const COOKIE: usize = 32;
const WOKEN_UP: u8 = 1;
const REMOVED: u8 = 2;

impl Notify {
    /// Notifies the thread, if it is one that waits for that.
    fn notify_thread(&self, what: u8) {
        if let Notify::Thread { socket, cookie } = self
            && let Some(netlink) = netlink_of(socket)
        {
            let mut cookie = *cookie;
            cookie[COOKIE - 1] = what;
            netlink.deliver(&cookie);
        }
    }
}

/// The netlink socket behind a file, if it is one.
pub fn netlink_of(file: &OpenFile) -> Option<&NetlinkSocket> {
    file.downcast::<SocketFile>()?.socket.as_any().downcast_ref()
}

/// A registration: of this process, while it runs the program of this number.
struct Registration {
    pid: u32,
    program: u64,
    notify: Notify,
}

/// Who is to be sent a signal, and with what value: the process, if it runs that program still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub pid: u32,
    pub program: u64,
    pub signal: u32,
    pub value: u64,
}

#[derive(Default)]
struct State {
    /// Highest priority first, then in order of arrival.
    messages: BTreeMap<(Reverse<u32>, u64), Vec<u8>>,
    arrived: u64,
    /// Threads that wait for a message.
    receivers: usize,
    registered: Option<Registration>,
}

/// A queue.
pub struct MessageQueue {
    perm: Perm,
    pub most: usize,
    pub size: usize,
    state: Mutex<State>,
    pub waiters: WaitQueue,
    /// What it counts for its maker, until it goes.
    _charge: Charge,
}

/// What a queue's maker has been charged with, given back when dropped.
pub type Charge = Box<dyn Any + Send + Sync>;

impl MessageQueue {
    /// Puts a message in. Returns the process that is to be notified by a signal: its registration is used up. EMSGSIZE, EAGAIN when full.
    pub fn send(&self, message: &[u8], priority: u32) -> Result<Option<Notice>> {
        if message.len() > self.size {
            return Err(Errno::EMSGSIZE);
        }
        let mut state = self.state.lock();
        if state.messages.len() >= self.most {
            return Err(Errno::EAGAIN);
        }
        let arrived = state.arrived;
        state.arrived += 1;
        state.messages.insert((Reverse(priority), arrived), message.to_vec());
        // Each receiver that waits takes one of the messages there are; this one is announced when it is the first left over.
        let reported = if state.messages.len() == state.receivers + 1 { state.registered.take() } else { None };
        drop(state);
        self.waiters.wake(Events::READABLE.bits());
        let Some(Registration { pid, program, notify }) = reported else { return Ok(None) };
        notify.notify_thread(WOKEN_UP);
        Ok(match notify {
            Notify::Signal { signal, value } => Some(Notice { pid, program, signal, value }),
            _ => None,
        })
    }

    /// Registers a process, as the program it runs, to be notified of the next message. EBUSY while another registration exists.
    pub fn register(&self, pid: u32, program: u64, notify: Notify) -> Result<()> {
        let mut state = self.state.lock();
        if state.registered.is_some() {
            return Err(Errno::EBUSY);
        }
        state.registered = Some(Registration { pid, program, notify });
        Ok(())
    }

    /// The process that is registered.
    pub fn registered(&self) -> Option<u32> {
        self.state.lock().registered.as_ref().map(|registration| registration.pid)
    }

    /// Takes a process' registration back, if it has one.
    pub fn unregister(&self, pid: u32) {
        let taken = self.state.lock().registered.take_if(|registration| registration.pid == pid);
        if let Some(registration) = taken {
            registration.notify.notify_thread(REMOVED);
        }
    }

    /// The caller waits for a message until the result is dropped.
    pub fn receiver(self: &Arc<MessageQueue>) -> Receiver {
        self.state.lock().receivers += 1;
        Receiver(self.clone())
    }

    /// Takes the first message and its priority. EAGAIN when there is none.
    pub fn receive(&self) -> Result<(Vec<u8>, u32)> {
        let taken = self.state.lock().messages.pop_first();
        let ((Reverse(priority), _), message) = taken.ok_or(Errno::EAGAIN)?;
        self.waiters.wake(Events::WRITABLE.bits());
        Ok((message, priority))
    }

    /// Messages in the queue.
    pub fn len(&self) -> usize {
        self.state.lock().messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A thread that waits for a message.
pub struct Receiver(Arc<MessageQueue>);

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.state.lock().receivers -= 1;
    }
}

/// The queues of a kernel by name.
#[derive(Default)]
pub struct MessageQueues(Mutex<BTreeMap<Vec<u8>, Arc<MessageQueue>>>);

/// How a queue is opened.
pub struct OpenQueue<'a> {
    pub name: &'a [u8],
    pub create: bool,
    pub exclusive: bool,
    /// [`READ`] and [`WRITE`].
    pub want: Option<u32>,
    /// Permission bits of a new queue, its capacity and its messages' size.
    pub mode: u32,
    pub most: usize,
    pub size: usize,
}

impl MessageQueues {
    /// ENOENT, EEXIST, EACCES, ENOSPC, and what `charge` returns for the bytes of a new queue.
    pub fn open(
        &self,
        how: &OpenQueue<'_>,
        cred: &Cred,
        charge: impl FnOnce(u64) -> Result<Charge>,
    ) -> Result<Arc<MessageQueue>> {
        let mut queues = self.0.lock();
        if let Some(queue) = queues.get(how.name) {
            if how.create && how.exclusive {
                return Err(Errno::EEXIST);
            }
            access::check(&queue.perm, cred, how.want.ok_or(Errno::EINVAL)?)?;
            return Ok(queue.clone());
        }
        if !how.create {
            return Err(Errno::ENOENT);
        }
        if queues.len() >= QUEUES_MOST {
            return Err(Errno::ENOSPC);
        }
        let mode = FileKind::Regular as u32 | how.mode & 0o777;
        let charge = charge((how.most as u64).saturating_mul(how.size as u64 + OVERHEAD))?;
        let queue = Arc::new(MessageQueue {
            perm: Perm { mode, uid: cred.fsuid, gid: cred.fsgid, flags: FileFlags::empty() },
            most: how.most,
            size: how.size,
            state: Mutex::new(State::default()),
            waiters: WaitQueue::new(),
            _charge: charge,
        });
        queues.insert(how.name.to_vec(), queue.clone());
        Ok(queue)
    }

    /// Takes a name away; who has the queue open keeps it. ENOENT, EACCES.
    pub fn unlink(&self, name: &[u8], cred: &Cred) -> Result<()> {
        let mut queues = self.0.lock();
        let queue = queues.get(name).ok_or(Errno::ENOENT)?;
        // The directory of names is sticky: owners and root only.
        if !access::owns(&queue.perm, cred) {
            return Err(Errno::EACCES);
        }
        queues.remove(name);
        Ok(())
    }
}

/// An open queue.
pub struct QueueFile {
    pub queue: Arc<MessageQueue>,
    label: String,
}

impl QueueFile {
    pub fn new(queue: Arc<MessageQueue>, name: &[u8]) -> QueueFile {
        QueueFile { queue, label: alloc::format!("/{}", String::from_utf8_lossy(name)) }
    }
}

impl File for QueueFile {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    /// What reading a queue as a file returns: the bytes in it, and how (SIGEV_*), by which signal and who is to be notified.
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        let state = self.queue.state.lock();
        let bytes: usize = state.messages.values().map(Vec::len).sum();
        let (how, signal, pid) = match &state.registered {
            None => (0, 0, 0),
            Some(Registration { pid, notify: Notify::Signal { signal, .. }, .. }) => (0, *signal, *pid),
            Some(Registration { pid, notify: Notify::Nothing, .. }) => (1, 0, *pid),
            Some(Registration { pid, notify: Notify::Thread { .. }, .. }) => (2, 0, *pid),
        };
        drop(state);
        let text = alloc::format!("QSIZE:{bytes:<10} NOTIFY:{how:<5} SIGNO:{signal:<5} NOTIFY_PID:{pid:<6}\n");
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        buf.put(&text.as_bytes()[from..])
    }
    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.queue.waiters);
        }
        let len = self.queue.len();
        let mut events = Events::empty();
        events.set(Events::IN | Events::RDNORM, len > 0);
        events.set(Events::OUT | Events::WRNORM, len < self.queue.most);
        events
    }
    /// A process that closes a descriptor of the queue is notified of nothing any more.
    fn flush(&self, _file: &OpenFile, caller: &dyn Caller) {
        self.queue.unregister(caller.pid());
    }
    fn seekable(&self) -> bool {
        true
    }
    fn size(&self) -> Result<u64> {
        Ok(80)
    }
    fn attr(&self) -> Result<Attr> {
        let Perm { mode, uid, gid, .. } = self.queue.perm;
        Ok(Attr { mode, uid, gid, nlink: 1, size: 80, blksize: 4096, ..Attr::default() })
    }
    fn label(&self) -> String {
        self.label.clone()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The rights an access mode (O_RDONLY, O_WRONLY or O_RDWR) asks for; `None` for another.
pub fn rights(mode: u32) -> Option<u32> {
    match mode {
        0 => Some(READ),
        1 => Some(WRITE),
        2 => Some(READ | WRITE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities() {
        let queues = MessageQueues::default();
        let cred = Cred::of_user(0, 0, Vec::new());
        let free = |bytes| {
            assert_eq!(bytes, 3 * (4 + OVERHEAD));
            Ok::<Charge, Errno>(Box::new(()))
        };
        let how =
            OpenQueue { name: b"q", create: true, exclusive: true, want: Some(READ | WRITE), mode: 0o600, most: 3, size: 4 };
        let queue = queues.open(&how, &cred, free).unwrap();
        assert!(matches!(queues.open(&how, &cred, free), Err(Errno::EEXIST)));
        for (text, priority) in [(b"a", 1), (b"b", 5), (b"c", 5)] {
            queue.send(text, priority).unwrap();
        }
        assert_eq!((queue.send(b"d", 0), queue.send(b"12345", 0)), (Err(Errno::EAGAIN), Err(Errno::EMSGSIZE)));
        let order: Vec<u8> = (0..3).filter_map(|_| queue.receive().ok()).map(|(text, _)| text[0]).collect();
        assert_eq!(order, b"bca");
        assert_eq!(queue.receive(), Err(Errno::EAGAIN));
        assert_eq!((queues.unlink(b"q", &cred), queues.unlink(b"q", &cred)), (Ok(()), Err(Errno::ENOENT)));
    }
}
