//! The platform's own lock: spins, and is only held where interrupts are off and nothing sleeps.
//!
//! The kernel runs with interrupts off except in the idle loop and on the first steps from a call gate, which hold no lock; so an
//! interrupt handler never meets a lock held by the code it interrupted. Who spins serves the requests that would otherwise come
//! by an interrupt: the lock's holder may be waiting for that.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::shoot;

pub struct SpinLock(AtomicBool);

// SAFETY: `lock` and `try_lock` return only after changing the word from false, which one caller at a time can do.
unsafe impl lock_api::RawMutex for SpinLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api's way of initialising")]
    const INIT: SpinLock = SpinLock(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        while !self.try_lock() {
            while self.0.load(Ordering::Relaxed) {
                shoot::relax();
            }
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        !self.0.swap(true, Ordering::Acquire)
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A mutual-exclusion lock for short sections.
pub type Mutex<T> = lock_api::Mutex<SpinLock, T>;
