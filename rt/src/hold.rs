//! A reader-writer lock whose readers may take long: they copy memory that may have to come from a disk. Nobody spins for it:
//! writers sleep until the readers are gone, and new readers behind a writer.

#[cfg(not(loom))]
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use crate::atomic::AtomicU32;
use crate::sync::Word;

/// A writer has the lock, or waits for the readers.
const WRITER: u32 = 1 << 31;
/// It sleeps: the last reader wakes it.
const SLEEPS: u32 = 1 << 30;
const READERS: u32 = SLEEPS - 1;

/// The words of such a lock, apart from how one sleeps on them: `sleep(word, expected)` sleeps while the word is `expected`, or returns
/// early; `wake(word)` wakes one sleeper.
pub struct HoldWords {
    /// The readers, with [`WRITER`] and [`SLEEPS`].
    state: AtomicU32,
    /// Held by the one writer.
    gate: Word,
}

impl HoldWords {
    /// A free lock.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default, reason = "a default is no constant")]
    pub const fn new() -> HoldWords {
        HoldWords { state: AtomicU32::new(0), gate: Word::new() }
    }

    /// A free lock.
    #[cfg(loom)]
    #[allow(clippy::new_without_default, reason = "as without loom")]
    pub fn new() -> HoldWords {
        HoldWords { state: AtomicU32::new(0), gate: Word::new() }
    }

    /// Becomes one of the readers.
    pub fn lock_shared(&self, sleep: impl Fn(&AtomicU32, u32), wake: impl Fn(&AtomicU32)) {
        while self.state.fetch_add(1, Ordering::Acquire) & WRITER != 0 {
            self.unlock_shared(&wake);
            // Behind the writer.
            self.gate.lock(&sleep);
            self.gate.unlock(&wake);
        }
    }

    /// Is a reader no more.
    pub fn unlock_shared(&self, wake: impl Fn(&AtomicU32)) {
        let before = self.state.fetch_sub(1, Ordering::Release);
        if before & SLEEPS != 0 && before & READERS == 1 {
            wake(&self.state);
        }
    }

    /// Takes the lock once the readers are gone.
    pub fn lock_exclusive(&self, sleep: impl Fn(&AtomicU32, u32)) {
        self.gate.lock(&sleep);
        if self.state.fetch_or(WRITER, Ordering::Acquire) & READERS == 0 {
            return;
        }
        let mut seen = self.state.fetch_or(SLEEPS, Ordering::Acquire) | SLEEPS;
        while seen & READERS != 0 {
            sleep(&self.state, seen);
            seen = self.state.load(Ordering::Acquire);
        }
        self.state.fetch_and(!SLEEPS, Ordering::Relaxed);
    }

    /// Gives the lock back.
    pub fn unlock_exclusive(&self, wake: impl Fn(&AtomicU32)) {
        self.state.fetch_and(!WRITER, Ordering::Release);
        self.gate.unlock(wake);
    }
}

/// The lock, which holds nothing: it is what its readers see that stays as it is.
#[cfg(not(loom))]
pub struct Hold(HoldWords);

/// While it lives the lock is held; not `Send`, as [`crate::MutexGuard`].
#[cfg(not(loom))]
pub struct Held<'a> {
    lock: &'a HoldWords,
    exclusive: bool,
    here: PhantomData<*const ()>,
}

#[cfg(not(loom))]
impl Hold {
    #[allow(clippy::new_without_default, reason = "as HoldWords::new")]
    pub const fn new() -> Hold {
        Hold(HoldWords::new())
    }

    /// Holds it beside others.
    #[must_use]
    pub fn read(&self) -> Held<'_> {
        self.0.lock_shared(crate::sync::sleep_on, crate::sync::wake_one);
        Held { lock: &self.0, exclusive: false, here: PhantomData }
    }

    /// Holds it alone.
    #[must_use]
    pub fn write(&self) -> Held<'_> {
        self.0.lock_exclusive(crate::sync::sleep_on);
        Held { lock: &self.0, exclusive: true, here: PhantomData }
    }
}

#[cfg(not(loom))]
impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.exclusive {
            self.lock.unlock_exclusive(crate::sync::wake_one);
        } else {
            self.lock.unlock_shared(crate::sync::wake_one);
        }
    }
}
