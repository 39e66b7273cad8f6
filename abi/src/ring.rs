//! Rings of calls: what a program and a kernel share by the gate `ring` (`user/ring/include/janua_ring.h` is the same for C).
//!
//! | bytes from the start | what | written by |
//! |---|---|---|
//! | 0 | [`at::SUBMITTED`]: submissions there have been, modulo 2^32 | the program |
//! | 4 | [`at::REAPED`]: completions it has taken, modulo 2^32 | the program |
//! | 64 | [`at::POSTED`]: completions there have been | the kernel |
//! | 72 | [`at::TAKEN`]: submissions that have been copied, whose places are free | the kernel |
//! | 80 | [`at::FLAGS`]: [`ANNOUNCE`] or 0 | the kernel |
//! | 128 | [`Submission`]s, then [`Completion`]s | |
//!
//! Entry n is at place n modulo the entries of its kind, a power of two. Words of the kernel's have eight bytes each, of which the upper four are 0.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A submission: 64 bytes, as the entries of FlexSC have.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Submission {
    /// The call's number, or [`CANCEL`].
    pub number: u32,
    /// [`flags`].
    pub flags: u32,
    pub words: [u64; 6],
    /// Comes back with the result.
    pub tag: u64,
}

/// The end of a submission.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Completion {
    pub tag: u64,
    /// A value, or the negated error.
    pub result: i64,
}

/// The number of a submission that cancels the one whose tag is its first word.
pub const CANCEL: u32 = u32::MAX;

/// Flags of a submission: the next one begins when this one has ended, if its result fits. At most one of them.
pub mod flags {
    /// It is no error.
    pub const LINK: u32 = 1;
    /// It is at least the third word: all that was to be read or written.
    pub const LINK_WHOLE: u32 = 2;
    /// Whatever it is.
    pub const LINK_HARD: u32 = 4;
    pub const ALL: u32 = LINK | LINK_WHOLE | LINK_HARD;
}

/// In the kernel's flags: nobody looks into the ring, so that what is submitted is taken by the next waiting call.
pub const ANNOUNCE: u64 = 1;

/// Where the words are.
pub mod at {
    pub const SUBMITTED: usize = 0;
    pub const REAPED: usize = 4;
    pub const POSTED: usize = 64;
    pub const TAKEN: usize = 72;
    pub const FLAGS: usize = 80;
    pub const ENTRIES: usize = 128;
}

/// Most entries of a kind.
pub const MOST: u32 = 1 << 15;

/// Bytes of a ring with so many entries.
pub const fn bytes(submissions: u32, completions: u32) -> usize {
    at::ENTRIES + submissions as usize * size_of::<Submission>() + completions as usize * size_of::<Completion>()
}

const _: () = assert!(size_of::<Submission>() == 64 && size_of::<Completion>() == 16);
