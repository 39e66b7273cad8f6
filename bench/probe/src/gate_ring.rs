//! A ring of the gate `ring`, as a measured program has it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::{Skip, sys};

const OPEN: i64 = 400;
const CLOSE: i64 = 401;
const WAIT: i64 = 402;

/// The most calls of one batch.
pub const ENTRIES: usize = 256;
/// Calls that wait at a time.
const UNDER_WAY: usize = 16;
/// How often the program looks for results before it enters the kernel, where somebody else makes the calls.
const LOOKS: u32 = 20_000;

#[repr(C)]
struct Call {
    number: u32,
    flags: u32,
    words: [u64; 6],
    tag: u64,
}

#[repr(C)]
struct End {
    tag: AtomicU64,
    result: AtomicU64,
}

/// The ring's memory: counts, submissions, completions.
#[repr(C, align(4096))]
struct Memory {
    submitted: AtomicU32,
    reaped: AtomicU32,
    unused: [u64; 7],
    posted: AtomicU64,
    taken: AtomicU64,
    flags: AtomicU64,
    unused_too: [u64; 5],
    calls: [Call; ENTRIES],
    ends: [End; ENTRIES],
}

/// The calling thread's ring. All calls of a batch are over before the next one begins.
pub struct Ring {
    memory: Box<Memory>,
    /// Calls filled in since the ring was opened, and results read.
    filled: u32,
    reaped: u32,
    is_watched: bool,
}

impl Ring {
    /// Opens it.
    pub fn open() -> Result<Ring, Skip> {
        // SAFETY: numbers, for which all bits zero are a value.
        let mut memory: Box<Memory> = unsafe { Box::new(core::mem::MaybeUninit::<Memory>::zeroed()).assume_init() };
        let at = (&raw mut *memory) as usize;
        // SAFETY: memory for a ring of this size, which stays until it is closed in `drop`.
        let opened = unsafe { sys::call::<OPEN>([at, ENTRIES, ENTRIES, UNDER_WAY, 0, 0]) };
        if opened < 0 {
            return Err(Skip::call("ring_open", -opened));
        }
        Ok(Ring { memory, filled: 0, reaped: 0, is_watched: opened == 1 })
    }

    /// Fills in a call of the next batch, which is to have at most [`ENTRIES`].
    ///
    /// # Safety
    /// The call must be sound with these words: memory they name is there, and nobody else's, until [`Ring::make`] has returned.
    #[inline]
    pub unsafe fn push(&mut self, number: i64, words: [usize; 6], tag: usize) {
        let call = &mut self.memory.calls[self.filled as usize % ENTRIES];
        (call.number, call.flags, call.tag) = (number as u32, 0, tag as u64);
        call.words = words.map(|word| word as u64);
        self.filled = self.filled.wrapping_add(1);
    }

    /// Submits the batch by one store and has it made: each call's tag and result are `each`'s.
    #[inline]
    pub fn make(&mut self, mut each: impl FnMut(usize, i64) -> Result<(), Skip>) -> Result<(), Skip> {
        self.memory.submitted.store(self.filled, Ordering::Release);
        let mut looks = if self.is_watched { LOOKS } else { 0 };
        let mut outcome = Ok(());
        while self.reaped != self.filled {
            let posted = self.memory.posted.load(Ordering::Acquire) as u32;
            if self.reaped == posted {
                if looks > 0 {
                    looks -= 1;
                    core::hint::spin_loop();
                    continue;
                }
                let left = self.filled.wrapping_sub(self.reaped) as usize;
                // SAFETY: no pointers.
                let there = unsafe { sys::call::<WAIT>([left, 0, 0, 0, 0, 0]) };
                if there < 0 {
                    return Err(Skip::call("ring_wait", -there));
                }
                continue;
            }
            while self.reaped != posted {
                let end = &self.memory.ends[self.reaped as usize % ENTRIES];
                let (tag, result) = (end.tag.load(Ordering::Relaxed), end.result.load(Ordering::Relaxed) as i64);
                self.reaped = self.reaped.wrapping_add(1);
                outcome = outcome.and_then(|()| each(tag as usize, result));
            }
            self.memory.reaped.store(self.reaped, Ordering::Release);
        }
        outcome
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: without arguments; what is left of a batch does not touch its memory afterwards.
        let _ = unsafe { sys::call3::<CLOSE>("ring_close", 0, 0, 0) };
    }
}
