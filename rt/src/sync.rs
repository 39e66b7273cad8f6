//! Locks of the kernel: short critical sections over shared kernel memory.
//!
//! A lock word is 0 free, 1 held, 2 held with sleepers (Drepper, "Futexes are tricky"). A taker spins briefly, since sections
//! are short, then sleeps on the word. No guard may be held across an `await`: guards are not `Send`, and handlers' futures
//! must be.

use core::sync::atomic::{AtomicPtr, Ordering};

use crate::atomic::{AtomicU32, spin_loop};

/// How a core or host thread sleeps on a word; registered by the image before the first contended lock.
pub trait Sleep: Sync {
    /// Sleeps while `*word == expected`; may return spuriously.
    fn sleep(&self, word: &AtomicU32, expected: u32);
    /// Wakes one sleeper on `word`.
    fn wake_one(&self, word: &AtomicU32);
    /// Lets others run who may hold what the caller spins for.
    fn give_way(&self) {
        core::hint::spin_loop();
    }
}

/// One pointer to a `&'static dyn Sleep`; null until registered, then constant. It belongs to the machine, not to a kernel
/// instance: every kernel on this machine sleeps the same way.
static SLEEP: AtomicPtr<&'static dyn Sleep> = AtomicPtr::new(core::ptr::null_mut());

/// Registers how contended locks sleep. Until then they spin.
pub fn set_sleep(sleep: &'static &'static dyn Sleep) {
    SLEEP.store((&raw const *sleep).cast_mut(), Ordering::Release);
}

#[cfg(not(loom))]
fn sleeper() -> Option<&'static dyn Sleep> {
    let pointer = SLEEP.load(Ordering::Acquire);
    // SAFETY: the pointer is null or came from the `&'static` given to `set_sleep`.
    unsafe { pointer.as_ref().copied() }
}

/// Sleeps while the word is `expected`, or returns early.
#[cfg(not(loom))]
pub(crate) fn sleep_on(word: &AtomicU32, expected: u32) {
    match sleeper() {
        Some(sleep) => sleep.sleep(word, expected),
        None => spin_loop(),
    }
}

/// Wakes one that sleeps on the word.
#[cfg(not(loom))]
pub(crate) fn wake_one(word: &AtomicU32) {
    if let Some(sleep) = sleeper() {
        sleep.wake_one(word);
    }
}

/// Lets others run who may hold what the caller spins for.
#[cfg(not(loom))]
pub fn give_way() {
    match sleeper() {
        Some(sleep) => sleep.give_way(),
        None => spin_loop(),
    }
}

/// How often a taker looks again before it sleeps.
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// The word of a lock, apart from how one sleeps on it.
pub struct Word(AtomicU32);

impl Word {
    /// A free lock.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default, reason = "a default is no constant")]
    pub const fn new() -> Word {
        Word(AtomicU32::new(0))
    }

    /// A free lock.
    #[cfg(loom)]
    #[allow(clippy::new_without_default, reason = "as without loom")]
    pub fn new() -> Word {
        Word(AtomicU32::new(0))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the lock. `sleep(word, expected)` sleeps while the word is `expected`, or returns early.
    #[inline]
    pub fn lock(&self, sleep: impl Fn(&AtomicU32, u32)) {
        if !self.try_lock() {
            self.lock_slow(sleep);
        }
    }

    #[cold]
    fn lock_slow(&self, sleep: impl Fn(&AtomicU32, u32)) {
        for _ in 0..SPINS {
            if self.0.load(Ordering::Relaxed) == 0 && self.try_lock() {
                return;
            }
            spin_loop();
        }
        // From here on the word is left at 2, so that every unlock on the way wakes one sleeper.
        while self.0.swap(2, Ordering::Acquire) != 0 {
            sleep(&self.0, 2);
        }
    }

    /// Gives the lock back. `wake(word)` wakes one sleeper.
    #[inline]
    pub fn unlock(&self, wake: impl Fn(&AtomicU32)) {
        if self.0.swap(0, Ordering::Release) == 2 {
            wake(&self.0);
        }
    }
}

/// The raw lock behind [`Mutex`].
#[cfg(not(loom))]
pub struct RawMutex(Word);

// SAFETY: `lock` and `try_lock` return holding only after changing the word from 0, which one caller at a time can do;
// `unlock` puts 0 back.
#[cfg(not(loom))]
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api's way of initialising")]
    const INIT: RawMutex = RawMutex(Word::new());
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        self.0.lock(sleep_on);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.0.unlock(wake_one);
    }
}

/// A mutual-exclusion lock.
#[cfg(not(loom))]
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Its guard; not `Send`, so that it cannot be held across an `await` of a handler.
#[cfg(not(loom))]
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// The lock of a model: `RawMutex` is modelled by itself ([`Word`]), and loom's own lock replaces it elsewhere.
#[cfg(loom)]
pub struct Mutex<T>(loom::sync::Mutex<T>);
#[cfg(loom)]
pub type MutexGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

#[cfg(loom)]
impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Readers count in the low bits; `WRITER` marks a writer; waiting is by yielding to the mutex that serialises writers.
#[cfg(not(loom))]
pub struct RawRwLock {
    state: AtomicU32,
    gate: RawMutex,
}

#[cfg(not(loom))]
const WRITER: u32 = 1 << 31;

// SAFETY: shared holders are counted in `state` and enter only while WRITER is clear; a writer sets WRITER while it holds
// `gate` and returns only when the count has reached zero; each unlock undoes exactly its lock.
#[cfg(not(loom))]
unsafe impl lock_api::RawRwLock for RawRwLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api's way of initialising")]
    const INIT: RawRwLock = RawRwLock { state: AtomicU32::new(0), gate: <RawMutex as lock_api::RawMutex>::INIT };
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        loop {
            if self.try_lock_shared() {
                return;
            }
            // A writer is in: queue behind it.
            lock_api::RawMutex::lock(&self.gate);
            // SAFETY: taken on the line before.
            unsafe { lock_api::RawMutex::unlock(&self.gate) };
        }
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state & WRITER != 0 {
            return false;
        }
        if self.state.fetch_add(1, Ordering::Acquire) & WRITER == 0 {
            return true;
        }
        self.state.fetch_sub(1, Ordering::Release);
        false
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        self.state.fetch_sub(1, Ordering::Release);
    }

    #[inline]
    fn lock_exclusive(&self) {
        lock_api::RawMutex::lock(&self.gate);
        self.state.fetch_or(WRITER, Ordering::Acquire);
        let mut looks = 0u32;
        while self.state.load(Ordering::Acquire) != WRITER {
            looks += 1;
            match sleeper() {
                // A reader may have lost its core to this writer.
                Some(sleep) if looks > SPINS => sleep.give_way(),
                _ => spin_loop(),
            }
        }
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        if !lock_api::RawMutex::try_lock(&self.gate) {
            return false;
        }
        if self.state.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return true;
        }
        // SAFETY: taken above.
        unsafe { lock_api::RawMutex::unlock(&self.gate) };
        false
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        self.state.fetch_and(!WRITER, Ordering::Release);
        // SAFETY: held since `lock_exclusive`.
        unsafe { lock_api::RawMutex::unlock(&self.gate) };
    }
}

/// A reader-writer lock; readers must be short, a writer spins until they are gone.
#[cfg(not(loom))]
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Its shared guard.
#[cfg(not(loom))]
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
