//! Physical memory: a free list threaded through the free pages, and a count of users for each page.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use janua_paging::{Frames, PAGE, PageFrame};

use crate::boot::{DIRECT, Loaded};
use crate::lock::Mutex;

/// The machine's page frames.
pub struct Physical {
    free: Mutex<Free>,
    /// One counter a frame, in memory set aside at start.
    counts: AtomicUsize,
    /// Frames below this number have a counter.
    end: AtomicUsize,
    total: AtomicUsize,
}

struct Free {
    /// Physical address of the first free page, which holds that of the next; 0 ends the list.
    first: usize,
    /// Never used memory that is still in one piece: start and end, ascending. Empty ones are (0, 0).
    fresh: [(usize, usize); PIECES],
    /// What is mapped as yet: pieces from here on are not touched.
    reach: usize,
    pages: usize,
}

/// The one set of frames.
pub static FRAMES: Physical = Physical {
    free: Mutex::new(Free { first: 0, fresh: [(0, 0); PIECES], reach: REACH, pages: 0 }),
    counts: AtomicUsize::new(0),
    end: AtomicUsize::new(0),
    total: AtomicUsize::new(0),
};

/// Memory below this is left to firmware and to the start of other cores.
const LOW_END: usize = 1 << 20;
/// What the boot page tables map.
const REACH: usize = 4 << 30;
/// What the direct map may come to: up to the thread stacks.
const MOST: usize = crate::tables::STACKS - DIRECT;
/// Ranges of memory that are kept apart.
const PIECES: usize = 16;

unsafe extern "C" {
    static kernel_end: u8;
}

/// The physical address behind a pointer into the direct map.
pub fn address_of(frame: PageFrame) -> usize {
    frame.0 * PAGE
}

/// Pages that only the kernel's heap and tables get, at most; on small machines an eighth of all.
const RESERVE: usize = 4096;

/// Where a frame is mapped.
pub fn pointer(frame: PageFrame) -> *mut u8 {
    (DIRECT + frame.0 * PAGE) as *mut u8
}

impl Physical {
    /// Takes over the memory the loader told of, without the kernel and the initial file tree.
    /// What else the loader left is read before anything is taken.
    pub fn init(&self, loaded: &Loaded) {
        let kernel = (&raw const kernel_end) as usize - crate::boot::KERNEL_OFFSET;
        let initrd = loaded.initrd().unwrap_or((0, 0));
        let floor = kernel.max(LOW_END).next_multiple_of(PAGE);
        let mut pieces = [(0usize, 0usize); PIECES];
        let mut used = 0;
        let mut highest = 0;
        let mut add = |start: usize, end: usize| {
            let (start, end) = (start.max(floor).next_multiple_of(PAGE), end.min(MOST) & !(PAGE - 1));
            if start < REACH && end > REACH {
                // Not mapped as yet, and no machine's memory goes on without a break here.
                return;
            }
            if start < end && used < pieces.len() {
                pieces[used] = (start, end);
                used += 1;
                highest = highest.max(end);
            }
        };
        for (start, end) in loaded.memory() {
            if initrd.1 > initrd.0 && initrd.0 < end && initrd.1 > start {
                add(start, initrd.0);
                add(initrd.1, end);
            } else {
                add(start, end);
            }
        }
        // The counters go to the start of the largest piece. They cover the initial file tree too, which is freed later.
        let highest = highest.max(initrd.1).next_multiple_of(PAGE);
        let bytes = (highest / PAGE * size_of::<AtomicU32>()).next_multiple_of(PAGE);
        let low = pieces.iter_mut().filter(|(_, end)| *end <= REACH);
        let Some(largest) = low.max_by_key(|(start, end)| end - start) else { return };
        assert!(largest.1 - largest.0 > bytes, "no memory for the page counters");
        let counts = largest.0;
        largest.0 += bytes;
        // SAFETY: memory the loader says is free, mapped at DIRECT, from now on the counters' alone.
        unsafe { core::ptr::write_bytes((DIRECT + counts) as *mut u8, 0, bytes) };
        self.counts.store(DIRECT + counts, Ordering::Relaxed);
        self.end.store(highest / PAGE, Ordering::Release);
        pieces.sort_unstable();
        let mut free = self.free.lock();
        free.fresh = pieces;
        free.pages = pieces.iter().filter(|(_, end)| *end <= REACH).map(|(start, end)| (end - start) / PAGE).sum();
        self.total.store(free.pages, Ordering::Relaxed);
    }

    /// Where memory ends: the direct map must come to this.
    pub fn end(&self) -> usize {
        self.end.load(Ordering::Acquire) * PAGE
    }

    /// The direct map is complete: memory above what the boot page tables map is used from now on.
    pub fn open_all(&self) {
        let mut free = self.free.lock();
        free.reach = MOST;
        free.pages += free.fresh.iter().filter(|(_, end)| *end > REACH).map(|(start, end)| (end - start) / PAGE).sum::<usize>();
        self.total.store(free.pages, Ordering::Relaxed);
    }

    /// Pages that guests do not get.
    fn reserve(&self) -> usize {
        RESERVE.min(self.total.load(Ordering::Relaxed) / 8)
    }

    /// Whether the kernel lives on what guests do not get.
    pub fn is_low(&self) -> bool {
        self.free.lock().pages <= self.reserve()
    }

