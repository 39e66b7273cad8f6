//! The platform's own lock: for the heap and the reactor, which exist before the kernel's locks can sleep.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::spawn;

/// 0 free, 1 held, 2 held with sleepers; sleepers wait on the host's futex.
pub struct FutexLock(AtomicU32);

// SAFETY: `lock` and `try_lock` return only after changing the word from 0, which one caller at a time can do.
unsafe impl lock_api::RawMutex for FutexLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api's way of initialising")]
    const INIT: FutexLock = FutexLock(AtomicU32::new(0));
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        if self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return;
        }
        for _ in 0..100 {
            if self.try_lock() {
                return;
            }
            core::hint::spin_loop();
        }
        while self.0.swap(2, Ordering::Acquire) != 0 {
            spawn::park(&self.0, 2, None);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        if self.0.swap(0, Ordering::Release) == 2 {
            spawn::unpark(&self.0, 1);
        }
    }
}

/// A mutual-exclusion lock between all host processes of the sandbox.
pub type Mutex<T> = lock_api::Mutex<FutexLock, T>;
