//! The wake word of a thread that waits: what its wakers and the one who parks it agree on.
//!
//! The word is [`QUIET`], [`WOKEN`] since the last poll, or [`PARKED`]. Before a poll the thread takes back old wake-ups with
//! [`rearm`]; after a poll without a result it parks only if the word is still quiet, by exchanging it for `PARKED`. A waker changes
//! the state first and calls [`raise`] after.
//!
//! No wake-up is lost: `rearm` and `raise` are both read-modify-writes, so one of them is first. Either `rearm` reads the wake-up
//! and with it sees the state behind it, which the poll then finds; or the wake-up comes after, and the word is not quiet when
//! the thread wants to park. A plain store in `rearm` would not do: it may wait in the processor until the poll has read the old
//! state, and then wipe out the wake-up that came between. Where `rearm` reads that the word is quiet it writes nothing: every
//! wake-up it has not seen is still to come.
//!
//! A call that an executor has is *away*, and the same word has that, too: [`send`], and from then on a wake-up puts the call into the executor's queue
//! instead of unparking the thread. The executor polls it between [`begin`] and either [`pause`], which reports whether a wake-up came
//! meanwhile, [`finish`], or [`give_back`]. All are read-modify-writes, for the same reason.
//!
//! A call that nobody has begun yet can be taken back by its thread ([`take_back`]), whatever queue it is in: `begin` and `take_back` exchange the
//! same state, so one of them fails. What is left in the queue then, and any other entry that is there once too often, fails to begin.

use core::sync::atomic::Ordering;

pub use janua_port::drive::{PARKED, QUIET};

use crate::atomic::{AtomicU32, fence};

/// Woken since the last poll.
pub const WOKEN: u32 = 1;
/// The call is away. With [`WOKEN`] it is in a queue, or is to be polled again when the poll under way is over.
const AWAY: u32 = 4;
/// An away call is being polled.
const POLLED: u32 = 8;
/// An away call has never been polled: its thread may have it back.
const FRESH: u32 = 16;

/// What is to be done after [`raise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Raised {
    Nothing,
    /// Unpark who sleeps on the word.
    Unpark,
    /// Put the call into its executor's queue.
    Queue,
}

/// Before a poll: what woke the thread so far is seen by this poll. Nothing for a call that is away.
#[inline]
pub fn rearm(word: &AtomicU32) {
    let found = word.load(Ordering::Relaxed);
    if found != QUIET && found & AWAY == 0 {
        word.swap(QUIET, Ordering::AcqRel);
    }
}

/// Whether somebody woke the thread since its last poll. It may have begun the next by the time the result is looked at.
pub fn is_raised(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) & WOKEN != 0
}

/// Whether the call is away.
pub fn is_away(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) & AWAY != 0
}

/// Whether the call is away and is being polled, or about to be.
pub fn is_under_way(word: &AtomicU32) -> bool {
    let found = word.load(Ordering::Relaxed);
    found & AWAY != 0 && found & (WOKEN | POLLED) != 0
}

/// Whether the call is away and nobody has polled it since it was sent or woken.
pub fn is_queued(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) & !FRESH == AWAY | WOKEN
}

/// Wakes the thread or its call, or keeps it from parking.
#[inline]
pub fn raise(word: &AtomicU32) -> Raised {
    let mut found = word.load(Ordering::Relaxed);
    loop {
        let next = if found & AWAY != 0 { found | WOKEN } else { WOKEN };
        match word.compare_exchange_weak(found, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(PARKED) => return Raised::Unpark,
            Ok(AWAY) => return Raised::Queue,
            Ok(_) => return Raised::Nothing,
            Err(now) => found = now,
        }
    }
}

/// By who is about to sleep on the word: whether nothing is new. It sleeps while the word is [`PARKED`] then.
#[must_use]
pub fn intend_to_park(word: &AtomicU32) -> bool {
    word.compare_exchange(QUIET, PARKED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// By the thread, which is not parked: its call goes away. The caller puts it into an executor's queue next.
pub fn send(word: &AtomicU32) {
    word.swap(AWAY | WOKEN | FRESH, Ordering::AcqRel);
}

/// By the thread: whether it has its call back, which nobody has begun. The next poll is the thread's; what has woken the call until now is seen by it.
#[must_use]
pub fn take_back(word: &AtomicU32) -> bool {
    word.compare_exchange(AWAY | WOKEN | FRESH, QUIET, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// By the executor: the call, taken out of the queue, is about to be polled. False when it is not to be: its thread has taken it back, it is over, or
/// another entry of the queue's has been before this one.
#[must_use]
pub fn begin(word: &AtomicU32) -> bool {
    let mut found = word.load(Ordering::Relaxed);
    while found & !FRESH == AWAY | WOKEN {
        match word.compare_exchange_weak(found, AWAY | POLLED, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => found = now,
        }
    }
    false
}

/// By the executor: the call has been polled and waits. False when it has been woken meanwhile: it is to be put into the queue again.
#[must_use]
pub fn pause(word: &AtomicU32) -> bool {
    let waits = word.compare_exchange(AWAY | POLLED, AWAY, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if !waits {
        word.swap(AWAY | WOKEN, Ordering::AcqRel);
    }
    waits
}

/// By the executor: the call has its result. Wake-ups are the thread's from here on.
pub fn finish(word: &AtomicU32) {
    word.swap(QUIET, Ordering::AcqRel);
}

/// By the executor: the call has been polled and waits, and its thread is to go on with it, which polls it first of all.
pub fn give_back(word: &AtomicU32) {
    word.swap(WOKEN, Ordering::AcqRel);
}

/// Who looks for work without being asked stops: `announce` has those who leave work know that they are to ring, and `look` finds what was left by those who did
/// not know yet. Whether there was something. Who leaves work looks at the announcement after that, with a full fence between.
pub fn lie_down(announce: impl FnOnce(), look: impl FnOnce() -> bool) -> bool {
    announce();
    // One of the two sees the other.
    fence(Ordering::SeqCst);
    look()
}
