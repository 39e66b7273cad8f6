//! The platform's own lock. There is one core, interrupts stay out while the kernel runs, and nothing sleeps with the lock held: it
//! is never found taken, except by a kernel that has failed in the middle of something, and that must not wait.

use core::sync::atomic::{AtomicU32, Ordering};

pub struct SpinLock(AtomicU32);

// SAFETY: `lock` and `try_lock` return only after changing the word from 0, which one caller at a time can do.
unsafe impl lock_api::RawMutex for SpinLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api's way of initialising")]
    const INIT: SpinLock = SpinLock(AtomicU32::new(0));
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        while !self.try_lock() {
            core::hint::spin_loop();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.swap(1, Ordering::Acquire) == 0
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A mutual-exclusion lock for short sections.
pub type Mutex<T> = lock_api::Mutex<SpinLock, T>;
