//! The queues of waiters.
//!
//! A key hashes to a bucket; a bucket holds the waiters of all its keys in order of arrival, and the locks with priority
//! inheritance that have waiters.
//!
//! No wake-up is lost: a waiter counts itself in its bucket, then reads the word; a waker's program has changed the word, then the
//! waker reads the count, with a full fence between on both sides. A bucket nobody waits in costs the waker one load.
//!
//! Plain words are read with no lock held, since a page may take the host as long as a disk does, and a bucket is shared with keys of others. A
//! waiter joins only if no waker has had the bucket since before it read the word ([`Bucket::wakes`]): so it stands in the queue as if it
//! had joined when it read. Words of locks with priority inheritance change together with the queue, so they are touched before
//! ([`super::pi`]).
//!
//! A waiter's `state` is written under the lock of the bucket it is in, when it is taken out; who waits reads it without. Wakers
//! are called with no lock held. Two buckets are locked in order of their numbers.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use core::task::Waker;

use janua_kernel::{Errno, Result};
use janua_object::mm::FutexKey;
use janua_rt::{Mutex, MutexGuard};
use smallvec::SmallVec;

const BUCKETS: usize = 256;

/// How often a word is read at most while others are at its bucket each time.
const TRIES: usize = 64;

/// The state of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Waiting {
    Queued = 0,
    Woken = 1,
    /// The lock has been handed over.
    Owns = 2,
}

/// Someone who waits: what both sides hold.
#[derive(Default)]
pub struct Waiter {
    state: AtomicU32,
    /// The bucket it is in; changes by requeueing, under the locks of both.
    bucket: AtomicUsize,
    /// It has been moved to the queue of a lock with priority inheritance.
    pub moved: AtomicBool,
}

impl Waiter {
    pub fn state(&self) -> Waiting {
        match self.state.load(Ordering::Acquire) {
            0 => Waiting::Queued,
            1 => Waiting::Woken,
            _ => Waiting::Owns,
        }
    }

    pub fn set(&self, state: Waiting) {
        self.state.store(state as u32, Ordering::Release);
    }
}

/// What a waiter in a plain queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Wake,
    /// To be moved to this lock with priority inheritance, for a thread.
    Move {
        lock: FutexKey,
        tid: u32,
    },
}

/// A waiter in its bucket.
pub struct Entry {
    pub key: FutexKey,
    pub bitset: u32,
    pub waiter: Arc<Waiter>,
    pub waker: Waker,
    pub purpose: Purpose,
}

/// A lock with priority inheritance that has waiters. While it has any, its word has FUTEX_WAITERS set, so that every change
/// goes through the kernel and `owner` stays true.
pub struct Lock {
    pub key: FutexKey,
    /// Where the word is in the waiters' memory.
    pub addr: usize,
    pub owner: u32,
    pub waiters: VecDeque<LockWaiter>,
}

/// A waiter for such a lock.
pub struct LockWaiter {
    pub tid: u32,
    pub waiter: Arc<Waiter>,
    pub waker: Waker,
}

/// What a bucket's lock protects.
#[derive(Default)]
pub struct Queues {
    pub entries: VecDeque<Entry>,
    pub locks: Vec<Lock>,
}

#[derive(Default)]
struct Bucket {
    /// Waiters in the bucket and on their way into it.
    waiting: AtomicUsize,
    /// How often wakers have had the queues, and how often waiters have come. They change with the lock held.
    wakes: AtomicUsize,
    joins: AtomicUsize,
    queues: Mutex<Queues>,
}

impl Bucket {
    /// The queues, locked by who takes waiters out.
    fn lock_to_wake(&self) -> MutexGuard<'_, Queues> {
        let queues = self.queues.lock();
        self.wakes.fetch_add(1, Ordering::Release);
        queues
    }

    /// What differs whenever a waker has had the queues, or a waiter has come.
    fn state(&self) -> [usize; 2] {
        [&self.wakes, &self.joins].map(|count| count.load(Ordering::Acquire))
    }
}

/// Those to be woken once the locks are gone.
pub type Wakers = SmallVec<[Waker; 4]>;

