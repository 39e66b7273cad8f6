//! POSIX message queues (mq_overview(7)).

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

use crate::caller::Cred;
use crate::file::{Events, File, OpenFile};
use crate::vfs::access::{self, READ, WRITE};
use crate::vfs::{Attr, FileKind, Perm};

/// Defaults and limits (/proc/sys/fs/mqueue): messages, bytes of a message, queues.
pub const MSG_DEFAULT: usize = 10;
pub const MSGSIZE_DEFAULT: usize = 8192;
pub const MSG_MOST: usize = 65536;
pub const MSGSIZE_MOST: usize = 16 << 20;
const QUEUES_MOST: usize = 256;
/// Priorities are below this.
pub const PRIO_MAX: u32 = 32768;

#[derive(Default)]
struct State {
    /// Highest priority first, then in order of arrival.
    messages: BTreeMap<(Reverse<u32>, u64), Vec<u8>>,
    arrived: u64,
}

/// A queue.
pub struct MessageQueue {
    perm: Perm,
    pub most: usize,
    pub size: usize,
    state: Mutex<State>,
    pub waiters: WaitQueue,
}

impl MessageQueue {
    /// Puts a message in. EMSGSIZE, EAGAIN when full.
    pub fn send(&self, message: &[u8], priority: u32) -> Result<()> {
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
        drop(state);
        self.waiters.wake(Events::READABLE.bits());
        Ok(())
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

/// The queues of a kernel by name.
#[derive(Default)]
pub struct MessageQueues(Mutex<BTreeMap<Vec<u8>, Arc<MessageQueue>>>);

/// How a queue is opened.
pub struct OpenQueue<'a> {
    pub name: &'a [u8],
    pub create: bool,
    pub exclusive: bool,
    /// [`READ`] and [`WRITE`].
    pub want: u32,
    /// Permission bits of a new queue, its capacity and its messages' size.
    pub mode: u32,
    pub most: usize,
    pub size: usize,
}

impl MessageQueues {
    /// ENOENT, EEXIST, EACCES, ENOSPC.
    pub fn open(&self, how: &OpenQueue<'_>, cred: &Cred) -> Result<Arc<MessageQueue>> {
        let mut queues = self.0.lock();
        if let Some(queue) = queues.get(how.name) {
            if how.create && how.exclusive {
                return Err(Errno::EEXIST);
            }
            access::check(&queue.perm, cred, how.want)?;
            return Ok(queue.clone());
        }
        if !how.create {
            return Err(Errno::ENOENT);
        }
        if queues.len() >= QUEUES_MOST {
            return Err(Errno::ENOSPC);
        }
        let mode = FileKind::Regular as u32 | how.mode & 0o777;
        let queue = Arc::new(MessageQueue {
            perm: Perm { mode, uid: cred.fsuid, gid: cred.fsgid },
            most: how.most,
            size: how.size,
            state: Mutex::new(State::default()),
            waiters: WaitQueue::new(),
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
    /// What reading a queue as a file tells: the bytes in it. There are no notifications.
    fn read(&self, _file: &OpenFile, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        let bytes: usize = self.queue.state.lock().messages.values().map(Vec::len).sum();
        let text = alloc::format!("QSIZE:{bytes:<10} NOTIFY:{:<5} SIGNO:{:<5} NOTIFY_PID:{:<6}\n", 0, 0, 0);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        buf.put(&text.as_bytes()[from..])
    }
    fn write(&self, _file: &OpenFile, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    fn poll(&self, _file: &OpenFile, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.queue.waiters);
        }
        let len = self.queue.len();
        let mut events = Events::empty();
        events.set(Events::IN | Events::RDNORM, len > 0);
        events.set(Events::OUT | Events::WRNORM, len < self.queue.most);
        events
    }
    fn seekable(&self) -> bool {
        true
    }
    fn size(&self) -> Result<u64> {
        Ok(80)
    }
    fn attr(&self) -> Result<Attr> {
        let Perm { mode, uid, gid } = self.queue.perm;
        Ok(Attr { mode, uid, gid, nlink: 1, size: 80, blksize: 4096, ..Attr::default() })
    }
    fn label(&self) -> String {
        self.label.clone()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The rights an access mode (O_RDONLY and its kin) asks for.
pub fn rights(mode: u32) -> u32 {
    match mode {
        0 => READ,
        1 => WRITE,
        _ => READ | WRITE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities() {
        let queues = MessageQueues::default();
        let cred = Cred::of_user(0, 0, Vec::new());
        let how = OpenQueue { name: b"q", create: true, exclusive: true, want: READ | WRITE, mode: 0o600, most: 3, size: 4 };
        let queue = queues.open(&how, &cred).unwrap();
        assert!(matches!(queues.open(&how, &cred), Err(Errno::EEXIST)));
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
