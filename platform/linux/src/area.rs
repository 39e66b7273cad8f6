//! Thread areas: taking and giving back kernel stacks.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use janua_abi::linux::mman::MADV_DONTNEED;
use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::{self, Own, STACK_BASE, STACK_SIZE, Shared, THREADS};

use crate::sys::{self, nr};

/// The areas that are taken, a bit for each: together, so that the search touches none of the areas themselves, which are in a page each that
/// the calling process may not have touched yet.
static TAKEN: [AtomicU64; THREADS / 64] = {
    let mut taken = [const { AtomicU64::new(0) }; THREADS / 64];
    // The first process' own thread, which nobody makes.
    taken[0] = AtomicU64::new(1);
    taken
};

/// The areas at this index and beyond have never been used.
static END: AtomicUsize = AtomicUsize::new(1);

/// The word of [`TAKEN`] with an area's bit, and the bit.
pub fn taken(index: usize) -> (&'static AtomicU64, u64) {
    (&TAKEN[index / 64], 1 << (index % 64))
}

/// The thread of area `index` runs in the same space as that of area `other`, or in one of its own.
pub fn set_space(index: usize, other: Option<usize>) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let space = match other {
        Some(other) => of(other).space.load(Ordering::Relaxed),
        None => LAST.fetch_add(1, Ordering::Relaxed) + 1,
    };
    of(index).space.store(space, Ordering::Relaxed);
}

/// The areas that are taken, lowest first. Their threads may be just being made or about to end.
fn for_each_taken(mut each: impl FnMut(usize)) {
    for index in 0..END.load(Ordering::Relaxed) {
        let (word, bit) = taken(index);
        if word.load(Ordering::Relaxed) & bit != 0 {
            each(index);
        }
    }
}

/// The host's id of a thread in each address space. Threads that are just being made or about to end may be left out.
pub fn for_each_space(mut each: impl FnMut(u32)) {
    let mut seen: Vec<u64> = Vec::new();
    for_each_taken(|index| {
        let (space, tid) = (of(index).space.load(Ordering::Relaxed), of(index).host_tid.load(Ordering::Relaxed));
        if tid != 0
            && let Err(place) = seen.binary_search(&space)
        {
            seen.insert(place, space);
            each(tid);
        }
    });
}

/// Takes a free area, the lowest: few stacks are touched, and those that threads have just left are warm. EAGAIN when the sandbox has its
/// most threads.
pub fn take() -> Result<usize> {
    for (at, word) in TAKEN.iter().enumerate() {
        let mut taken = word.load(Ordering::Relaxed);
        while taken != u64::MAX {
            let bit = !taken & taken.wrapping_add(1);
            let before = word.fetch_or(bit, Ordering::Acquire);
            if before & bit == 0 {
                let index = at * 64 + bit.trailing_zeros() as usize;
                END.fetch_max(index + 1, Ordering::Relaxed);
                return Ok(index);
            }
            taken = before;
        }
    }
    Err(Errno::EAGAIN)
}

/// The thread of an area has ended, as far as the kernel is concerned: what is known of it names nobody any more.
pub fn note_ended(index: usize) {
    of(index).ended.fetch_add(1, Ordering::Relaxed);
}

/// The number of no space: of threads of the kernel's own.
pub const NO_SPACE: u64 = 0;

/// Gives an area back that never ran.
pub fn give_back(index: usize) {
    note_ended(index);
    let (word, bit) = taken(index);
    word.fetch_and(!bit, Ordering::Release);
}

/// The calling thread, whose area it is, has made a process, or tried to.
///
/// What it wrote on the new stack stays in its own process' page tables. The host copies those of all stacks at each fork, because one
/// has a guard ([`crate::guard`]), and takes them down at each child's end: after a thousand processes that was most of a fork. So
/// once in a while the process forgets all stacks, which are shared memory and lose nothing by it.
pub fn let_go(index: usize) {
    const OFTEN: u32 = 64;
    let made = &of(index).made;
    if made.fetch_add(1, Ordering::Relaxed) + 1 == OFTEN {
        made.store(0, Ordering::Relaxed);
        let len = END.load(Ordering::Relaxed) * STACK_SIZE;
        // SAFETY: pages of the shared file, whose contents stay; the next access maps them again.
        let _ = unsafe { sys::raw(nr::MADVISE, [STACK_BASE, len, MADV_DONTNEED as usize, 0, 0, 0]) };
    }
}

/// What others may touch of an area, running or not.
pub fn of(index: usize) -> &'static Shared {
    // SAFETY: index is below THREADS, so the area is in the stack region, which is mapped for the sandbox's life; zeroes are
    // a valid area. All of this part is atomic.
    unsafe { &(*hosted::area(index)).shared }
}

/// A thread's own part of its area.
///
/// # Safety
/// Only for the thread itself, or before it starts; while this is in use it is not to be had again.
#[allow(clippy::mut_from_ref, reason = "the area is raw shared memory")]
pub unsafe fn own(index: usize) -> &'static mut Own {
    // SAFETY: mapped, as in `of`, and the caller is the only one to touch it.
    unsafe { &mut (*hosted::area(index)).own }
}
