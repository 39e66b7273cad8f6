//! Wait queues.
//!
//! The rule of waiting: register, test the condition again, then wait. Who makes the condition true changes the state first
//! and calls [`WaitQueue::wake_all`] after. One of the two sees the other: `register` counts itself before the second test,
//! and `wake` reads the count after the change, with a full fence between on both sides. So no wake-up is lost, and a queue
//! nobody waits on costs its waker one load.
//!
//! A registration is persistent: a wake-up leaves it in place, dropping it takes it out. A future that is dropped half-way
//! therefore leaves nothing behind. A [`Notify`] is called while the queue is locked; what it locks comes behind every queue it may be
//! registered with (lock order: queue, then target), and it wakes none of those. Tasks are woken without the lock, however many there are:
//! one that runs at once, on the waker's core, would find the queue locked. So a task may be woken that has just left; wakers allow for that.
//!
//! A waker wakes no queue that others than one thread wait on: a [`Notify`] may have had it woken, under the lock of that same queue, and each queue on
//! the way would take its part of the stack. It leaves that to whom it wakes.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use core::task::Waker;

use crate::atomic::{AtomicUsize, fence};
use crate::sync::{Mutex, MutexGuard};

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
    /// Ascends from the front of the list to its end.
    turn: u64,
    /// Poll bits of interest; a wake for other bits passes over this entry.
    mask: u32,
    /// `None` once its registration has been given up, until it is taken out of the list.
    target: Option<Target>,
}

struct Inner {
    waiting: AtomicUsize,
    list: Mutex<List>,
}

struct List {
    /// The next entry's `id`, and the `turn` of the next that goes to the end.
    next: u64,
    entries: VecDeque<Entry>,
    /// How many of them have been given up.
    dead: usize,
}

impl List {
    /// Gives an entry up, however many there are before and behind it: who waits for one file in a thousand ways leaves as often. Its target.
    fn give_up(&mut self, id: u64) -> Option<Target> {
        let entries = &mut self.entries;
        let at = entries.partition_point(|entry| entry.turn < id);
        // One that has had its turn is nearer the end.
        let at = if entries.get(at).is_some_and(|entry| entry.id == id) {
            at
        } else {
            entries.iter().rposition(|entry| entry.id == id)?
        };
        let target = entries[at].target.take();
        self.dead += 1;
        while entries.front().is_some_and(|entry| entry.target.is_none()) {
            entries.pop_front();
            self.dead -= 1;
        }
        while entries.back().is_some_and(|entry| entry.target.is_none()) {
            entries.pop_back();
            self.dead -= 1;
        }
        if self.dead > entries.len() / 2 {
            entries.retain(|entry| entry.target.is_some());
            self.dead = 0;
        }
        target
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Tasks woken for one hold of the queue's lock. One in models, which come to the next hold with the second task then.
const LATER: usize = if cfg!(loom) { 1 } else { 4 };

/// Tasks to be woken, when this is dropped.
#[derive(Default)]
struct Later {
    tasks: [Option<Waker>; LATER],
    count: usize,
}

impl Later {
    /// Has a task woken. False when there is no room for it.
    fn wake(&mut self, waker: &Waker) -> bool {
        let Some(place) = self.tasks.get_mut(self.count) else { return false };
        *place = Some(waker.clone());
        self.count += 1;
        true
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

/// How far a wake-up has come that needs more than one hold of the lock.
struct Pass {
    events: u32,
    enough: bool,
    /// The next entry's turn, and the last's: what goes to the end meanwhile is woken meanwhile, or tests after.
    from: u64,
    end: u64,
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
            list: Mutex::new(List { next: 0, entries: VecDeque::new(), dead: 0 }),
        }))
    }

    /// Adds `target`, to be notified of wakes that touch `mask`. Test the condition again afterwards.
    #[must_use = "dropping the registration leaves the queue"]
    pub fn register(&self, target: Target, mask: u32) -> Registration {
        self.add(self.0.list.lock(), target, mask)
    }

    /// As [`WaitQueue::register`], for callers that can be refused: `None` when there is no memory for one more.
    #[must_use = "dropping the registration leaves the queue"]
    pub fn try_register(&self, target: Target, mask: u32) -> Option<Registration> {
        let mut list = self.0.list.lock();
        list.entries.try_reserve(1).ok()?;
        Some(self.add(list, target, mask))
    }

