//! Physical memory: a file without a name, mapped whole in the kernel's process and page by page in guests'.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicIsize, AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::Result;
use janua_abi::linux::fcntl::falloc;
use janua_abi::linux::mman::{
    MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE,
};
use janua_paging::{Frames, PAGE, PageFrame};
use janua_platform_linux::sys::{self, nr};
use janua_platform_linux::{descriptors, host, machine};
use janua_rt::Mutex;

use crate::blocks::{BLOCK, Block, Blocks};

/// Where the kernel maps it. Nothing else is in this process but the kernel, far above, and the vDSO.
const BASE: usize = 0x1000_0000_0000;
/// Where the counters of its pages are, one each.
const COUNTS: usize = 0x0f00_0000_0000;
/// Most bytes of it.
const MOST: usize = 4 << 40;
/// Where it is known which of them are free.
const BLOCKS: usize = 0x0f80_0000_0000;
/// Blocks that are kept though nobody uses them, for who comes next, and so many that some of them are given back to the host.
const KEPT: usize = (16 << 20) / (BLOCK * PAGE);
const TOO_MANY: usize = 2 * KEPT;
/// Blocks that are given back at a time.
const AT_A_TIME: usize = 64;

/// The memory of this sandbox.
pub struct Physical {
    descriptor: AtomicI32,
    total: AtomicUsize,
    /// Pages that are memory objects'.
    objects: AtomicIsize,
    free: Mutex<Blocks>,
    /// There may be something for [`Physical::give_back`].
    excess: AtomicBool,
}

/// The one there is.
pub static MEMORY: Physical = Physical {
    descriptor: AtomicI32::new(-1),
    total: AtomicUsize::new(0),
    objects: AtomicIsize::new(0),
    free: Mutex::new(Blocks::NONE),
    excess: AtomicBool::new(false),
};

impl Physical {
    /// Makes and maps the file, which has this many bytes at most. Once, before there are guests.
    pub fn init(&self, bytes: usize) -> Result<()> {
        let pages = bytes.min(MOST) / PAGE / BLOCK * BLOCK;
        let file = descriptors::own(|| host::memfd("janua-guests"))?;
        sys::words(nr::FTRUNCATE, [file.0 as usize, pages * PAGE, 0, 0, 0, 0])?;
        let rights = (PROT_READ | PROT_WRITE) as usize;
        let counts = (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE) as usize;
        let memory = (MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE) as usize;
        let lists = (pages / BLOCK * size_of::<Block>()).next_multiple_of(PAGE);
        // SAFETY: new mappings where nothing is (the flags make sure).
        let blocks = unsafe {
            sys::raw(
                nr::MMAP,
                [COUNTS, (pages * size_of::<AtomicU32>()).next_multiple_of(PAGE), rights, counts, usize::MAX, 0],
            )?;
            sys::raw(nr::MMAP, [BLOCKS, lists, rights, counts, usize::MAX, 0])?;
            sys::raw(nr::MMAP, [BASE, pages * PAGE, rights, memory, file.0 as usize, 0])?;
            // They stay mapped, are zeroes, which a block may be, and nobody has them otherwise.
            core::slice::from_raw_parts(BLOCKS as *const Block, pages / BLOCK)
        };
        self.descriptor.store(file.0, Ordering::Relaxed);
        self.total.store(pages, Ordering::Relaxed);
        *self.free.lock() = Blocks::new(blocks);
        Ok(())
    }

    /// The file's descriptor, the same in the kernel's process and in guests'.
    pub fn descriptor(&self) -> usize {
        self.descriptor.load(Ordering::Relaxed) as usize
    }

    /// Bytes in use that are no memory object's: spaces' own, and what the kernel needs of them.
    pub fn own_bytes(&self) -> usize {
        let used = self.total.load(Ordering::Relaxed) - self.free.lock().pages();
        used.saturating_sub(self.objects.load(Ordering::Relaxed).max(0) as usize) * PAGE
    }

    /// Whether there is no free page.
    pub fn is_used_up(&self) -> bool {
        self.free.lock().pages() == 0
    }

    /// Gives the host back what many frames hold that nobody uses any more. By the service thread, away from who has freed them.
    pub fn give_back(&self) {
        if !self.excess.swap(false, Ordering::Relaxed) {
            return;
        }
        let next = || {
            let mut free = self.free.lock();
            if free.stale_blocks() > KEPT { free.take_stale(AT_A_TIME) } else { None }
        };
        while let Some(frames) = next() {
            let mode = (falloc::PUNCH_HOLE | falloc::KEEP_SIZE) as usize;
            let args = [self.descriptor(), mode, frames.start * PAGE, frames.len() * PAGE, 0, 0];
            let given = sys::words(nr::FALLOCATE, args).is_ok();
            self.free.lock().cleaned(frames, given);
            if !given {
                return;
            }
        }
    }