/// All futexes of a kernel.
pub struct FutexTable {
    buckets: Box<[Bucket]>,
    /// Waiters for locks with priority inheritance, all together.
    lock_waiters: AtomicUsize,
}

impl Default for FutexTable {
    fn default() -> Self {
        FutexTable { buckets: (0..BUCKETS).map(|_| Bucket::default()).collect(), lock_waiters: AtomicUsize::new(0) }
    }
}

/// The bucket of a key.
pub fn bucket_of(key: &FutexKey) -> usize {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let word = match *key {
        FutexKey::Private { mm, addr } => mm.wrapping_mul(MIX) ^ (addr as u64 >> 2),
        FutexKey::Shared { dev, ino, offset } => (dev ^ ino.wrapping_mul(MIX)).wrapping_mul(MIX) ^ (offset >> 2),
    };
    (word.wrapping_mul(MIX) >> 32) as usize % BUCKETS
}

/// The queues of two keys, locked.
pub struct Both<'a> {
    first: MutexGuard<'a, Queues>,
    second: Option<MutexGuard<'a, Queues>>,
    swapped: bool,
}

impl Both<'_> {
    /// The queues of the key named first.
    pub fn from(&mut self) -> &mut Queues {
        match &mut self.second {
            Some(second) if self.swapped => second,
            _ => &mut self.first,
        }
    }

    /// The queues of the key named second; may be the same.
    pub fn to(&mut self) -> &mut Queues {
        match &mut self.second {
            Some(second) if !self.swapped => second,
            _ => &mut self.first,
        }
    }
}

impl FutexTable {
    /// Queues a waiter if `check` (which looks at the word, with no lock held) succeeds. `false` when others were at the bucket each time:
    /// the waiter is not queued then, and may take it for a wake-up for nothing, as a call may always end with one.
    pub fn enqueue(&self, entry: Entry, mut check: impl FnMut() -> Result<()>) -> Result<bool> {
        let at = bucket_of(&entry.key);
        let bucket = &self.buckets[at];
        bucket.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        for _ in 0..TRIES {
            let seen = bucket.wakes.load(Ordering::Acquire);
            if let Err(errno) = check() {
                bucket.waiting.fetch_sub(1, Ordering::Relaxed);
                return Err(errno);
            }
            let mut queues = bucket.queues.lock();
            if bucket.wakes.load(Ordering::Relaxed) != seen {
                continue;
            }
            bucket.joins.fetch_add(1, Ordering::Release);
            entry.waiter.bucket.store(at, Ordering::Relaxed);
            entry.waiter.moved.store(false, Ordering::Relaxed);
            entry.waiter.set(Waiting::Queued);
            queues.entries.push_back(entry);
            return Ok(true);
        }
        bucket.waiting.fetch_sub(1, Ordering::Relaxed);
        Ok(false)
    }

    /// Takes a waiter out: false when a waker has done so already.
    pub fn dequeue(&self, waiter: &Arc<Waiter>) -> bool {
        if waiter.state() != Waiting::Queued {
            return false;
        }
        loop {
            let at = waiter.bucket.load(Ordering::Acquire);
            let bucket = &self.buckets[at];
            let mut queues = bucket.queues.lock();
            if waiter.bucket.load(Ordering::Acquire) != at {
                continue;
            }
            if let Some(at) = queues.entries.iter().position(|entry| Arc::ptr_eq(&entry.waiter, waiter)) {
                let entry = queues.entries.remove(at);
                drop(queues);
                bucket.waiting.fetch_sub(1, Ordering::Relaxed);
                drop(entry);
                return true;
            }
            let Queues { locks, .. } = &mut *queues;
            for which in 0..locks.len() {
                let waiters = &mut locks[which].waiters;
                if let Some(at) = waiters.iter().position(|other| Arc::ptr_eq(&other.waiter, waiter)) {
                    waiters.remove(at);
                    if waiters.is_empty() {
                        locks.swap_remove(which);
                    }
                    self.lock_waiters.fetch_sub(1, Ordering::Relaxed);
                    return true;
                }
            }
            return false;
        }
    }

