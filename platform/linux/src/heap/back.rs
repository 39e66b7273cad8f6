//! Heap that nobody uses goes back to the host, and out of the sandbox's account.
//!
//! The heap is mapped from a shared file: what is to be given back is taken out of the file ([`punch`]), chunk by chunk, and the place is
//! still the allocator's: a free gap of which only the ends, where the allocator writes, are there. Before a block in a gap is used the
//! chunks under it count again ([`Idle::regain`]); the host fills them with zeros when they are touched.
//!
//! The service thread does it ([`Heap::give_back`]) once there is enough of it. It takes what is free as blocks, like anybody else,
//! and gives the middle of each away without the lock; should somebody need memory meanwhile, the blocks are freed first
//! ([`Idle::let_go`]).

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use janua_entry::hosted::{self, HEAP_BASE, HEAP_SIZE};
use talc::Talc;

use super::{ALIGN, CLASSES, Free, Grow, Heap, class_layout};
use crate::sys::{self, nr};
use crate::{boot, machine};

/// What is given back at a time; a smaller gap stays.
const CHUNK: usize = 16 << 10;
/// Bytes at a block's ends that the allocator may write: its own words about what is free there.
const MARGIN: usize = 64;
/// Blocks that are tried, in this order: the smallest has a whole chunk in it wherever it is.
const SIZES: [usize; 5] = [8 << 20, 1 << 20, 256 << 10, 96 << 10, 2 * CHUNK + 2 * MARGIN];
/// Unused bytes that are left alone, and the part of the heap that is.
const LEAST: usize = 8 << 20;
const PART: usize = 8;
/// The same where the sandbox is beyond its limit.
const LEAST_IN_NEED: usize = 4 << 20;
/// Kept blocks that are freed while the lock is held once.
const AT_ONCE: usize = 256;
const MADV_REMOVE: usize = 9;

/// Chunks that have been given back.
// SAFETY: a section of zeroes as `.bss` is, which the link puts behind it (`image/linux/far.ld`).
#[unsafe(link_section = ".bss.far")]
static GONE: [AtomicU64; HEAP_SIZE / CHUNK / 64] = [const { AtomicU64::new(0) }; HEAP_SIZE / CHUNK / 64];
/// There is enough to be given back.
static WANTED: AtomicBool = AtomicBool::new(false);
/// The heap, once it has memory.
static HEAP: AtomicPtr<Heap> = AtomicPtr::new(core::ptr::null_mut());

/// What of the heap is unused.
pub(super) struct Idle {
    /// Bytes that are there and nobody has.
    bytes: usize,
    /// How many of them are enough to be given back.
    enough: usize,
    /// How many were left the last time, between blocks in use.
    left: usize,
    /// Chunks that are not there.
    gone: usize,
    /// The service thread takes what is free: the heap does not grow for it.
    taking: bool,
    /// Blocks it has taken, each with the next one's address and its own size in it.
    taken: *mut Taken,
    /// They had to be freed.
    disturbed: bool,
}

struct Taken {
    next: *mut Taken,
    size: usize,
}

// SAFETY: the blocks are the heap's, which is the same in every process; they are touched with its lock held.
unsafe impl Send for Idle {}

impl Idle {
    pub const NONE: Idle =
        Idle { bytes: 0, enough: LEAST, left: 0, gone: 0, taking: false, taken: core::ptr::null_mut(), disturbed: false };

    /// Bytes now. A sum of what each thread has done is never far below 0.
    fn now(&self) -> usize {
        usize::try_from(self.bytes as isize).unwrap_or(0)
    }

    fn is_enough_in_need(&mut self) -> bool {
        self.left = self.left.min(self.now());
        self.now() >= self.left + LEAST_IN_NEED
    }

