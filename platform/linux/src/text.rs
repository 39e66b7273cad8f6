//! The kernel's text: pages of the command's file at first, huge pages of a process' own once they are worth it.
//!
//! A sandbox starts without copying any text, and one that ends soon never does: four megabytes to be cleared and copied were a quarter of the
//! start of `true`. What small pages cost comes later. Each fork copies an entry for each of them, so a process that forks among many gets huge
//! pages first, which its children have from it; and kernel code that runs long has fewer entries to look up, so a process that still has small
//! pages when the sandbox has run for a while gets them when it waits, or when the service thread finds it in user code.
//!
//! While the pages are exchanged the text can run at two places, and at the second its entries find nothing of what they look at. So no other
//! thread of the process may be user code then: a process gets huge pages while it has one thread, at the latest before it has two.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use janua_abi::linux::Errno;
use janua_abi::linux::mman::{
    MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, MAP_PRIVATE, MREMAP_FIXED, MREMAP_MAYMOVE, PROT_EXEC, PROT_READ,
    PROT_WRITE,
};
use janua_entry::hosted::entry::KERNEL_KEY;
use janua_entry::hosted::{self, IMAGE_SIZE, KERNEL_BASE, THREADS};
use janua_port::{Clock, Nanos};

use crate::boot::{self, Jail};
use crate::clock::HostClock;
use crate::context::here;
use crate::sys::{self, nr};
use crate::{area, machine, spawn};

/// Forks of a sandbox, its first program among them, before a process that forks is taken for one that will do so again.
const FEW: u32 = 4;
/// A sandbox that has run so long is taken for one that goes on.
const SOON: Nanos = 20_000_000;
/// How often the service thread looks for processes in user code that have small pages, each time after twice as long.
const LOOKS: u32 = 8;

/// When the kernel started, by the monotonic clock.
static STARTED: AtomicU64 = AtomicU64::new(0);
/// Looks of the service thread that are done.
static LOOKED: AtomicU32 = AtomicU32::new(0);

/// The areas whose threads' processes have small pages, a bit for each: together, so that a look at all of them touches none of the areas
/// themselves, which are in a page each.
static SMALL: [AtomicU64; THREADS / 64] = [const { AtomicU64::new(0) }; THREADS / 64];

/// The word of [`SMALL`] with an area's bit, and the bit.
fn small(index: usize) -> (&'static AtomicU64, u64) {
    (&SMALL[index / 64], 1 << (index % 64))
}

/// Begins to count the sandbox's age, in its first thread.
pub fn start() {
    if place().0 != 0 {
        SMALL[0].store(1, Ordering::Relaxed);
    }
    STARTED.store(HostClock.monotonic(), Ordering::Relaxed);
}

/// Where the huge pages go; 0 and 0 when the text has been in such from the start.
fn place() -> (usize, usize) {
    let [start, end] = boot::info().text;
    (start as usize, end as usize)
}

fn is_old() -> bool {
    HostClock.monotonic() >= STARTED.load(Ordering::Relaxed) + SOON
}

fn has_small_pages(index: usize) -> bool {
    let (word, bit) = small(index);
    word.load(Ordering::Relaxed) & bit != 0
}

/// Of a new thread: it has the text as its maker has it.
pub fn inherit(index: usize) {
    inherit_from(index, here());
}

/// The same of a thread that is to run in the process of the thread of another area.
pub fn inherit_from(index: usize, other: usize) {
    let ((word, bit), has) = (small(index), has_small_pages(other));
    // Nearly always it is so already.
    if has_small_pages(index) != has {
        let _ = if has { word.fetch_or(bit, Ordering::Relaxed) } else { word.fetch_and(!bit, Ordering::Relaxed) };
    }
}

/// The areas that are taken and whose threads' processes have small pages.
fn each_small(mut each: impl FnMut(usize)) {
    for (at, word) in SMALL.iter().enumerate() {
        let mut bits = word.load(Ordering::Relaxed);
        while bits != 0 {
            let index = at * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let (word, bit) = area::taken(index);
            if word.load(Ordering::Relaxed) & bit != 0 {
                each(index);
            }
        }
    }
}

/// The calling thread, whose area it is, is about to make a process.
pub fn before_fork(index: usize) {
    if has_small_pages(index) && (spawn::forks()[0] >= FEW || is_old()) {
        unite(index);
    }
}

