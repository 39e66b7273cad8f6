//! SO_PEEK_OFF: where reads with MSG_PEEK begin (socket(7)).

use core::sync::atomic::{AtomicI32, Ordering};

use janua_abi::linux::net::msg;

/// The option's value: bytes behind the first unread one. While it is negative, peeks begin there and leave it as it is.
pub struct PeekOffset(AtomicI32);

impl Default for PeekOffset {
    fn default() -> Self {
        PeekOffset(AtomicI32::new(-1))
    }
}

impl PeekOffset {
    pub fn get(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self, value: i32) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Where a peek begins.
    pub fn start(&self) -> usize {
        self.chosen().unwrap_or(0)
    }

    /// Where a peek begins, if the program chose a place.
    pub fn chosen(&self) -> Option<usize> {
        usize::try_from(self.get()).ok()
    }

    /// After a read of `len` bytes with those flags: a peek moves the offset on, other reads move it back. Readers that race may each
    /// move it from where it was.
    pub fn note_read(&self, flags: u32, len: usize) {
        let old = self.get();
        if old >= 0 {
            let len = i32::try_from(len).unwrap_or(i32::MAX);
            self.set(if flags & msg::PEEK != 0 { old.saturating_add(len) } else { old.saturating_sub(len).max(0) });
        }
    }
}
