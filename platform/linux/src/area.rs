//! Thread areas: taking and giving back kernel stacks.

use core::sync::atomic::{AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_arch::x86_64::hosted::{self, Area, THREADS};

/// Where the search for a free area starts.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Takes a free area. EAGAIN when the sandbox has its most threads.
pub fn take() -> Result<usize> {
    let start = NEXT.load(Ordering::Relaxed);
    for step in 0..THREADS {
        let index = (start + step) % THREADS;
        // Areas never used read as zero, free: the file is sparse.
        if of(index).state.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            // Low indices first keeps few stacks touched; threads that just ended leave theirs warm.
            NEXT.store(if step == 0 { index + 1 } else { 0 }, Ordering::Relaxed);
            return Ok(index);
        }
    }
    Err(Errno::EAGAIN)
}

/// Gives an area back that never ran.
pub fn give_back(index: usize) {
    of(index).state.store(0, Ordering::Release);
    NEXT.fetch_min(index, Ordering::Relaxed);
}

/// The shared part of an area: its atomics.
pub fn of(index: usize) -> &'static Area {
    // SAFETY: index is below THREADS, so the area lies in the stack region, which is mapped for the sandbox's life; zeroes are
    // a valid area. Fields that are not atomic are read and written only by the area's own thread or before it starts.
    unsafe { &*hosted::area(index) }
}

/// The area of a running thread, to change its plain fields.
///
/// # Safety
/// Only for the thread itself, or before it starts.
#[allow(clippy::mut_from_ref, reason = "the area is raw shared memory")]
pub unsafe fn of_mut(index: usize) -> &'static mut Area {
    // SAFETY: as `of`, and the caller is the only one to touch the plain fields.
    unsafe { &mut *hosted::area(index) }
}
