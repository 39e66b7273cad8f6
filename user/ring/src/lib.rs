//! Rings of system calls for programs on Janua: many calls submitted with one store, their results taken in any order. `include/janua_ring.h` is the same for C, with more about
//! order and buffers.
//!
//! ```
//! use janua_ring::{Call, Ring};
//! // ENOSYS on a kernel without such rings.
//! let Ok(mut ring) = Ring::open(64, 16) else { return };
//! for tag in 0..32 {
//!     // SAFETY: getppid(2) has no arguments.
//!     unsafe { ring.push(&Call { number: 110, tag, ..Call::default() }) }.unwrap();
//! }
//! ring.submit();
//! ring.wait(32, 0).unwrap();
//! assert_eq!(core::iter::from_fn(|| ring.end()).filter(|end| end.result == std::os::unix::process::parent_id().into()).count(), 32);
//! ```
#![no_std]

use core::arch::asm;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use janua_abi::ring::{self, ANNOUNCE, at};
pub use janua_abi::ring::{CANCEL, Completion, Submission as Call, flags};

const OPEN: usize = 400;
const CLOSE: usize = 401;
const WAIT: usize = 402;
/// munmap(2).
const UNMAP: usize = 11;

/// The number of an error (errno(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub i32);

/// All places for submissions are taken: completions have to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// # Safety
/// The call must be sound with these arguments.
unsafe fn call(number: usize, [a, b, c, d]: [usize; 4]) -> Result<usize, Error> {
    let result: isize;
    // SAFETY: the caller vouches for the call; the kernel changes rax, rcx and r11 only.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if result < 0 { Err(Error(-result as i32)) } else { Ok(result as usize) }
}

/// The calling thread's ring, which it alone uses.
pub struct Ring {
    /// Mapped by the kernel, of [`Ring::bytes`].
    memory: NonNull<u8>,
    submissions: u32,
    completions: u32,
    /// Places given out, and completions taken.
    filled: u32,
    reaped: u32,
    watched: bool,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Ring {
    /// Opens a ring with room for so many submissions, a power of two, and twice as many completions; at most `under_way` calls (1 to 256) wait at a time. ENOSYS on a
    /// kernel without rings, EBUSY when the thread has one, EINVAL.
    pub fn open(submissions: u32, under_way: u32) -> Result<Ring, Error> {
        const EINVAL: i32 = 22;
        if !submissions.is_power_of_two() || submissions >= ring::MOST {
            return Err(Error(EINVAL));
        }
        let completions = 2 * submissions;
        let words = [0, submissions as usize, completions as usize, under_way as usize];
        // SAFETY: no memory of the program's is named: the kernel maps some, which stays until it is unmapped (Drop).
        let opened = unsafe { call(OPEN, words)? };
        let memory = NonNull::new((opened & !1) as *mut u8).ok_or(Error(EINVAL))?;
        Ok(Ring {
            memory,
            submissions,
            completions,
            filled: 0,
            reaped: 0,
            watched: opened & 1 != 0,
            _of_this_thread: PhantomData,
        })
    }

    /// Whether a module of the kernel's looks into it, so that calls are made while the program goes on.
    pub fn is_watched(&self) -> bool {
        self.watched
    }

    fn bytes(&self) -> usize {
        ring::bytes(self.submissions, self.completions)
    }

    fn place(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < self.bytes());
        // SAFETY: within the memory.
        unsafe { self.memory.as_ptr().add(offset) }
    }

    fn count(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: a word of the program's, aligned; the kernel reads it whole.
        unsafe { &*self.place(offset).cast() }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: a word of the kernel's, aligned; the kernel writes it whole.
        unsafe { &*self.place(offset).cast() }
    }

    /// Fills in a call, which [`Ring::submit`] submits.
    ///
    /// # Safety
    /// The call must be sound with these arguments, and memory that they name must be left to the kernel until the call's completion has been taken or the ring is dropped.
    pub unsafe fn push(&mut self, call: &Call) -> Result<(), Full> {
        let taken = self.word(at::TAKEN).load(Ordering::Acquire) as u32;
        if self.filled.wrapping_sub(taken) >= self.submissions {
            return Err(Full);
        }
        let place = self.place(at::ENTRIES + (self.filled & (self.submissions - 1)) as usize * size_of::<Call>());
        // SAFETY: within the memory and aligned; the kernel does not look at it before it is submitted.
        unsafe { ptr::write(place.cast(), *call) };
        self.filled = self.filled.wrapping_add(1);
        Ok(())
    }

    /// Submits what has been filled in, by one store. Calls are made once a module looks into the ring, or at the next [`Ring::wait`].
    pub fn submit(&mut self) {
        self.count(at::SUBMITTED).store(self.filled, Ordering::Release);
    }

    /// Whether nobody looks into the ring: what is submitted is made by the next [`Ring::wait`], with 0 if need be.
    pub fn must_announce(&self) -> bool {
        fence(Ordering::SeqCst);
        self.word(at::FLAGS).load(Ordering::Relaxed) & ANNOUNCE != 0
    }

    /// Has what is submitted made, and waits until at least so many completions can be taken, no longer than `nanos` (0: for ever): how many there are. ETIMEDOUT, EINTR.
    pub fn wait(&mut self, least: usize, nanos: u64) -> Result<usize, Error> {
        if self.watched && self.look(least) {
            return Ok(self.there_are());
        }
        // SAFETY: no pointers; what the calls of the ring do with memory is who pushed them has vouched for.
        unsafe { call(WAIT, [least, nanos as usize, 0, 0]) }
    }

    /// Completions that can be taken.
    fn there_are(&self) -> usize {
        (self.word(at::POSTED).load(Ordering::Acquire) as u32).wrapping_sub(self.reaped) as usize
    }

    /// Where a module makes the calls, looks for results in place of entering the kernel, for some 50 microseconds, what it costs to be woken: whether there are so many.
    fn look(&self, least: usize) -> bool {
        const LOOKS: u32 = 2000;
        for _ in 0..LOOKS {
            if self.must_announce() {
                return false;
            }
            if self.there_are() >= least {
                return true;
            }
            core::hint::spin_loop();
        }
        false
    }

    /// Takes a completion.
    pub fn end(&mut self) -> Option<Completion> {
        if self.word(at::POSTED).load(Ordering::Acquire) as u32 == self.reaped {
            return None;
        }
        let entries = ring::bytes(self.submissions, 0);
        let place = self.place(entries + (self.reaped & (self.completions - 1)) as usize * size_of::<Completion>());
        // SAFETY: within the memory and aligned; the kernel has written it before it counted it.
        let end = unsafe { ptr::read(place.cast()) };
        self.reaped = self.reaped.wrapping_add(1);
        self.count(at::REAPED).store(self.reaped, Ordering::Release);
        Some(end)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: when it returns the kernel uses the memory no more, nor that of calls under way.
        let _ = unsafe { call(CLOSE, [0; 4]) };
        // SAFETY: mapped when it was opened, and nobody uses it any more.
        let _ = unsafe { call(UNMAP, [self.memory.as_ptr().addr(), self.bytes(), 0, 0]) };
    }
}
