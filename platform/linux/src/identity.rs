//! Who a thread is, in a form only the host can change.
//!
//! A rewritten call comes without anything from the host that could tell the threads apart, and everything the guest can
//! write could lie. What it cannot write is the host's descriptor table: each thread has three entries of its own there, set
//! by set_thread_area(2), and the limit of one is the thread's index. The entry reads it with `lsl`.
//!
//! The call exists in the host's 32-bit interface alone, whose pointers have 32 bits, so its argument is in a page below 4 GiB
//! that shows a page of kernel memory, with the kernel's key. There it can only be read: the kernel writes at the page's own place.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::entry::THREAD_ENTRY;
use janua_entry::hosted::hostcall::hostcall32;
use janua_entry::hosted::{LOW_PAGE, LOW_SHOWS, LOW_SIZE};

/// set_thread_area(2) in the host's 32-bit table.
pub const SET_THREAD_AREA: u32 = 243;
/// `struct user_desc` flags: a 32-bit data segment, not writable; its limit counts bytes.
const FLAGS: u32 = 1 | 1 << 3;

/// `struct user_desc`, and a word to take turns by.
#[repr(C, align(32))]
struct Slot {
    entry: AtomicU32,
    base: AtomicU32,
    limit: AtomicU32,
    flags: AtomicU32,
    taken: AtomicU32,
}

/// The page is full of slots: threads that start at once do not wait for each other, nor for one that has been put aside.
const SLOTS: usize = LOW_SIZE / size_of::<Slot>();
/// Turns taken so far.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Gives the calling thread its identity. An error means that the host has no 32-bit calls.
pub fn set(index: usize) -> Result<()> {
    set_entry(&UserDesc { entry: THREAD_ENTRY, base: 0, limit: index as u32, flags: FLAGS })
}

/// Sets an entry of the calling thread in the host's descriptor table.
pub fn set_entry(descriptor: &UserDesc) -> Result<()> {
    let at = NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS * size_of::<Slot>();
    // SAFETY: in a page of the control region that nothing else uses; zeroes are a valid slot, and all of it is atomic.
    let slot = unsafe { &*((LOW_SHOWS + at) as *const Slot) };
    // Held for one host call; the processes of a sandbox are not stopped in the kernel.
    while slot.taken.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        core::hint::spin_loop();
    }
    slot.entry.store(descriptor.entry, Ordering::Relaxed);
    slot.base.store(descriptor.base, Ordering::Relaxed);
    slot.limit.store(descriptor.limit, Ordering::Relaxed);
    slot.flags.store(descriptor.flags, Ordering::Relaxed);
    // SAFETY: the structure is ours, in a page below 4 GiB that shows the slot.
    let result = unsafe { hostcall32(SET_THREAD_AREA, (LOW_PAGE + at) as u32) };
    // The one page of the kernel's that the entries do not refuse as a stack: nothing stays there.
    for word in [&slot.entry, &slot.base, &slot.limit, &slot.flags] {
        word.store(0, Ordering::Relaxed);
    }
    slot.taken.store(0, Ordering::Release);
    Errno::from_raw(result as isize).map(|_| ())
}
