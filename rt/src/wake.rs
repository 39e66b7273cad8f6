//! The wake word of a thread that waits: what its wakers and the one who parks it agree on.
//!
//! The word says [`QUIET`], [`WOKEN`] since the last poll, or [`PARKED`]. Before a poll the thread takes back old wake-ups with
//! [`rearm`]; after a poll without a result it parks only if the word is still quiet, by exchanging it for `PARKED`. A waker changes
//! the state first and calls [`raise`] after.
//!
//! No wake-up is lost: `rearm` and `raise` are both read-modify-writes, so one of them is first. Either `rearm` reads the wake-up
//! and with it sees the state behind it, which the poll then finds; or the wake-up comes after, and the word is not quiet when
//! the thread wants to park. A plain store in `rearm` would not do: it may wait in the processor until the poll has read the old
//! state, and then wipe out the wake-up that came between. Where `rearm` reads that the word is quiet it writes nothing: every
//! wake-up it has not seen is still to come.

use core::sync::atomic::Ordering;

use crate::atomic::AtomicU32;

/// Nothing new.
pub const QUIET: u32 = 0;
/// Woken since the last poll.
pub const WOKEN: u32 = 1;
/// Asleep, or about to be.
pub const PARKED: u32 = 2;

/// Before a poll: what woke the thread so far is seen by this poll.
#[inline]
pub fn rearm(word: &AtomicU32) {
    if word.load(Ordering::Relaxed) != QUIET {
        word.swap(QUIET, Ordering::AcqRel);
    }
}

/// Whether somebody woke the thread since its last poll. It may have begun the next by the time the answer is looked at.
pub fn is_raised(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) == WOKEN
}

/// Wakes the thread, or keeps it from parking; `unpark` is called when it is parked.
#[inline]
pub fn raise(word: &AtomicU32, unpark: impl FnOnce()) {
    if word.swap(WOKEN, Ordering::AcqRel) == PARKED {
        unpark();
    }
}
