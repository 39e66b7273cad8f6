//! Whether something may have happened since a moment, found without writing to shared memory each time it happens.

use core::sync::atomic::Ordering::SeqCst;

use crate::AtomicU64;

/// A count of moments. Who remembers something takes a [`Epoch::stamp`] before looking; code that makes what is remembered untrue, or
/// could notify others of it, calls [`Epoch::advance`] afterwards, which costs two loads as long as nobody has taken a stamp since the last time.
///
/// Either the stamp is seen by who advances, and then it no longer holds, or what had happened by then is seen by who looks after taking it.
pub struct Epoch {
    now: AtomicU64,
    /// The last moment of which somebody has a stamp.
    stamped: AtomicU64,
}

impl Epoch {
    #[allow(clippy::new_without_default, reason = "these are statics")]
    pub const fn new() -> Epoch {
        Epoch { now: AtomicU64::new(1), stamped: AtomicU64::new(0) }
    }

    /// This moment: never 0.
    pub fn stamp(&self) -> u64 {
        let now = self.now.load(SeqCst);
        if self.stamped.load(SeqCst) < now {
            self.stamped.fetch_max(now, SeqCst);
        }
        now
    }

    /// Whether it is still the moment of that stamp.
    pub fn is(&self, stamp: u64) -> bool {
        self.now.load(SeqCst) == stamp
    }

    /// What stamps were taken for no longer holds.
    pub fn advance(&self) {
        if self.stamped.load(SeqCst) >= self.now.load(SeqCst) {
            self.now.fetch_add(1, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_until_something_happens() {
        let epoch = Epoch::new();
        assert!(!epoch.is(0));
        let first = epoch.stamp();
        assert!(epoch.is(first));
        epoch.advance();
        assert!(!epoch.is(first));
        epoch.advance();
        let second = epoch.stamp();
        assert_ne!(first, second);
        assert!(epoch.is(second) && epoch.is(epoch.stamp()));
        epoch.advance();
        assert!(!epoch.is(first) && !epoch.is(second));
    }
}