    /// The allocator has so many bytes more.
    pub fn more(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Somebody has got a block.
    #[inline]
    pub fn out(&mut self, bytes: usize) {
        self.bytes = self.bytes.wrapping_sub(bytes);
    }

    /// A block is no longer in use.
    #[inline]
    pub fn back(&mut self, bytes: usize) {
        self.bytes = self.bytes.wrapping_add(bytes);
        if self.now() > self.enough {
            self.want();
        }
    }

    #[cold]
    fn want(&mut self) {
        // Once; the service thread decides when next.
        self.enough = isize::MAX as usize;
        WANTED.store(true, Ordering::SeqCst);
        machine::wake_service();
    }

    /// A block that the allocator gives is used: what is not there of its place counts again. Whether anything does.
    #[inline]
    pub fn regain(&mut self, block: *mut u8, size: usize) -> bool {
        self.gone != 0 && self.regain_chunks(block as usize - MARGIN, block as usize + size + MARGIN)
    }

    #[cold]
    fn regain_chunks(&mut self, from: usize, to: usize) -> bool {
        let mut count = 0;
        for chunk in (from - HEAP_BASE) / CHUNK..(to - HEAP_BASE).div_ceil(CHUNK).min(HEAP_SIZE / CHUNK) {
            let (word, bit) = (&GONE[chunk / 64], 1 << (chunk % 64));
            if word.load(Ordering::Relaxed) & bit != 0 {
                word.fetch_and(!bit, Ordering::Relaxed);
                count += 1;
            }
        }
        if count == 0 {
            return false;
        }
        self.gone -= count;
        self.bytes = self.bytes.wrapping_add(count * CHUNK);
        let accounts = boot::accounts();
        accounts.add_firm(count * CHUNK);
        if accounts.is_tight() {
            super::blame();
        }
        true
    }

    /// Frees what the service thread has taken: whether it had anything. `Err`: it is the service thread that asks.
    pub fn let_go(talc: &mut Talc<Grow>) -> Result<bool, ()> {
        if talc.oom_handler.idle.taking {
            return Err(());
        }
        talc.oom_handler.idle.disturbed = true;
        Ok(Idle::free_taken(talc))
    }

    fn free_taken(talc: &mut Talc<Grow>) -> bool {
        let mut next = core::mem::replace(&mut talc.oom_handler.idle.taken, core::ptr::null_mut());
        let any = !next.is_null();
        while let Some(block) = NonNull::new(next) {
            // SAFETY: a block in the list is the service thread's, written by `take`, with this layout.
            unsafe {
                let Taken { next: following, size } = block.read();
                next = following;
                talc.free(block.cast(), Layout::from_size_align_unchecked(size, ALIGN));
            }
        }
        any
    }

    /// Takes a free block of that size.
    fn take(talc: &mut Talc<Grow>, size: usize) -> Option<NonNull<Taken>> {
        talc.oom_handler.idle.taking = true;
        // SAFETY: the size is not 0 and the alignment a power of two.
        let block = unsafe { talc.malloc(Layout::from_size_align_unchecked(size, ALIGN)) };
        let idle = &mut talc.oom_handler.idle;
        idle.taking = false;
        let block: NonNull<Taken> = block.ok()?.cast();
        let (start, end) = (block.as_ptr() as usize, block.as_ptr() as usize + size);
        // The ends are written.
        if idle.gone != 0 {
            idle.regain_chunks(start - MARGIN, start + MARGIN);
            idle.regain_chunks(end - MARGIN, end + MARGIN);
        }
        // SAFETY: the block is ours and large enough.
        unsafe { block.write(Taken { next: core::ptr::null_mut(), size }) };
        Some(block)
    }

    /// The middle of a block has gone: counts what had not before.
    fn note_gone(&mut self, chunks: core::ops::Range<usize>) {
        let mut count = 0;
        for chunk in chunks {
            count += usize::from(GONE[chunk / 64].fetch_or(1 << (chunk % 64), Ordering::Relaxed) >> (chunk % 64) & 1 == 0);
        }
        self.gone += count;
        self.bytes = self.bytes.wrapping_sub(count * CHUNK);
        boot::accounts().give_firm(count * CHUNK);
    }
}

/// The whole chunks in the middle of a block.
fn middle(block: NonNull<Taken>, size: usize) -> core::ops::Range<usize> {
    let start = block.as_ptr() as usize - HEAP_BASE;
    (start + MARGIN).div_ceil(CHUNK)..(start + size - MARGIN) / CHUNK
}

/// Takes chunks that nobody uses out of the file.
fn punch(chunks: &core::ops::Range<usize>) -> bool {
    let all = |chunk: usize| GONE[chunk / 64].load(Ordering::Relaxed) >> (chunk % 64) & 1 != 0;
    if chunks.clone().all(all) {
        return true;
    }
    let (from, len) = (HEAP_BASE + chunks.start * CHUNK, chunks.len() * CHUNK);
    // SAFETY: pages in the middle of a block that is ours and has nothing in it.
    unsafe { sys::raw(nr::MADVISE, [from, len, MADV_REMOVE, 0, 0, 0]) }.is_ok()
}

/// Whether a part of the heap is not there: whole words of chunks.
pub(super) fn has_holes(from: usize, len: usize) -> bool {
    GONE[from / CHUNK / 64..(from + len) / CHUNK / 64].iter().any(|word| word.load(Ordering::Relaxed) != 0)
}

/// Gives back what is unused if there is enough of it. The service thread's.
pub fn give_back() {
    let wanted = WANTED.swap(false, Ordering::SeqCst);
    let in_need = boot::accounts().memory.is_over();
    if !wanted && !in_need {
        return;
    }
    // SAFETY: the heap is a static, stored once.
    if let Some(heap) = unsafe { HEAP.load(Ordering::Acquire).as_ref() } {
        heap.give_back(wanted);
    }
}

impl Heap {
    pub(super) fn is_there(&'static self) {
        HEAP.store(core::ptr::from_ref(self).cast_mut(), Ordering::Release);
    }

