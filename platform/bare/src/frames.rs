//! Physical memory: a count of users for each page frame, and a free list threaded through the counts of the free ones.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use janua_paging::{Frames, PAGE, PageFrame};
use janua_port::machine;
use lock_api::{Mutex, RawMutex};

/// Ranges of memory that are kept apart.
pub const PIECES: usize = 16;

/// Ends the free list.
const NONE: u32 = u32::MAX;

/// What differs between machines.
pub trait Memory: 'static {
    /// A lock under which nothing sleeps, and which interrupts leave alone.
    type Lock: RawMutex + Send + Sync + 'static;
    /// Frames below this number are no memory.
    const FIRST: usize;

    /// The address at which physical memory is mapped.
    fn base() -> usize;

    /// Fills a page with zeroes.
    ///
    /// # Safety
    /// It is mapped and the caller's alone.
    unsafe fn zero(page: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { core::ptr::write_bytes(page, 0, PAGE) };
    }
}

/// A machine's page frames.
pub struct Physical<M: Memory> {
    free: Mutex<M::Lock, Free>,
    /// One counter a frame, in memory set aside at start.
    counts: AtomicUsize,
    /// Frames below this number have a counter.
    end: AtomicUsize,
    total: AtomicUsize,
    /// Pages that only the kernel's heap and tables get, at most.
    reserve: usize,
}

struct Free {
    /// The first free frame that has been in use, whose count is the number of the next; [`NONE`] ends the list.
    first: u32,
    /// Never used memory that is still in one piece: start and end, ascending. Empty ones are (0, 0).
    fresh: [(usize, usize); PIECES],
    /// What is mapped as yet: pieces from here on are not touched.
    reach: usize,
    pages: usize,
}

impl<M: Memory> Physical<M> {
    /// Without memory as yet. Guests do not get `reserve` pages of it, or an eighth of all, if that is less.
    pub const fn new(reserve: usize) -> Self {
        let free = Free { first: NONE, fresh: [(0, 0); PIECES], reach: 0, pages: 0 };
        Physical {
            free: Mutex::from_raw(M::Lock::INIT, free),
            counts: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            reserve,
        }
    }

    /// The physical address of a frame.
    pub fn address_of(frame: PageFrame) -> usize {
        frame.0 * PAGE
    }

    /// Where a frame is mapped.
    pub fn pointer(frame: PageFrame) -> *mut u8 {
        (M::base() + frame.0 * PAGE) as *mut u8
    }

    /// Takes memory over: pieces of whole pages by their physical addresses, from frame [`Memory::FIRST`] on. The counters, which go to the
    /// largest below `reach`, cover everything up to `end`: memory of which a part is [added](Self::add) later.
    ///
    /// # Safety
    /// Nobody else uses the pieces; those below `reach` are mapped, the others will be before [`Physical::open_all`]. Called once.
    pub unsafe fn init(&self, mut pieces: [(usize, usize); PIECES], end: usize, reach: usize) {
        assert!(end / PAGE <= NONE as usize, "more memory than the free list has numbers for");
        let bytes = ((end / PAGE - M::FIRST) * size_of::<AtomicU32>()).next_multiple_of(PAGE);
        let low = pieces.iter_mut().filter(|(_, end)| *end <= reach);
        let Some(largest) = low.max_by_key(|(start, end)| end - start) else { return };
        assert!(largest.1 - largest.0 > bytes, "no memory for the page counters");
        let counts = M::base() + largest.0;
        largest.0 += bytes;
        // SAFETY: memory that is free and mapped, as the caller ensures, and from now on the counters' alone.
        unsafe { core::ptr::write_bytes(counts as *mut u8, 0, bytes) };
        self.counts.store(counts, Ordering::Relaxed);
        self.end.store(end / PAGE, Ordering::Release);
        pieces.sort_unstable();
        let mut free = self.free.lock();
        free.fresh = pieces;
        free.reach = reach;
        free.pages = pieces.iter().filter(|(_, end)| *end <= reach).map(|(start, end)| (end - start) / PAGE).sum();
        self.total.store(free.pages, Ordering::Relaxed);
    }

    /// Where memory ends.
    pub fn end(&self) -> usize {
        self.end.load(Ordering::Acquire) * PAGE
    }

    /// All memory is mapped: what could not be used at start is used from now on.
    pub fn open_all(&self) {
        let mut free = self.free.lock();
        let reach = core::mem::replace(&mut free.reach, usize::MAX);
        let more = free.fresh.iter().filter(|(_, end)| *end > reach).map(|(start, end)| (end - start) / PAGE).sum::<usize>();
        free.pages += more;
        self.total.fetch_add(more, Ordering::Relaxed);
    }

    /// Pages that guests do not get.
    fn reserve(&self) -> usize {
        self.reserve.min(self.total.load(Ordering::Relaxed) / 8)
    }