/// The calling thread, whose area it is, is about to make another in its process.
pub fn before_thread(index: usize) {
    if has_small_pages(index) {
        unite(index);
    }
}

/// The calling thread has time, or is not needed at once.
pub fn settle(index: usize) {
    if has_small_pages(index) && is_old() {
        unite(index);
    }
}

/// For the service thread: has each process that runs with small pages call [`settle`]. Returns when to look again.
pub fn look() -> Option<Nanos> {
    let looked = LOOKED.load(Ordering::Relaxed);
    if looked == LOOKS || place().0 == 0 {
        return None;
    }
    let due = STARTED.load(Ordering::Relaxed) + (SOON << looked);
    if HostClock.monotonic() < due {
        return Some(due);
    }
    each_small(|index| {
        if spawn::has_guest(index) {
            spawn::kick(index);
        }
    });
    LOOKED.store(looked + 1, Ordering::Relaxed);
    (looked + 1 < LOOKS).then(|| STARTED.load(Ordering::Relaxed) + (SOON << (looked + 1)))
}

/// Bytes by which the text of a process takes more of the host's memory than when it started.
pub fn more(index: usize) -> u64 {
    let (start, end) = place();
    if has_small_pages(index) || start == 0 { 0 } else { (end - start) as u64 - boot::info().text_resident }
}

/// Puts huge pages in the place of the text, with the same in them, if no other thread of the process can run user code. The kernel's own
/// may run the text meanwhile: they wait in a fault while the host exchanges the pages. What the host refuses leaves the text as it is, for
/// good.
fn unite(index: usize) {
    // Under the jail `process` this is the kernel's process, whose threads serve guests that are elsewhere. A parent that waits for its child of
    // vfork is alone again later.
    if !hosted::is_alone() && boot::jail() != Jail::Process {
        return;
    }
    let (start, end) = place();
    let len = end - start;
    // Behind all of the image; the supervisor has looked that there is room.
    let new = KERNEL_BASE + IMAGE_SIZE - len;
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    // SAFETY: kernel memory that nothing is mapped at.
    match unsafe { sys::raw(nr::MMAP, [new, len, 0, flags as usize, usize::MAX, 0]) } {
        Ok(_) => {}
        // Another thread of the kernel's is at it.
        Err(Errno::EEXIST) => return,
        Err(_) => return note(index),
    }
    // Locked before anything is in it, as all of the kernel's memory is.
    let protect = |rights: u32| {
        let (call, key) = match boot::jail() {
            Jail::Pkey => (nr::PKEY_MPROTECT, KERNEL_KEY),
            Jail::None | Jail::Process => (nr::MPROTECT, 0),
        };
        // SAFETY: the pages just mapped, which nobody else uses.
        unsafe { sys::raw(call, [new, len, rights as usize, key as usize, 0, 0]) }
    };
    let fill = || {
        let [from, to] = boot::info().text_mapped.map(|at| at as usize);
        // SAFETY: the pages just mapped, in which there is room for the text at the same distance from the start.
        unsafe {
            let _ = sys::raw(nr::MADVISE, [new, len, MADV_HUGEPAGE as usize, 0, 0, 0]);
            core::ptr::copy_nonoverlapping(from as *const u8, (new + (from - start)) as *mut u8, to - from);
        }
    };
    let exchange = || {
        let args = [new, len, len, (MREMAP_MAYMOVE | MREMAP_FIXED) as usize, start, 0];
        // SAFETY: pages that hold what those of the text hold come in their place.
        unsafe { sys::raw(nr::MREMAP, args) }
    };
    let done =
        protect(PROT_READ | PROT_WRITE).map(|_| fill()).and_then(|()| protect(PROT_READ | PROT_EXEC)).and_then(|_| exchange());
    if done.is_err() {
        // A second text must not stay, in a child of fork either.
        // SAFETY: the pages mapped above.
        let gone = (0..3).any(|_| unsafe { sys::raw(nr::MUNMAP, [new, len, 0, 0, 0, 0]) }.is_ok());
        if !gone {
            sys::write_all(2, b"janua: the host does not take back memory of the kernel's\n");
            machine::stop_sandbox(125);
        }
    }
    note(index);
}

/// The calling thread's process is not to try again.
fn note(index: usize) {
    let space = area::of(index).space.load(Ordering::Relaxed);
    each_small(|other| {
        if other == index || area::of(other).space.load(Ordering::Relaxed) == space {
            let (word, bit) = small(other);
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    });
}