    /// Wakes up to `most` waiters of a key whose bitset touches `bitset`: how many. EINVAL when one waits to be moved.
    pub fn wake(&self, key: &FutexKey, most: usize, bitset: u32) -> Result<usize> {
        let bucket = &self.buckets[bucket_of(key)];
        fence(Ordering::SeqCst);
        if bucket.waiting.load(Ordering::Relaxed) == 0 {
            return Ok(0);
        }
        let mut wakers = Wakers::new();
        let result = {
            let mut queues = bucket.lock_to_wake();
            self.take(&mut queues, key, most, bitset, &mut wakers)
        };
        for waker in wakers {
            waker.wake();
        }
        result
    }

    /// [`FutexTable::wake`] with the bucket locked; the wakers are for the caller to call.
    pub fn take(&self, queues: &mut Queues, key: &FutexKey, most: usize, bitset: u32, wakers: &mut Wakers) -> Result<usize> {
        let (mut at, mut count) = (0, 0);
        while at < queues.entries.len() && count < most {
            let entry = &queues.entries[at];
            if entry.key != *key || entry.bitset & bitset == 0 {
                at += 1;
                continue;
            }
            if entry.purpose != Purpose::Wake {
                return if count > 0 { Ok(count) } else { Err(Errno::EINVAL) };
            }
            if let Some(entry) = queues.entries.remove(at) {
                self.left(key);
                entry.waiter.set(Waiting::Woken);
                wakers.push(entry.waker);
                count += 1;
            }
        }
        Ok(count)
    }

    /// An entry has been taken out of the bucket of `key`.
    pub fn left(&self, key: &FutexKey) {
        self.buckets[bucket_of(key)].waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Puts a plain waiter into the bucket of another key. Both are locked.
    pub fn move_entry(&self, both: &mut Both<'_>, mut entry: Entry, to: &FutexKey) {
        let bucket = bucket_of(to);
        self.left(&entry.key);
        self.buckets[bucket].waiting.fetch_add(1, Ordering::Relaxed);
        self.buckets[bucket].joins.fetch_add(1, Ordering::Release);
        entry.key = *to;
        entry.waiter.bucket.store(bucket, Ordering::Release);
        both.to().entries.push_back(entry);
    }

    /// Locks the queues of a key.
    pub fn lock(&self, key: &FutexKey) -> MutexGuard<'_, Queues> {
        self.buckets[bucket_of(key)].queues.lock()
    }