    /// Where the kernel has a page.
    pub fn pointer(frame: PageFrame) -> *mut u8 {
        (BASE + frame.0 * PAGE) as *mut u8
    }

    /// Where a page is in the file.
    pub fn offset(frame: PageFrame) -> usize {
        frame.0 * PAGE
    }

    fn count(&self, frame: PageFrame) -> &AtomicU32 {
        assert!(frame.0 < self.total.load(Ordering::Relaxed), "a page frame out of range");
        // SAFETY: one counter for each page, zero at first, changed only as atomics.
        unsafe { &*(COUNTS as *const AtomicU32).add(frame.0) }
    }

    fn word(frame: PageFrame, offset: usize) -> &'static AtomicU32 {
        assert!(offset < PAGE && offset.is_multiple_of(4), "a word that is not aligned within its page");
        // SAFETY: aligned, within a page that stays mapped; any bits are a word, and nobody holds it as anything but bytes and words.
        unsafe { AtomicU32::from_ptr(Physical::pointer(frame).add(offset).cast()) }
    }
}

impl Frames for Physical {
    fn take(&self) -> Option<PageFrame> {
        let taken = self.free.lock().take()?;
        let frame = PageFrame(taken.first);
        self.count(frame).store(1, Ordering::Relaxed);
        if taken.stale != 0 {
            // SAFETY: the page is mapped and the caller's alone.
            unsafe { core::ptr::write_bytes(Physical::pointer(frame), 0, PAGE) };
        }
        Some(frame)
    }

    fn take_copy(&self, from: PageFrame) -> Option<PageFrame> {
        let taken = self.free.lock().take()?;
        let frame = PageFrame(taken.first);
        self.count(frame).store(1, Ordering::Relaxed);
        self.copy(from, frame);
        Some(frame)
    }

    fn take_row(&self, most: usize) -> (PageFrame, usize) {
        let taken = {
            let mut free = self.free.lock();
            // What may be in vain is for when there is enough.
            let is_plenty = free.pages() > self.total.load(Ordering::Relaxed) / 2;
            if is_plenty { free.take_row(most) } else { None }
        };
        let Some(taken) = taken else { return (PageFrame(0), 0) };
        for at in 0..taken.count {
            let frame = PageFrame(taken.first + at);
            self.count(frame).store(1, Ordering::Relaxed);
            if taken.stale & 1 << at != 0 {
                // SAFETY: as above.
                unsafe { core::ptr::write_bytes(Physical::pointer(frame), 0, PAGE) };
            }
        }
        (PageFrame(taken.first), taken.count)
    }

    fn share(&self, frame: PageFrame) {
        self.count(frame).fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self, frame: PageFrame) {
        if self.count(frame).fetch_sub(1, Ordering::AcqRel) == 1 {
            let stale = {
                let mut free = self.free.lock();
                free.release(frame.0);
                free.stale_blocks()
            };
            if stale > TOO_MANY && !self.excess.load(Ordering::Relaxed) && !self.excess.swap(true, Ordering::Relaxed) {
                machine::wake_service();
            }
        }
    }

    fn belong_to_objects(&self, more: isize) {
        self.objects.fetch_add(more, Ordering::Relaxed);
    }

    fn users(&self, frame: PageFrame) -> usize {
        self.count(frame).load(Ordering::Acquire) as usize
    }

    fn copy(&self, from: PageFrame, to: PageFrame) {
        // SAFETY: two pages in use by the caller. Guests may change the source meanwhile, as on any machine; bytes have no invalid values.
        unsafe { core::ptr::copy_nonoverlapping(Physical::pointer(from), Physical::pointer(to), PAGE) };
    }

    fn read(&self, frame: PageFrame, offset: usize, out: &mut [u8]) {
        assert!(offset + out.len() <= PAGE, "a range beyond its page");
        // SAFETY: within the page, which the caller uses.
        unsafe { core::ptr::copy_nonoverlapping(Physical::pointer(frame).add(offset), out.as_mut_ptr(), out.len()) };
    }

    fn write(&self, frame: PageFrame, offset: usize, data: &[u8]) {
        assert!(offset + data.len() <= PAGE, "a range beyond its page");
        // SAFETY: within the page, which the caller uses; no Rust object is in it.
        unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), Physical::pointer(frame).add(offset), data.len()) };
    }

    fn load_u32(&self, frame: PageFrame, offset: usize) -> u32 {
        Physical::word(frame, offset).load(Ordering::SeqCst)
    }

    fn cmpxchg_u32(&self, frame: PageFrame, offset: usize, old: u32, new: u32) -> u32 {
        Physical::word(frame, offset)
            .compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst)
            .unwrap_or_else(|found| found)
    }
}