    /// Whether the kernel lives on what guests do not get.
    pub fn is_low(&self) -> bool {
        self.free.lock().pages <= self.reserve()
    }

    fn count(&self, frame: PageFrame) -> &AtomicU32 {
        assert!((M::FIRST..self.end.load(Ordering::Acquire)).contains(&frame.0), "a page frame out of range");
        // SAFETY: one counter for each frame from the first to `end`, zeroed at start, changed only as atomics.
        unsafe { &*(self.counts.load(Ordering::Relaxed) as *const AtomicU32).add(frame.0 - M::FIRST) }
    }

    /// A frame of zeroes with one user, for the kernel itself: from the reserve too.
    pub fn take_for_kernel(&self) -> Option<PageFrame> {
        self.take_above(0)
    }

    /// A frame of zeroes with one user, when more than `least` are free.
    fn take_above(&self, least: usize) -> Option<PageFrame> {
        let frame = self.take_dirty(least)?;
        // SAFETY: the frame is ours alone and mapped.
        unsafe { M::zero(Self::pointer(frame)) };
        Some(frame)
    }

    /// A frame with one user and whatever was in it, when more than `least` are free.
    fn take_dirty(&self, least: usize) -> Option<PageFrame> {
        let mut free = self.free.lock();
        if free.pages <= least {
            return None;
        }
        let reach = free.reach;
        let (frame, count) = if free.first != NONE {
            let frame = PageFrame(free.first as usize);
            let count = self.count(frame);
            free.first = count.load(Ordering::Relaxed);
            (frame, count)
        } else {
            // The highest first: devices and the heap's runs want low memory.
            let piece = free.fresh.iter_mut().rev().find(|(start, end)| start < end && *end <= reach)?;
            let frame = PageFrame(piece.0 / PAGE);
            piece.0 += PAGE;
            (frame, self.count(frame))
        };
        free.pages -= 1;
        drop(free);
        count.store(1, Ordering::Relaxed);
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

    /// [`janua_port::Machine::memory`]
    pub fn memory(&self) -> machine::Memory {
        let (total, free) = self.pages();
        let (total, free) = ((total * PAGE) as u64, (free * PAGE) as u64);
        machine::Memory { total, free, available: free }
    }

    /// Pages there are, and pages that are free.
    pub fn pages(&self) -> (usize, usize) {
        (self.total.load(Ordering::Relaxed), self.free.lock().pages)
    }

    /// A word of a frame in use by the caller.
    fn word(frame: PageFrame, offset: usize) -> &'static AtomicU32 {
        assert!(offset < PAGE && offset.is_multiple_of(4), "a word that is not aligned within its page");
        // SAFETY: aligned, within the frame, which is mapped for good; whatever is there, any bits are a word, and nobody holds it as
        // anything but bytes and words.
        unsafe { AtomicU32::from_ptr(Self::pointer(frame).add(offset).cast()) }
    }
}

impl<M: Memory> Frames for Physical<M> {
    fn take(&self) -> Option<PageFrame> {
        self.take_above(self.reserve())
    }

    fn share(&self, frame: PageFrame) {
        self.count(frame).fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self, frame: PageFrame) {
        let count = self.count(frame);
        if count.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut free = self.free.lock();
            count.store(free.first, Ordering::Relaxed);
            free.first = frame.0 as u32;
            free.pages += 1;
        }
    }

    fn users(&self, frame: PageFrame) -> usize {
        self.count(frame).load(Ordering::Acquire) as usize
    }

    fn copy(&self, from: PageFrame, to: PageFrame) {
        // SAFETY: two different frames in use by the caller, both mapped whole. User code may change the source meanwhile, as it
        // may on any machine; bytes have no invalid values.
        unsafe { core::ptr::copy_nonoverlapping(Self::pointer(from), Self::pointer(to), PAGE) };
    }

    fn read(&self, frame: PageFrame, offset: usize, out: &mut [u8]) {
        assert!(offset + out.len() <= PAGE, "a range beyond its page");
        // SAFETY: within the frame, which the caller uses.
        unsafe { core::ptr::copy_nonoverlapping(Self::pointer(frame).add(offset), out.as_mut_ptr(), out.len()) };
    }

    fn write(&self, frame: PageFrame, offset: usize, data: &[u8]) {
        assert!(offset + data.len() <= PAGE, "a range beyond its page");
        // SAFETY: within the frame, which the caller uses; no Rust object is in it.
        unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), Self::pointer(frame).add(offset), data.len()) };
    }

    fn load_u32(&self, frame: PageFrame, offset: usize) -> u32 {
        Self::word(frame, offset).load(Ordering::SeqCst)
    }

    fn cmpxchg_u32(&self, frame: PageFrame, offset: usize, old: u32, new: u32) -> u32 {
        Self::word(frame, offset).compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).unwrap_or_else(|found| found)
    }
}