    fn add(&self, mut list: MutexGuard<'_, List>, target: Target, mask: u32) -> Registration {
        let id = list.number();
        list.entries.push_back(Entry { id, turn: id, mask, target: Some(target) });
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
        let mut pass = Pass { events, enough: false, from: 0, end: u64::MAX };
        while !self.wake_some(&mut pass) {}
    }

    /// Goes on with a wake-up, for as many tasks as are woken for one hold of the lock: whether that was the last.
    fn wake_some(&self, pass: &mut Pass) -> bool {
        // Dropped after the lock, since it was made before.
        let mut later = Later::default();
        let list = self.0.list.lock();
        let first = if pass.from == 0 { 0 } else { list.entries.partition_point(|entry| entry.turn < pass.from) };
        for entry in list.entries.range(first..) {
            if entry.turn > pass.end {
                break;
            }
            if pass.events == 0 || entry.mask & pass.events != 0 {
                match &entry.target {
                    None => {}
                    Some(Target::Task(waker)) if later.wake(waker) => {}
                    Some(Target::Task(_)) => {
                        (pass.from, pass.end) = (entry.turn, pass.end.min(list.next));
                        return false;
                    }
                    Some(Target::Notify(target)) => match target.notify_exclusive(pass.events, pass.enough) {
                        Some(answer) => pass.enough = answer,
                        None => target.notify(pass.events),
                    },
                }
            }
        }
        true
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
                    None => {}
                    Some(Target::Task(waker)) if reported.is_none() => {
                        reported = Some(at);
                        // There is room for the first.
                        later.wake(waker);
                    }
                    Some(Target::Task(_)) => {}
                    Some(Target::Notify(target)) => target.notify(events),
                }
            }
        }
        // The one notified goes to the end, so that the next wake-up is another's.
        if let Some(entry) = reported.and_then(|at| list.entries.remove(at)) {
            let turn = list.number();
            list.entries.push_back(Entry { turn, ..entry });
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
        if let Some(target) = list.give_up(self.id) {
            self.queue.0.waiting.fetch_sub(1, Ordering::Relaxed);
            // A target's own drop may take locks; let it run without ours.
            drop(list);
            drop(target);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::atomic::AtomicU32;

    #[derive(Default)]
    struct Heard(AtomicU32);

    impl Notify for Heard {
        fn notify(&self, _events: u32) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_leaves_among_others_leaves_them() {
        let (queue, heard) = (WaitQueue::new(), Arc::new(Heard::default()));
        let mut all: Vec<_> = (0..9).map(|_| Some(queue.register(Target::Notify(heard.clone()), 1))).collect();
        let mut left = 9;
        for at in [4, 0, 8, 5, 3, 1, 2, 7, 6] {
            all[at] = None;
            left -= 1;
            heard.0.store(0, Ordering::Relaxed);
            queue.wake(1);
            assert_eq!(heard.0.load(Ordering::Relaxed), left);
            assert_eq!(queue.0.list.lock().entries.is_empty(), queue.is_empty());
        }
    }

    #[test]
    fn who_has_had_its_turn_is_found_where_it_is() {
        let queue = WaitQueue::new();
        let all: Vec<_> = (0..5).map(|_| queue.register(Target::Task(Waker::noop().clone()), 1)).collect();
        (0..3).for_each(|_| queue.wake_one(1));
        drop(all);
        assert!(queue.is_empty() && queue.0.list.lock().entries.is_empty());
    }

    /// Of one that is dropped front to back behind as many others each would look through all of those.
    #[test]
    fn many_leave_behind_many_others_as_fast_as_alone() {
        const MANY: usize = 100_000;
        let (queue, heard) = (WaitQueue::new(), Arc::new(Heard::default()));
        let some = || (0..MANY).map(|_| queue.register(Target::Notify(heard.clone()), 1)).collect::<Vec<_>>();
        let (first, second) = (some(), some());
        drop(second);
        queue.wake(1);
        assert_eq!(heard.0.load(Ordering::Relaxed), MANY as u32);
        drop(first);
        assert!(queue.is_empty());
    }
}
