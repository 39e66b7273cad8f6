//! How something ended that several threads wait for.

use core::num::NonZeroU32;
use core::sync::atomic::Ordering;

use crate::atomic::AtomicU32;

/// How something that happens once has ended; until then who wants to know sleeps. Who reports it and who waits each have a share in it.
pub struct Ending(AtomicU32);

/// What the word is until it is known.
const OPEN: u32 = 0;

impl Default for Ending {
    fn default() -> Ending {
        Ending(AtomicU32::new(OPEN))
    }
}

impl Ending {
    /// Reports how it has ended. `wake(word)` wakes every sleeper on the word.
    pub fn report(&self, how: NonZeroU32, wake: impl FnOnce(&AtomicU32)) {
        self.0.store(how.get(), Ordering::Release);
        wake(&self.0);
    }

    /// How it has ended, once it has. `sleep(word, expected)` sleeps while the word is `expected`, or returns early.
    pub fn wait(&self, sleep: impl Fn(&AtomicU32, u32)) -> NonZeroU32 {
        loop {
            if let Some(how) = NonZeroU32::new(self.0.load(Ordering::Acquire)) {
                return how;
            }
            sleep(&self.0, OPEN);
        }
    }
}
