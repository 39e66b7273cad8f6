//! What is counted for each user id (RLIMIT_NPROC, RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE; inotify's by the effective one).

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering;

use janua_object::inotify::Counts;
use janua_rt::{AtomicU64, Mutex};

/// The counts of one user.
#[derive(Default)]
pub struct UserCount {
    threads: AtomicU64,
    signals: AtomicU64,
    /// Bytes that the user's message queues may hold.
    queues: AtomicU64,
    /// Bytes of rings that are locked in memory.
    rings: AtomicU64,
    inotify: Counts,
}

impl AsRef<Counts> for UserCount {
    fn as_ref(&self) -> &Counts {
        &self.inotify
    }
}

impl UserCount {
    /// Counts one more queued signal, unless there are `limit` already.
    pub fn add_signal(&self, limit: u64) -> bool {
        if self.signals.fetch_add(1, Ordering::Relaxed) < limit {
            return true;
        }
        self.remove_signal();
        false
    }

    pub fn remove_signal(&self) {
        self.signals.fetch_sub(1, Ordering::Relaxed);
    }

    /// Signals queued for the user's processes.
    pub fn signals(&self) -> u64 {
        self.signals.load(Ordering::Relaxed)
    }

    /// Threads of the user.
    pub fn threads(&self) -> u64 {
        self.threads.load(Ordering::Relaxed)
    }
}

/// Bytes of a message queue in its maker's count, until dropped.
pub struct QueueCharge {
    user: Arc<UserCount>,
    bytes: u64,
}

impl QueueCharge {
    /// So many bytes more, unless they and those there are exceed `limit`.
    pub fn take(user: Arc<UserCount>, bytes: u64, limit: u64) -> Option<QueueCharge> {
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= limit);
        user.queues.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(QueueCharge { user, bytes })
    }
}

impl Drop for QueueCharge {
    fn drop(&mut self) {
        self.user.queues.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes of a ring in its maker's count (RLIMIT_MEMLOCK), until dropped.
pub struct RingCharge {
    user: Arc<UserCount>,
    bytes: u64,
}

impl RingCharge {
    /// So many bytes more, unless they and those there are exceed `limit`.
    pub fn take(user: Arc<UserCount>, bytes: u64, limit: u64) -> Option<RingCharge> {
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= limit);
        user.rings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(RingCharge { user, bytes })
    }
}

impl Drop for RingCharge {
    fn drop(&mut self) {
        self.user.rings.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A thread in its user's count, until dropped.
pub struct ThreadCharge {
    user: Arc<UserCount>,
    counts: bool,
}

impl ThreadCharge {
    pub fn new(user: Arc<UserCount>) -> ThreadCharge {
        user.threads.fetch_add(1, Ordering::Relaxed);
        ThreadCharge { user, counts: true }
    }

    /// A charge that does not count: it only names the user.
    pub fn uncounted(user: Arc<UserCount>) -> ThreadCharge {
        ThreadCharge { user, counts: false }
    }

    pub fn user(&self) -> &Arc<UserCount> {
        &self.user
    }

    /// The same charge; this one counts no more, and only names the user.
    pub fn hand_over(&mut self) -> ThreadCharge {
        ThreadCharge { user: self.user.clone(), counts: core::mem::take(&mut self.counts) }
    }
}

impl Drop for ThreadCharge {
    fn drop(&mut self) {
        if self.counts {
            self.user.threads.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The counts of all users that have any.
#[derive(Default)]
pub struct Users {
    counts: Mutex<BTreeMap<u32, Weak<UserCount>>>,
}

impl Users {
    pub fn of(&self, uid: u32) -> Arc<UserCount> {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get(&uid).and_then(Weak::upgrade) {
            return count;
        }
        counts.retain(|_, count| count.strong_count() > 0);
        let count = Arc::new(UserCount::default());
        counts.insert(uid, Arc::downgrade(&count));
        count
    }
}
