//! Wait queues.
//!
//! The rule of waiting: register, test the condition again, then wait. Who makes the condition true changes the state first
//! and calls [`WaitQueue::wake_all`] after. One of the two sees the other: `register` counts itself before the second test,
//! and `wake` reads the count after the change, with a full fence between on both sides. So no wake-up is lost, and a queue
//! nobody waits on costs its waker one load.
//!
//! A registration is persistent: a wake-up leaves it in place, dropping it takes it out. A future that is dropped half-way
//! therefore leaves nothing behind. A [`Notify`] is called while the queue is locked, and locks nothing but its own state (lock order:
//! queue, then target). Tasks are woken after: one that runs at once, on the waker's core, would find the queue locked. So a task may
//! be woken that has just left; wakers allow for that.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use core::task::Waker;

use crate::atomic::{AtomicUsize, fence};
use crate::sync::Mutex;

/// Something other than a waiting call that wants to be notified (an epoll item, a signal-driven file).
pub trait Notify: Send + Sync {
    /// The queue was woken for `events` (poll bits; 0 means unknown, look yourself).
    fn notify(&self, events: u32);
    /// For targets of which one is enough for a wake-up that names its events: notifies it, unless one before it was `enough`. Whether it is
    /// enough now; `None` where each wants to be notified, and this one was not.
    fn notify_exclusive(&self, _events: u32, _enough: bool) -> Option<bool> {
        None
    }
}

/// Whom a queue notifies.
#[derive(Clone)]
pub enum Target {
    Task(Waker),
    Notify(Arc<dyn Notify>),
}

struct Entry {
    id: u64,
    /// Poll bits of interest; a wake for other bits passes over this entry.
    mask: u32,
    target: Target,
}

struct Inner {
    waiting: AtomicUsize,
    list: Mutex<List>,
}

struct List {
    next_id: u64,
    entries: VecDeque<Entry>,
}

/// Tasks woken without the queue's lock; any more are woken with it.
const LATER: usize = 4;

/// Tasks to be woken, when this is dropped.
#[derive(Default)]
struct Later {
    tasks: [Option<Waker>; LATER],
    count: usize,
}

impl Later {
    fn wake(&mut self, waker: &Waker) {
        match self.tasks.get_mut(self.count) {
            Some(place) => {
                *place = Some(waker.clone());
                self.count += 1;
            }
            None => waker.wake_by_ref(),
        }
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        for task in &mut self.tasks[..self.count] {
            if let Some(waker) = task.take() {
                waker.wake();
            }
        }
    }
}

/// A queue of waiters. Clones are handles to the same queue.
#[derive(Clone)]
pub struct WaitQueue(Arc<Inner>);

/// A place in a queue, given up on drop.
pub struct Registration {
    queue: WaitQueue,
    id: u64,
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitQueue {
    pub fn new() -> WaitQueue {
        WaitQueue(Arc::new(Inner {
            waiting: AtomicUsize::new(0),
            list: Mutex::new(List { next_id: 0, entries: VecDeque::new() }),
        }))
    }

    /// Adds `target`, to be notified of wakes that touch `mask`. Test the condition again afterwards.
    #[must_use = "dropping the registration leaves the queue"]
    pub fn register(&self, target: Target, mask: u32) -> Registration {
        let mut list = self.0.list.lock();
        let id = list.next_id;
        list.next_id += 1;
        list.entries.push_back(Entry { id, mask, target });
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        drop(list);
        fence(Ordering::SeqCst);
        Registration { queue: self.clone(), id }
    }

    /// Whether anybody waits. For decisions that may be wrong by a race, never for waking.
    pub fn is_empty(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) == 0
    }

    /// Notifies every waiter whose mask touches `events` (0: every waiter).
    pub fn wake(&self, events: u32) {
        fence(Ordering::SeqCst);
        if self.0.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        // Dropped after the lock, since it was made before.
        let mut later = Later::default();
        let list = self.0.list.lock();
        let mut enough = false;
        for entry in &list.entries {
            if events == 0 || entry.mask & events != 0 {
                match &entry.target {
                    Target::Task(waker) => later.wake(waker),
                    Target::Notify(target) => match target.notify_exclusive(events, enough) {
                        Some(answer) => enough = answer,
                        None => target.notify(events),
                    },
                }
            }
        }
    }

    /// Notifies every [`Target::Notify`] and one [`Target::Task`] whose mask touches `events` (0: every mask), the tasks in turn.
    /// For conditions that one waiter uses up. The one notified may be about to leave for another reason: a waiter that leaves
    /// while there is work left must, after its registration is gone, call this again.
    pub fn wake_one(&self, events: u32) {
        fence(Ordering::SeqCst);
        if self.0.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut later = Later::default();
        let mut list = self.0.list.lock();
        let mut reported = None;
        for (at, entry) in list.entries.iter().enumerate() {
            if events == 0 || entry.mask & events != 0 {
                match &entry.target {
                    Target::Task(waker) if reported.is_none() => {
                        reported = Some(at);
                        later.wake(waker);
                    }
                    Target::Task(_) => {}
                    Target::Notify(target) => target.notify(events),
                }
            }
        }
        // The one notified goes to the end, so that the next wake-up is another's.
        if let Some(entry) = reported.and_then(|at| list.entries.remove(at)) {
            list.entries.push_back(entry);
        }
    }

    /// Notifies every waiter.
    pub fn wake_all(&self) {
        self.wake(0);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut list = self.queue.0.list.lock();
        if let Some(at) = list.entries.iter().position(|entry| entry.id == self.id) {
            let entry = list.entries.remove(at);
            self.queue.0.waiting.fetch_sub(1, Ordering::Relaxed);
            // A target's own drop may take locks; let it run without ours.
            drop(list);
            drop(entry);
        }
    }
}