    fn count(&self, frame: PageFrame) -> &AtomicU32 {
        assert!(frame.0 < self.end.load(Ordering::Acquire), "a page frame out of range");
        // SAFETY: one counter for each frame below `end`, zeroed at start, changed only as atomics.
        unsafe { &*(self.counts.load(Ordering::Relaxed) as *const AtomicU32).add(frame.0) }
    }

    /// A frame of zeroes with one user, for the kernel itself: from the reserve too.
    pub fn take_for_kernel(&self) -> Option<PageFrame> {
        self.take_above(0)
    }

    /// A frame of zeroes with one user, when more than `least` are free.
    fn take_above(&self, least: usize) -> Option<PageFrame> {
        let frame = self.take_dirty(least)?;
        // SAFETY: the frame is ours alone and mapped.
        unsafe { core::ptr::write_bytes(pointer(frame), 0, PAGE) };
        Some(frame)
    }

    /// A frame with one user and whatever was in it, when more than `least` are free.
    fn take_dirty(&self, least: usize) -> Option<PageFrame> {
        let mut free = self.free.lock();
        if free.pages <= least {
            return None;
        }
        let reach = free.reach;
        let address = if free.first != 0 {
            let address = free.first;
            // SAFETY: a free page; its first word is the list's.
            free.first = unsafe { ((DIRECT + address) as *const usize).read() };
            address
        } else {
            // The highest first: devices and the heap's runs want low memory.
            let piece = free.fresh.iter_mut().rev().find(|(start, end)| start < end && *end <= reach)?;
            let address = piece.0;
            piece.0 += PAGE;
            address
        };
        free.pages -= 1;
        drop(free);
        let frame = PageFrame(address / PAGE);
        self.count(frame).store(1, Ordering::Relaxed);
        Some(frame)
    }

    /// Takes `pages` frames in a row that were never used before, for the heap: the physical address.
    pub fn take_run(&self, pages: usize) -> Option<usize> {
        let mut free = self.free.lock();
        let reach = free.reach;
        let piece = free.fresh.iter_mut().find(|(start, end)| end - start >= pages * PAGE && *end <= reach)?;
        piece.1 -= pages * PAGE;
        let address = piece.1;
        free.pages -= pages;
        Some(address)
    }

    /// Makes a range of memory that was in use since the start free.
    pub fn add(&self, start: usize, end: usize) {
        for address in (start.next_multiple_of(PAGE)..end & !(PAGE - 1)).step_by(PAGE) {
            let frame = PageFrame(address / PAGE);
            self.count(frame).store(1, Ordering::Relaxed);
            self.total.fetch_add(1, Ordering::Relaxed);
            self.release(frame);
        }
    }

    /// Pages there are, and pages that are free.
    pub fn pages(&self) -> (usize, usize) {
        (self.total.load(Ordering::Relaxed), self.free.lock().pages)
    }
}

impl Frames for Physical {
    fn take(&self) -> Option<PageFrame> {
        self.take_above(self.reserve())
    }

    fn share(&self, frame: PageFrame) {
        self.count(frame).fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self, frame: PageFrame) {
        if self.count(frame).fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut free = self.free.lock();
            // SAFETY: nobody uses the frame any more; its first word is the list's now.
            unsafe { pointer(frame).cast::<usize>().write(free.first) };
            free.first = address_of(frame);
            free.pages += 1;
        }
    }

    fn users(&self, frame: PageFrame) -> usize {
        self.count(frame).load(Ordering::Acquire) as usize
    }

    fn copy(&self, from: PageFrame, to: PageFrame) {
        // SAFETY: two different frames in use by the caller, both mapped whole. User code may change the source meanwhile, as it
        // may on any machine; bytes have no invalid values.
        unsafe { core::ptr::copy_nonoverlapping(pointer(from), pointer(to), PAGE) };
    }

    fn read(&self, frame: PageFrame, offset: usize, out: &mut [u8]) {
        assert!(offset + out.len() <= PAGE, "a range beyond its page");
        // SAFETY: within the frame, which the caller uses.
        unsafe { core::ptr::copy_nonoverlapping(pointer(frame).add(offset), out.as_mut_ptr(), out.len()) };
    }

    fn write(&self, frame: PageFrame, offset: usize, data: &[u8]) {
        assert!(offset + data.len() <= PAGE, "a range beyond its page");
        // SAFETY: within the frame, which the caller uses; no Rust object lies in it.
        unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), pointer(frame).add(offset), data.len()) };
    }

    fn load_u32(&self, frame: PageFrame, offset: usize) -> u32 {
        word(frame, offset).load(Ordering::SeqCst)
    }

    fn cmpxchg_u32(&self, frame: PageFrame, offset: usize, old: u32, new: u32) -> u32 {
        word(frame, offset).compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).unwrap_or_else(|found| found)
    }
}

/// A word of a frame in use by the caller.
fn word<'a>(frame: PageFrame, offset: usize) -> &'a AtomicU32 {
    assert!(offset < PAGE && offset.is_multiple_of(4), "a word that is not aligned within its page");
    // SAFETY: aligned, within the frame, which is mapped for good; whatever is there, any bits are a word, and nobody holds it as
    // anything but bytes and words.
    unsafe { AtomicU32::from_ptr(pointer(frame).add(offset).cast()) }
}
