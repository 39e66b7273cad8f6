//! Thread areas: taking and giving back kernel stacks.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_arch::x86_64::hosted::{self, Area, THREADS};

/// Where the search for a free area starts.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The areas at this index and beyond have never been used.
static END: AtomicUsize = AtomicUsize::new(1);

/// Which address space the thread of an area runs in: a number of its own for each.
static SPACES: [AtomicU32; THREADS] = [const { AtomicU32::new(0) }; THREADS];

/// The thread of area `index` runs in the same space as that of area `other`, or in one of its own.
pub fn set_space(index: usize, other: Option<usize>) {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let space = match other {
        Some(other) => SPACES[other].load(Ordering::Relaxed),
        None => LAST.fetch_add(1, Ordering::Relaxed) + 1,
    };
    SPACES[index].store(space, Ordering::Relaxed);
}

/// The host's id of a thread in each address space. Threads that are just being made or about to end may be left out.
pub fn for_each_space(mut each: impl FnMut(u32)) {
    let mut seen: Vec<u32> = Vec::new();
    for index in 0..END.load(Ordering::Relaxed) {
        let (space, tid) = (SPACES[index].load(Ordering::Relaxed), of(index).host_tid.load(Ordering::Relaxed));
        if of(index).state.load(Ordering::Relaxed) == 0 || tid == 0 {
            continue;
        }
        if let Err(place) = seen.binary_search(&space) {
            seen.insert(place, space);
            each(tid);
        }
    }
}

/// Takes a free area. EAGAIN when the sandbox has its most threads.
pub fn take() -> Result<usize> {
    let start = NEXT.load(Ordering::Relaxed);
    for step in 0..THREADS {
        let index = (start + step) % THREADS;
        // Areas never used read as zero, free: the file is sparse.
        if of(index).state.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            // Low indices first keeps few stacks touched; threads that just ended leave theirs warm.
            NEXT.store(if step == 0 { index + 1 } else { 0 }, Ordering::Relaxed);
            if index >= END.load(Ordering::Relaxed) {
                END.fetch_max(index + 1, Ordering::Relaxed);
            }
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
