//! A ring of the gate `ring`, as a measured program has it.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::{Skip, sys};

const OPEN: i64 = 400;
const CLOSE: i64 = 401;
const WAIT: i64 = 402;

/// The most calls of one batch.
pub const ENTRIES: usize = 256;
/// Calls that wait at a time.
const UNDER_WAY: usize = 16;
/// In the kernel's flags: nobody looks into the ring.
const ANNOUNCE: u64 = 1;
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
    calls: [UnsafeCell<Call>; ENTRIES],
    ends: [End; ENTRIES],
}

/// The calling thread's ring. All calls of a batch are over before the next one begins.
pub struct Ring {
    memory: NonNull<Memory>,
    /// Calls filled in since the ring was opened, and results read.
    filled: u32,
    reaped: u32,
    is_watched: bool,
}

impl Ring {
    /// Opens it.
    pub fn open() -> Result<Ring, Skip> {
        // In memory that the kernel maps, all of it at once: neither the heap's state nor a fault for each page is what a ring costs.
        // SAFETY: no memory of the program's is named.
        let opened = unsafe { sys::call::<OPEN>([0, ENTRIES, ENTRIES, UNDER_WAY, 0, 0]) };
        if opened < 0 {
            return Err(Skip::call("ring_open", -opened));
        }
        let memory = NonNull::new((opened & !1) as *mut Memory).ok_or(Skip("a ring at 0".into()))?;
        Ok(Ring { memory, filled: 0, reaped: 0, is_watched: opened & 1 != 0 })
    }

    #[inline]
    fn memory(&self) -> &Memory {
        // SAFETY: mapped as long as this lives, zero at first, and changed by others in whole words; entries are in cells.
        unsafe { self.memory.as_ref() }
    }

    /// Fills in a call of the next batch, which is to have at most [`ENTRIES`].
    ///
    /// # Safety
    /// The call must be sound with these words: memory they name is there, and nobody else's, until [`Ring::make`] has returned.
    #[inline]
    pub unsafe fn push(&mut self, number: i64, words: [usize; 6], tag: usize) {
        let call = Call { number: number as u32, flags: 0, words: words.map(|word| word as u64), tag: tag as u64 };
        let place = self.memory().calls[self.filled as usize % ENTRIES].get();
        // SAFETY: a place of a batch that has not been submitted: nobody else looks at it.
        unsafe { place.write(call) };
        self.filled = self.filled.wrapping_add(1);
    }

    /// Submits the batch by one store and has it made: each call's tag and result are `each`'s.
    #[inline]
    pub fn make(&mut self, mut each: impl FnMut(usize, i64) -> Result<(), Skip>) -> Result<(), Skip> {
        self.memory().submitted.store(self.filled, Ordering::Release);
        let mut looks = if self.is_watched { LOOKS } else { 0 };
        if self.is_watched {
            // What is submitted is seen by who looks, or that one's flag is seen here.
            fence(Ordering::SeqCst);
            if self.memory().flags.load(Ordering::Relaxed) & ANNOUNCE != 0 {
                Ring::wait(0)?;
            }
        }
        let mut outcome = Ok(());
        while self.reaped != self.filled {
            let posted = self.memory().posted.load(Ordering::Acquire) as u32;
            if self.reaped == posted {
                if looks > 0 {
                    looks -= 1;
                    core::hint::spin_loop();
                    continue;
                }
                Ring::wait(self.filled.wrapping_sub(self.reaped) as usize)?;
                continue;
            }
            let mut reaped = self.reaped;
            while reaped != posted {
                let end = &self.memory().ends[reaped as usize % ENTRIES];
                let (tag, result) = (end.tag.load(Ordering::Relaxed), end.result.load(Ordering::Relaxed) as i64);
                reaped = reaped.wrapping_add(1);
                if let Err(skip) = each(tag as usize, result) {
                    outcome = Err(skip);
                }
            }
            self.reaped = reaped;
            self.memory().reaped.store(reaped, Ordering::Release);
        }
        outcome
    }

    /// Has what is submitted made, until so many results are there.
    fn wait(least: usize) -> Result<(), Skip> {
        // SAFETY: no pointers.
        let there = unsafe { sys::call::<WAIT>([least, 0, 0, 0, 0, 0]) };
        if there < 0 { Err(Skip::call("ring_wait", -there)) } else { Ok(()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: without arguments; what is left of a batch does not touch its memory afterwards, nor does anybody else.
        unsafe {
            let _ = sys::call3::<CLOSE>("ring_close", 0, 0, 0);
            libc::munmap(self.memory.as_ptr().cast(), size_of::<Memory>());
        }
    }
}