    #[cold]
    fn give_back(&self, wanted: bool) {
        if !wanted && !self.talc.lock().oom_handler.idle.is_enough_in_need() {
            return;
        }
        self.free_kept();
        self.talc.lock().oom_handler.idle.disturbed = false;
        'all: for size in SIZES {
            loop {
                let mut talc = self.talc.lock();
                if talc.oom_handler.idle.disturbed {
                    break 'all;
                }
                let Some(block) = Idle::take(&mut talc, size) else { break };
                drop(talc);
                let chunks = middle(block, size);
                let gone = punch(&chunks);
                let mut talc = self.talc.lock();
                let idle = &mut talc.oom_handler.idle;
                if gone {
                    idle.note_gone(chunks);
                }
                // SAFETY: the block is ours.
                unsafe { (*block.as_ptr()).next = idle.taken };
                idle.taken = block.as_ptr();
                if !gone {
                    break 'all;
                }
            }
        }
        let mut talc = self.talc.lock();
        Idle::free_taken(&mut talc);
        let there = talc.oom_handler.claimed.size() - talc.oom_handler.idle.gone * CHUNK;
        // What could not be given back, since it is between blocks in use, is not tried again for a while.
        let idle = &mut talc.oom_handler.idle;
        idle.left = idle.now();
        idle.enough = idle.left + LEAST.max(there / PART);
    }

    /// Gives the allocator the blocks that are kept by size, a few at a time.
    fn free_kept(&self) {
        for class in 0..CLASSES.len() {
            loop {
                let mut talc = self.talc.lock();
                let mut left = AT_ONCE;
                while left > 0
                    && let Some(block) = talc.oom_handler.kept.take(class)
                {
                    // SAFETY: it came from the allocator with this layout, and is in no list any more.
                    unsafe { talc.free(block, class_layout(class)) };
                    left -= 1;
                }
                if left > 0 {
                    break;
                }
            }
        }
    }
}

const _: () = assert!(size_of::<Taken>() <= MARGIN && size_of::<Free>() <= MARGIN && SIZES[4] - 2 * MARGIN >= 2 * CHUNK);
const _: () = assert!(hosted::HEAP_BASE.is_multiple_of(CHUNK));
