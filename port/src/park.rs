//! Waiting of a core or host thread for a word to change.

use core::sync::atomic::AtomicU32;

use crate::clock::Nanos;

/// Parks the caller on a word of kernel memory.
pub trait Park: Send + Sync {
    /// Sleeps while `*word == expected`, until [`Park::unpark`] on the same word, `deadline` (monotonic) or a spurious
    /// wake-up; the caller tests its condition again. Returns at once when the word differs on entry.
    fn park(&self, word: &AtomicU32, expected: u32, deadline: Option<Nanos>);
    /// Wakes up to `count` sleepers on `word`. The caller has changed the word before.
    fn unpark(&self, word: &AtomicU32, count: u32);
    /// Wakes the sleeper on a word of the memory shared with another tile, which sleeps there. The caller has changed the word before.
    fn unpark_on(&self, _tile: u32, word: &AtomicU32) {
        self.unpark(word, 1);
    }
    /// Lets other threads have the processor, if any wait for it (sched_yield(2)).
    fn yield_now(&self);
    /// The same for a program that asks for it; a thread that was promised time ([`crate::Context::promise`]) has done its work for this
    /// period, and goes on in the next.
    fn yield_turn(&self) {
        self.yield_now();
    }
    /// Spins until `*word != expected`, for at most `limit` nanoseconds, or not at all where the machine has something better to do with the processor.
    fn spin(&self, _word: &AtomicU32, _expected: u32, _limit: Nanos) -> Spun {
        Spun::Unchanged
    }
    /// Whether a ready thread waits for the caller's processor. False where the machine does not know.
    fn is_wanted(&self) -> bool {
        false
    }
    /// By a call that takes long, between two of its parts: what is due happens, and others have their turn, on a machine that does not
    /// interrupt the kernel. Nothing where the host does.
    fn attend(&self) {}
}

/// What [`Park::spin`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spun {
    /// The word is another.
    Changed,
    Unchanged,
    /// It is not, and [`Park::is_wanted`].
    Wanted,
}
