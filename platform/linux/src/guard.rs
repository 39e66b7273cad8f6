//! What keeps a kernel stack that grows too deep off the one below.
//!
//! Stacks are one behind the other in one mapping, each with its thread's area at the top, so an overflow would destroy the saved
//! registers of another thread, perhaps of another process. A page without rights below each would cut the mapping in two for
//! every thread, and each piece costs at fork. Linux 6.15 has guard regions for shared memory (madvise(2), MADV_GUARD_INSTALL): a
//! mark in the page tables that makes an access a fault and leaves the mapping whole. After a call the fault is reported
//! from the room that is left to signals; after a trap that is in use, the host ends the process, and the supervisor stops the sandbox.
//!
//! Where the host has none, the lowest words of a stack are looked at when its thread waits or ends: nothing writes there unless
//! the stack is used up. That finds an overflow late, but the sandbox does not go on with it. Neither costs a call that
//! returns at once anything.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use janua_abi::linux::mman::MADV_GUARD_INSTALL;
use janua_entry::hosted;
use janua_port::PAGE;

use crate::machine;
use crate::sys::{self, nr};

/// Words at the end of a stack that are looked at.
const WORDS: usize = 8;

/// The host has no guard regions for shared memory.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Makes the lowest page of a stack a guard, in the calling process.
pub fn set(index: usize) {
    if REFUSED.load(Ordering::Relaxed) {
        return;
    }
    let (base, _) = hosted::stack(index);
    // SAFETY: the lowest page of a stack of the kernel's holds nothing; its thread calls this at its start, far above.
    if unsafe { sys::raw(nr::MADVISE, [base, PAGE, MADV_GUARD_INSTALL as usize, 0, 0, 0]) }.is_err() {
        REFUSED.store(true, Ordering::Relaxed);
    }
}

/// Stops the sandbox when the stack of the calling thread has been used up, where no guard would have caught it.
pub fn check(index: usize) {
    if REFUSED.load(Ordering::Relaxed) {
        look(index);
    }
}

#[cold]
fn look(index: usize) {
    let (base, _) = hosted::stack(index);
    // SAFETY: the lowest words of the thread's own stack, mapped and aligned.
    let words = unsafe { &*(base as *const [AtomicU64; WORDS]) };
    if words.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
        sys::write_all(2, b"janua: kernel fault: a kernel stack overflowed\n");
        machine::stop_sandbox(125);
    }
}
