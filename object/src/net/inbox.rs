//! The receiving side of a stream socket: a byte queue with a limit, and the rule of waking writers.
//!
//! Writers are notified only when one of them has found the queue full, and only once a third of it is free again. A writer that
//! finds no room sets `full` and looks again; a reader takes bytes out and then looks at `full`. One of the two sees the other.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::WriteBuf;

use crate::net::bytes::{ByteQueue, Note};

/// What has arrived and was not read yet.
pub struct Inbox<N> {
    pub bytes: ByteQueue<N>,
    full: AtomicBool,
    limit: AtomicUsize,
}

impl<N: Note> Default for Inbox<N> {
    fn default() -> Self {
        Inbox { bytes: ByteQueue::default(), full: AtomicBool::new(false), limit: AtomicUsize::new(usize::MAX) }
    }
}

impl<N: Note> Inbox<N> {
    /// Adds bytes up to `limit` in all: how many. EAGAIN when full; a reader will then notify when there is room.
    pub fn write(&self, buf: &mut WriteBuf<'_>, limit: usize, note: Option<N>) -> Result<usize> {
        match self.bytes.write(buf, limit, note.clone()) {
            Err(Errno::EAGAIN) => {
                self.announce_full(limit);
                self.bytes.write(buf, limit, note)
            }
            other => other,
        }
    }

    fn announce_full(&self, limit: usize) {
        self.limit.store(limit, Ordering::SeqCst);
        self.full.store(true, Ordering::SeqCst);
    }

    fn has_room(&self, limit: usize) -> bool {
        limit.saturating_sub(self.bytes.len()) >= (limit / 3).max(1)
    }

    /// Whether a poller should be notified that it can write. When not, a reader will notify.
    pub fn writable(&self, limit: usize) -> bool {
        if self.has_room(limit) {
            return true;
        }
        self.announce_full(limit);
        self.has_room(limit)
    }

    /// After a read: whether writers must be notified now.
    pub fn freed(&self) -> bool {
        self.full.load(Ordering::SeqCst)
            && self.has_room(self.limit.load(Ordering::SeqCst))
            && self.full.swap(false, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_notified_once_and_only_when_they_wait() {
        let inbox = Inbox::<()>::default();
        let write = |len: usize| inbox.write(&mut WriteBuf::kernel(&[0; 90][..len]), 90, None);
        let read = |len: usize| inbox.bytes.read(len, |_, _| true, |bytes| Ok(bytes.len())).unwrap().0;
        assert_eq!(write(50), Ok(50));
        read(50);
        assert!(!inbox.freed());
        assert_eq!(write(90), Ok(90));
        assert_eq!(write(1), Err(Errno::EAGAIN));
        read(10);
        assert!(!inbox.freed(), "less than a third is free");
        read(30);
        assert!(inbox.freed());
        assert!(!inbox.freed());
    }
}