    /// Locks the queues of two keys, to take waiters out.
    pub fn lock_both(&self, from: &FutexKey, to: &FutexKey) -> Both<'_> {
        let (from, to) = (bucket_of(from), bucket_of(to));
        let first = self.buckets[from.min(to)].lock_to_wake();
        let second = (from != to).then(|| self.buckets[from.max(to)].lock_to_wake());
        Both { first, second, swapped: from > to }
    }

    /// [`FutexTable::lock_both`] if `check` (which looks at the first word, with no lock held) succeeds, while nobody has come to the first
    /// queue or taken anybody out since. EAGAIN when somebody did each time.
    pub fn lock_both_if(&self, from: &FutexKey, to: &FutexKey, mut check: impl FnMut() -> Result<()>) -> Result<Both<'_>> {
        let bucket = &self.buckets[bucket_of(from)];
        for _ in 0..TRIES {
            let [wakes, joins] = bucket.state();
            check()?;
            let both = self.lock_both(from, to);
            // One for this lock.
            if bucket.state() == [wakes.wrapping_add(1), joins] {
                return Ok(both);
            }
        }
        Err(Errno::EAGAIN)
    }

    /// Queues a waiter for a lock, whose bucket is `queues`.
    pub fn add_lock_waiter(&self, queues: &mut Queues, key: &FutexKey, addr: usize, owner: u32, waiter: LockWaiter) {
        waiter.waiter.bucket.store(bucket_of(key), Ordering::Release);
        self.lock_waiters.fetch_add(1, Ordering::SeqCst);
        match queues.locks.iter_mut().find(|lock| lock.key == *key) {
            Some(lock) => lock.waiters.push_back(waiter),
            None => queues.locks.push(Lock { key: *key, addr, owner, waiters: VecDeque::from([waiter]) }),
        }
    }

    /// Takes back the waiter that was queued last for a lock, whose bucket has been locked since.
    pub fn take_back_lock_waiter(&self, queues: &mut Queues, key: &FutexKey) {
        let Some(at) = queues.locks.iter().position(|lock| lock.key == *key) else { return };
        let lock = &mut queues.locks[at];
        if let Some(last) = lock.waiters.pop_back() {
            self.lock_waiters.fetch_sub(1, Ordering::Relaxed);
            last.waiter.set(Waiting::Woken);
        }
        if lock.waiters.is_empty() {
            queues.locks.swap_remove(at);
        }
    }

    /// The next to own a lock, and whether more wait after it.
    pub fn next_owner(queues: &Queues, key: &FutexKey) -> Option<(u32, bool)> {
        let lock = queues.locks.iter().find(|lock| lock.key == *key)?;
        lock.waiters.front().map(|waiter| (waiter.tid, lock.waiters.len() > 1))
    }

    /// Who owns a lock that others wait for.
    pub fn owner(queues: &Queues, key: &FutexKey) -> Option<u32> {
        queues.locks.iter().find(|lock| lock.key == *key).map(|lock| lock.owner)
    }

    /// Hands a lock to the next waiter, whose tid its word has already. Returns whom to wake.
    pub fn hand_over(&self, queues: &mut Queues, key: &FutexKey) -> Option<Waker> {
        let at = queues.locks.iter().position(|lock| lock.key == *key)?;
        let lock = &mut queues.locks[at];
        let next = lock.waiters.pop_front()?;
        lock.owner = next.tid;
        if lock.waiters.is_empty() {
            queues.locks.swap_remove(at);
        }
        self.lock_waiters.fetch_sub(1, Ordering::Relaxed);
        next.waiter.set(Waiting::Owns);
        Some(next.waker)
    }

    /// Keys and addresses of the locks a thread owns that others wait for.
    pub fn owned_by(&self, tid: u32) -> Vec<(FutexKey, usize)> {
        if self.lock_waiters.load(Ordering::SeqCst) == 0 {
            return Vec::new();
        }
        let mut owned = Vec::new();
        for bucket in &self.buckets {
            let queues = bucket.queues.lock();
            owned.extend(queues.locks.iter().filter(|lock| lock.owner == tid).map(|lock| (lock.key, lock.addr)));
        }
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(addr: usize) -> FutexKey {
        FutexKey::Private { mm: 1, addr }
    }

    fn entry(addr: usize, bitset: u32) -> (Arc<Waiter>, Entry) {
        let waiter = Arc::new(Waiter::default());
        let waker = Waker::noop().clone();
        (waiter.clone(), Entry { key: key(addr), bitset, waiter, waker, purpose: Purpose::Wake })
    }

    #[test]
    fn wakes_in_order_of_arrival_by_key_and_bitset() {
        let table = FutexTable::default();
        let mut waiters = Vec::new();
        for (addr, bitset) in [(4, 1), (4, 2), (8, 1), (4, 1)] {
            let (waiter, entry) = entry(addr, bitset);
            table.enqueue(entry, || Ok(())).unwrap();
            waiters.push(waiter);
        }
        assert_eq!(table.wake(&key(4), 1, 2), Ok(1));
        assert_eq!(waiters[1].state(), Waiting::Woken);
        assert_eq!(table.wake(&key(4), 1, 1), Ok(1));
        assert_eq!((waiters[0].state(), waiters[3].state()), (Waiting::Woken, Waiting::Queued));
        assert!(table.dequeue(&waiters[3]) && !table.dequeue(&waiters[0]));
        assert_eq!(table.wake(&key(4), 9, !0), Ok(0));
        assert_eq!(table.wake(&key(8), 9, !0), Ok(1));
        assert!(table.buckets.iter().all(|bucket| bucket.waiting.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn a_word_that_differs_queues_nobody() {
        let table = FutexTable::default();
        let (_, entry) = entry(4, 1);
        assert_eq!(table.enqueue(entry, || Err(Errno::EAGAIN)), Err(Errno::EAGAIN));
        assert_eq!(table.wake(&key(4), 9, !0), Ok(0));
        assert!(table.buckets.iter().all(|bucket| bucket.waiting.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn a_word_is_read_with_no_lock_held_and_again_when_somebody_has_woken_meanwhile() {
        let table = FutexTable::default();
        let (sleeper, first) = entry(4, 1);
        assert_eq!(table.enqueue(first, || Ok(())), Ok(true));
        // Its wake-up comes between the look and the queue: the word differs at the second look.
        let (waiter, second) = entry(4, 1);
        let mut looks = 0;
        let queued = table.enqueue(second, || {
            looks += 1;
            if looks == 2 {
                return Err(Errno::EAGAIN);
            }
            table.wake(&key(4), 9, 1).map(|_| ())
        });
        assert_eq!((queued, looks), (Err(Errno::EAGAIN), 2));
        assert_eq!((sleeper.state(), table.wake(&key(4), 9, 1)), (Waiting::Woken, Ok(0)));
        assert!(!table.dequeue(&waiter) || waiter.state() == Waiting::Queued);
        // Wakers without end let nobody wait without end.
        let (_, third) = entry(4, 1);
        let mut looks = 0;
        let queued = table.enqueue(third, || {
            looks += 1;
            table.wake(&key(4), 9, 1).map(|_| ())
        });
        assert_eq!((queued, looks), (Ok(false), TRIES));
        assert!(table.buckets.iter().all(|bucket| bucket.waiting.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn who_came_after_the_look_at_the_word_is_not_moved() {
        let table = FutexTable::default();
        let mut looks = 0;
        let both = table.lock_both_if(&key(4), &key(8), || {
            looks += 1;
            match looks {
                1 => table.enqueue(entry(4, 1).1, || Ok(())).map(|_| ()),
                _ => Err(Errno::EAGAIN),
            }
        });
        assert_eq!((both.err(), looks), (Some(Errno::EAGAIN), 2));
        let mut both = table.lock_both_if(&key(4), &key(8), || Ok(())).ok().unwrap();
        assert_eq!(both.from().entries.len(), 1);
        // Both in one bucket.
        drop(both);
        assert!(table.lock_both_if(&key(4), &key(4), || Ok(())).is_ok());
    }

    #[test]
    fn a_moved_waiter_is_found_where_it_is() {
        let table = FutexTable::default();
        for to in (8..4096).step_by(4) {
            let (waiter, entry) = entry(4, 1);
            table.enqueue(entry, || Ok(())).unwrap();
            {
                let mut both = table.lock_both(&key(4), &key(to));
                let entry = both.from().entries.pop_front().unwrap();
                table.move_entry(&mut both, entry, &key(to));
            }
            assert_eq!(table.wake(&key(4), 1, 1), Ok(0));
            assert!(table.dequeue(&waiter));
        }
        assert!(table.buckets.iter().all(|bucket| bucket.waiting.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn a_waiter_for_a_lock_that_is_taken_back_leaves_those_before_it() {
        let table = FutexTable::default();
        let waiters = [1, 2].map(|tid| {
            let waiter = Arc::new(Waiter::default());
            waiter.set(Waiting::Queued);
            LockWaiter { tid, waiter, waker: Waker::noop().clone() }
        });
        let states = waiters.each_ref().map(|waiter| waiter.waiter.clone());
        for waiter in waiters {
            table.add_lock_waiter(&mut table.lock(&key(4)), &key(4), 4, 9, waiter);
        }
        table.take_back_lock_waiter(&mut table.lock(&key(4)), &key(4));
        assert_eq!(states.each_ref().map(|waiter| waiter.state()), [Waiting::Queued, Waiting::Woken]);
        assert_eq!(FutexTable::next_owner(&table.lock(&key(4)), &key(4)), Some((1, false)));
        table.take_back_lock_waiter(&mut table.lock(&key(4)), &key(4));
        assert!(table.lock(&key(4)).locks.is_empty() && table.owned_by(9).is_empty());
        assert_eq!(table.lock_waiters.load(Ordering::Relaxed), 0);
    }
}
