//! Rows about io_uring: what a submission costs when several share a call.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::calls::Fd;
use crate::meter::Meter;
use crate::{Samples, Skip, sys};

const SETUP: i64 = 425;
const ENTER: i64 = 426;
/// IORING_ENTER_GETEVENTS.
const GETEVENTS: usize = 1;
/// The offset at which the submissions are mapped.
const SUBMISSIONS: i64 = 0x1000_0000;
const SUBMISSION: usize = 64;
const COMPLETION: usize = 16;

/// Words of `struct io_uring_params`: the entries of both rings, and what is where in their memory.
const SQ_ENTRIES: usize = 0;
const CQ_ENTRIES: usize = 1;
const SQ_TAIL: usize = 11;
const SQ_ARRAY: usize = 16;
const CQ_HEAD: usize = 20;
const CQ_TAIL: usize = 21;
const CQ_CQES: usize = 25;

/// A mapping of a ring's, unmapped in the end.
struct Mapped(*mut u8, usize);

impl Mapped {
    fn new(ring: &Fd, len: usize, offset: i64) -> Result<Mapped, Skip> {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping where the kernel likes.
        let at = unsafe { libc::mmap(ptr::null_mut(), len, rights, flags, ring.0, offset) };
        if at == libc::MAP_FAILED { Err(Skip::last("mmap of a ring")) } else { Ok(Mapped(at.cast(), len)) }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= self.1 && offset.is_multiple_of(4));
        // SAFETY: within the mapping and aligned; others change it by whole words.
        unsafe { &*self.0.add(offset).cast() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped above, and no reference outlives this.
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

/// Rows `ring-N`: so many operations that do nothing, submitted and completed by one call. Their entries stay as they are.
pub fn nops<const N: usize>(meter: &Meter) -> Samples {
    let mut params = [0_u32; 30];
    let at = (&raw mut params) as usize;
    // SAFETY: room for the structure.
    let ring = unsafe { sys::call3::<SETUP>("io_uring_setup", N, at, 0)? };
    let ring = Fd(ring as i32);
    let word = |at: usize| params[at] as usize;
    let array = word(SQ_ARRAY) + 4 * word(SQ_ENTRIES);
    let completions = word(CQ_CQES) + COMPLETION * word(CQ_ENTRIES);
    let rings = Mapped::new(&ring, array.max(completions), 0)?;
    // New memory is zero, and so is the number of the operation that does nothing.
    let _submissions = Mapped::new(&ring, SUBMISSION * word(SQ_ENTRIES), SUBMISSIONS)?;
    for entry in 0..word(SQ_ENTRIES) {
        rings.word(word(SQ_ARRAY) + 4 * entry).store(entry as u32, Ordering::Relaxed);
    }
    let (tail, head, done) = (rings.word(word(SQ_TAIL)), rings.word(word(CQ_HEAD)), rings.word(word(CQ_TAIL)));
    meter.each(|| {
        tail.store(tail.load(Ordering::Relaxed).wrapping_add(N as u32), Ordering::Release);
        // SAFETY: no signal mask.
        let submitted = unsafe { sys::call::<ENTER>([ring.0 as usize, N, N, GETEVENTS, 0, 0]) };
        head.store(done.load(Ordering::Acquire), Ordering::Release);
        if submitted == N as i64 { Ok(()) } else { Err(Skip(format!("io_uring_enter gave {submitted}"))) }
    })
}
