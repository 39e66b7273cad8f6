//! A gate of the queue shape: two rings in a guest's memory, which programs write and read with plain stores and loads.
//!
//! | bytes from the start | what | written by |
//! |---|---|---|
//! | 0 | submissions there have been | the guest |
//! | 8 | completions it has taken | the guest |
//! | 16 | completions there have been | the kernel |
//! | 64 | submissions, of 64 bytes: number, six words, tag | the guest |
//! | behind them | completions, of 16 bytes: tag, result | the kernel |
//!
//! Entry n is at place n modulo the ring's size. A submission with the number [`CANCEL`] cancels the one whose tag is its first word; flags of
//! [`link`] in the number link the next one to it. Nobody rings: the kernel's thread sees the counts change, as one would that looks at them all the
//! time ([`Ring::has_changed`]).

use std::sync::{Arc, Mutex};

use janua_port::Context;
use janua_port::gate::{Completion, QueueGate, Submission};

use crate::memory::lock;

/// The number of a cancellation.
pub const CANCEL: u64 = u64::MAX;

/// Flags of a number: the next call begins when this one has ended, if its result fits.
pub mod link {
    /// It is no error.
    pub const LINK: u64 = 1 << 32;
    /// It is at least the third word: all that was to be read or written.
    pub const WHOLE: u64 = 1 << 33;
    /// Whatever it is.
    pub const HARD: u64 = 1 << 34;

    /// The number without the flags, and the least result they mean.
    pub(super) fn of(number: u64, words: &[u64]) -> (usize, Option<isize>) {
        let least = match number & (LINK | WHOLE | HARD) {
            0 => None,
            LINK => Some(0),
            WHOLE => Some(words[2] as isize),
            _ => Some(isize::MIN),
        };
        ((number & !(LINK | WHOLE | HARD)) as usize, least)
    }
}

const SUBMITTED: usize = 0;
const REAPED: usize = 8;
const POSTED: usize = 16;
const ENTRIES: usize = 64;

/// Bytes of a submission and of a completion.
pub const SUBMISSION: usize = 64;
pub const COMPLETION: usize = 16;

/// The kernel's own counts, whatever the guest makes of those in its memory.
#[derive(Default)]
struct Counts {
    taken: u64,
    posted: u64,
    /// The guest's counts at the last look.
    seen: Option<(u64, u64)>,
}

/// The rings of a thread.
pub struct Ring {
    context: Arc<dyn Context>,
    at: usize,
    submissions: u64,
    completions: u64,
    counts: Mutex<Counts>,
}

impl Ring {
    /// Rings of so many entries each, in a thread's memory from `at` on.
    pub fn new(context: Arc<dyn Context>, at: usize, submissions: u64, completions: u64) -> Arc<Ring> {
        Arc::new(Ring { context, at, submissions, completions, counts: Mutex::default() })
    }

    /// Where completion n is, from the start.
    pub fn completion(submissions: u64, completions: u64, n: u64) -> usize {
        ENTRIES + submissions as usize * SUBMISSION + (n % completions) as usize * COMPLETION
    }

    /// Where submission n is, from the start.
    pub fn submission(submissions: u64, n: u64) -> usize {
        ENTRIES + (n % submissions) as usize * SUBMISSION
    }

    fn words<const N: usize>(&self, at: usize) -> Option<[u64; N]> {
        let mut bytes = vec![0; N * 8];
        self.context.memory().copy_in(&mut bytes, self.at + at).ok()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at * 8 + byte]));
        Some(std::array::from_fn(word))
    }

    fn write(&self, at: usize, words: &[u64]) -> bool {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.context.memory().copy_out(self.at + at, &bytes).is_ok()
    }

    fn given(&self) -> Option<(u64, u64)> {
        let [submitted, reaped] = self.words(SUBMITTED)?;
        Some((submitted, reaped))
    }

    /// Whether the guest has submitted or taken something since the last [`Ring::look`].
    pub fn has_changed(&self) -> bool {
        let given = self.given();
        given.is_some() && given != lock(&self.counts).seen
    }

    /// By who rings for the guest if it [`Ring::has_changed`].
    pub fn look(&self) {
        let given = self.given();
        lock(&self.counts).seen = given;
    }
}

impl QueueGate for Ring {
    fn take(&self) -> Option<Submission> {
        let mut counts = lock(&self.counts);
        let (submitted, _) = self.given()?;
        let waiting = submitted.wrapping_sub(counts.taken);
        // More than the ring holds is nonsense.
        if waiting == 0 || waiting > self.submissions {
            return None;
        }
        let [number, words @ .., tag] = self.words::<8>(Ring::submission(self.submissions, counts.taken))?;
        counts.taken += 1;
        Some(match number {
            CANCEL => Submission::Cancel { of: words[0], tag },
            _ => {
                let (number, link) = link::of(number, &words);
                Submission::Call { number, words: words.map(|word| word as usize), tag, link }
            }
        })
    }

    fn complete(&self, completion: Completion) -> bool {
        let mut counts = lock(&self.counts);
        let Some((_, reaped)) = self.given() else { return true };
        if counts.posted.wrapping_sub(reaped) >= self.completions {
            return false;
        }
        let at = Ring::completion(self.submissions, self.completions, counts.posted);
        counts.posted += 1;
        // The count last, so that who reads it finds the entry. Without the memory there is nobody to find it.
        let _ = self.write(at, &[completion.tag, completion.result as u64]) && self.write(POSTED, &[counts.posted]);
        true
    }

    fn unreaped(&self) -> usize {
        let Some((_, reaped)) = self.given() else { return 0 };
        lock(&self.counts).posted.wrapping_sub(reaped).min(self.completions) as usize
    }
}

/// Offsets of the counts that programs use.
pub mod at {
    /// Submissions there have been.
    pub const SUBMITTED: usize = super::SUBMITTED;
    /// Completions the program has taken.
    pub const REAPED: usize = super::REAPED;
    /// Completions there have been.
    pub const POSTED: usize = super::POSTED;
}
