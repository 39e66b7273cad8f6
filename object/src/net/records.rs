//! The record queue of a datagram or sequenced-packet socket.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_rt::Mutex;

/// One message, with what travels beside its bytes.
pub struct Record<T> {
    pub data: Box<[u8]>,
    pub with: T,
    /// It is empty, and somebody has peeked at it.
    peeked: bool,
}

impl<T> Record<T> {
    pub fn new(data: Box<[u8]>, with: T) -> Record<T> {
        Record { data, with, peeked: false }
    }
}

/// A queue of whole messages. The bytes are copied in and out by the callers, with the lock held only by who
/// peeks at a message, which stays in the queue.
pub struct RecordQueue<T> {
    list: Mutex<VecDeque<Record<T>>>,
    /// Messages and their bytes, for readers without the lock. Changed with the list locked.
    count: AtomicUsize,
    bytes: AtomicUsize,
}

impl<T> Default for RecordQueue<T> {
    fn default() -> Self {
        RecordQueue { list: Mutex::new(VecDeque::new()), count: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }
}

impl<T> RecordQueue<T> {
    /// Messages waiting.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }

    /// Adds a message; gives it back when `most` are waiting already.
    pub fn push(&self, record: Record<T>, most: usize) -> Result<(), Record<T>> {
        let mut list = self.list.lock();
        if list.len() >= most {
            return Err(record);
        }
        self.bytes.fetch_add(record.data.len(), Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
        list.push_back(record);
        Ok(())
    }

    /// Takes the first message.
    pub fn pop(&self) -> Option<Record<T>> {
        self.pop_if(|_| true)
    }

    /// Takes the first message if it is one that `wanted` accepts.
    pub fn pop_if(&self, wanted: impl FnOnce(&Record<T>) -> bool) -> Option<Record<T>> {
        let mut list = self.list.lock();
        if !wanted(list.front()?) {
            return None;
        }
        let record = list.pop_front()?;
        self.bytes.fetch_sub(record.data.len(), Ordering::SeqCst);
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(record)
    }

    /// Looks at the message that holds the byte `start` bytes behind the first one, or at an empty one there that nobody has peeked at;
    /// at the first without a start. The queue is locked. `look` gets the message and what is left to skip of it.
    pub fn peek<R>(&self, start: Option<usize>, look: impl FnOnce(&Record<T>, usize) -> R) -> Option<R> {
        let mut skip = start.unwrap_or(0);
        for record in &mut *self.list.lock() {
            match skip.checked_sub(record.data.len()) {
                Some(rest) if skip > 0 || start.is_some() && record.peeked => skip = rest,
                _ => {
                    record.peeked = record.data.is_empty();
                    return Some(look(record, skip));
                }
            }
        }
        None
    }

    /// Bytes of the first message.
    pub fn first_len(&self) -> usize {
        self.list.lock().front().map_or(0, |record| record.data.len())
    }

    /// Shows every message.
    pub fn each(&self, see: impl FnMut(&Record<T>)) {
        self.list.lock().iter().for_each(see);
    }

    /// Drops every message, without the lock held: how many there were.
    pub fn clear(&self) -> usize {
        let all = {
            let mut list = self.list.lock();
            self.bytes.store(0, Ordering::SeqCst);
            self.count.store(0, Ordering::SeqCst);
            core::mem::take(&mut *list)
        };
        all.len()
    }
}
