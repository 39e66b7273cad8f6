//! The kernel's heap: a fixed region of the shared file, the same in every process.
//!
//! One allocator under one lock serves everybody. In front of it, under the same lock, freed blocks are kept by size ([`Kept`]):
//! the allocator walks lists of free memory until a block fits, and each block it looks at may be in a page that the calling process
//! has not touched yet, which costs a fault of the host and makes the process' end dearer. After some thousand processes have come
//! and gone those lists are long. In front of that each thread keeps a few freed blocks of the common sizes, so that
//! a call that needs a little memory for a moment takes no lock. A host process that is killed from outside in the middle of it
//! leaves a lock held; the supervisor stops the sandbox then in any case.

mod back;

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::Errno;
use janua_abi::linux::mman::{HUGE_PAGE, MADV_COLLAPSE, MADV_POPULATE_WRITE};
use janua_entry::hosted::{self, CACHE_SIZE, HEAP_BASE, HEAP_SIZE};
use janua_port::{Clock, Nanos, PAGE};
use talc::{OomHandler, Span, Talc, Talck};

use crate::clock::HostClock;
use crate::lock::FutexLock;
use crate::sys::{self, nr};
use crate::{area, boot, machine, spawn};

use back::Idle;
pub use back::give_back;

/// Bytes of the region the allocator starts with. It writes at the end of what it has, and a process needs page tables for
/// every place it touches.
const FIRST: usize = 1 << 20;

/// Parts of the region that the allocator is given: units, and the most at a time.
const STEP: usize = 64 << 10;
const MOST_STEP: usize = 32 << 20;
/// Bytes of heap beyond the sandbox's limit, for the calls that are under way while the process that filled it is ended.
const RESERVE: usize = 64 << 20;
/// Bytes of it for who comes first. Who wants more waits for that process' end as long as [`PATIENCE`]: many calls at once would have used
/// all of it up before the service thread has had a turn.
const AT_ONCE: usize = RESERVE / 4;
const PATIENCE: Nanos = 500_000_000;
/// Larger pieces than this have half of the reserve only: a caller that wants one can be refused, one that needs a little often cannot.
const PIECE: usize = 1 << 20;

/// Freed blocks by class, the last one freed first, each with the next one's address in it.
struct Kept {
    first: [usize; CLASSES.len()],
    bytes: usize,
}

impl Kept {
    const NONE: Kept = Kept { first: [0; CLASSES.len()], bytes: 0 };

    fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.first[class] as *mut Free)?;
        // SAFETY: a block in a list is unused and holds the next one's address.
        self.first[class] = unsafe { block.read() }.next as usize;
        self.bytes -= CLASSES[class];
        Some(block.cast())
    }

    /// # Safety
    /// The block is of that class and no longer in use.
    unsafe fn put(&mut self, class: usize, block: *mut u8) {
        // SAFETY: every class is large enough for a link.
        unsafe { block.cast::<Free>().write(Free { next: self.first[class] as *mut Free }) };
        self.first[class] = block as usize;
        self.bytes += CLASSES[class];
    }
}

/// Gives the allocator more of the region, a quarter of what it has each time: what it has counts as used.
struct Grow {
    claimed: Span,
    kept: Kept,
    idle: Idle,
    /// Nothing was given that may be had once a process has ended; and the caller of now has waited for that.
    is_scarce: bool,
    has_waited: bool,
}

/// Reports the calling thread, or the one it works for, as the one that asks for more than there is: somebody has to go. The others wait for it in `fetch`.
fn blame() {
    let here = 0u8;
    let here = hosted::index_of(&raw const here as usize);
    let serves = area::of(here).serves.load(Ordering::Relaxed) as usize;
    boot::accounts().blame(if serves != 0 { serves } else { here + 1 });
}

impl Grow {
    /// Gives the allocator all blocks back that are kept, for other sizes.
    fn give_back(talc: &mut Talc<Grow>) {
        let mut kept = core::mem::replace(&mut talc.oom_handler.kept, Kept::NONE);
        for class in 0..CLASSES.len() {
            while let Some(block) = kept.take(class) {
                // SAFETY: it came from the allocator with this layout, and is in no list any more.
                unsafe { talc.free(block, class_layout(class)) };
            }
        }
    }
}

impl OomHandler for Grow {
    fn handle_oom(talc: &mut Talc<Grow>, layout: Layout) -> Result<(), ()> {
        if Idle::let_go(talc)? {
            return Ok(());
        }
        let old = talc.oom_handler.claimed;
        let kept = talc.oom_handler.kept.bytes;
        if kept > old.size() / 4 {
            Grow::give_back(talc);
            return Ok(());
        }
        // The allocator keeps something about what it has in it.
        let least = layout.size().checked_add(layout.align() + STEP).ok_or(())? & !(STEP - 1);
        let step = (old.size() / 4).clamp(FIRST, MOST_STEP).max(least) & !(STEP - 1);
        let accounts = boot::accounts();
        let room = accounts.memory.limit().saturating_sub(accounts.firm());
        let wanted = if step <= room { step } else { least.max(4 * STEP) };
        let new = Span::from_base_size(HEAP_BASE as *mut u8, old.size().saturating_add(wanted).min(HEAP_SIZE));
        if wanted > room && kept > 0 {
            Grow::give_back(talc);
            return Ok(());
        }
        let beyond = accounts.firm().saturating_add(wanted).saturating_sub(accounts.memory.limit());
        if beyond > AT_ONCE && least <= PIECE && !talc.oom_handler.has_waited {
            talc.oom_handler.is_scarce = true;
            blame();
            return Err(());
        }
        let most = if least > PIECE { RESERVE / 2 } else { RESERVE };
        if new.size() < old.size() + least || beyond > most {
            accounts.memory.refuse();
            return Err(());
        }
        if wanted > room {
            blame();
        }
        accounts.add_firm(new.size() - old.size());
        // SAFETY: the old span is what was claimed, and the new one is in the heap's region, which nobody else uses.
        talc.oom_handler.claimed = unsafe { talc.extend(old, new) };
        let claimed = talc.oom_handler.claimed.size();
        CLAIMED.store(claimed, Ordering::Relaxed);
        talc.oom_handler.idle.more(claimed - old.size());
        Ok(())
    }
}

/// Bytes the allocator has, for who does not lock it.
static CLAIMED: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the heap from its start on that are huge pages, as far as the host had any, or that it has been asked for in vain.
static UNITED: AtomicUsize = AtomicUsize::new(0);

/// Whether there is heap that could be huge pages. What the allocator has come to last is most used: it counts although the rest of its
/// huge page is not the allocator's yet.
pub fn is_divided() -> bool {
    CLAIMED.load(Ordering::Relaxed) > UNITED.load(Ordering::Relaxed)
}

/// Has the host make huge pages of what the allocator has, where processes come and go: each new one meets the heap in a dozen places, which is
/// a fault and sixteen small pages to map and to unmap for each of them, and the more the more there is. Linux 6.1 has this for
/// shared memory, whatever is set for it otherwise. It takes milliseconds on a busy machine, so it is the service thread's.
pub fn unite() {
    while is_divided() {
        let from = UNITED.load(Ordering::Relaxed);
        // What has been given back must not come again by the way.
        if back::has_holes(from, HUGE_PAGE) {
            UNITED.store(from + HUGE_PAGE, Ordering::Relaxed);
            continue;
        }
        // SAFETY: the heap's region, whose contents stay as they are.
        let result = unsafe { sys::raw(nr::MADVISE, [HEAP_BASE + from, HUGE_PAGE, MADV_COLLAPSE as usize, 0, 0, 0]) };
        // A host without it is not asked again; one that had no memory, or a page in use, may have it next time.
        match result {
            Err(Errno::EINVAL) => UNITED.store(HEAP_SIZE, Ordering::Relaxed),
            Err(Errno::EAGAIN | Errno::EBUSY) => return,
            _ => UNITED.store(from + HUGE_PAGE, Ordering::Relaxed),
        }
    }
}

/// A heap of this many bytes is expected to grow on.
const GROWN: usize = 4 << 20;
/// Where the next huge page ends that is wanted before the allocator comes to it, and where the last one does that was made so;
/// both from the heap's start.
static WANTED: AtomicUsize = AtomicUsize::new(GROWN);
static READY: AtomicUsize = AtomicUsize::new(0);
/// Where the last one ends that was tried: each is tried once.
static TRIED: AtomicUsize = AtomicUsize::new(0);

/// The allocator has come to `at`: the huge page behind the one it is in is wanted next.
fn want_next(at: usize) {
    let next = at.next_multiple_of(HUGE_PAGE) + HUGE_PAGE;
    let wanted = WANTED.load(Ordering::Relaxed);
    let is_new = next > wanted && at > GROWN && next <= HEAP_SIZE;
    if is_new && WANTED.compare_exchange(wanted, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        machine::wake_service();
    }
}

/// Makes the huge page that is wanted. The host clears it at once, in a tenth of the time of its small pages one by one, but may first
/// have to wait for all its processors: this is the service thread's, and who comes before it is done takes small pages.
pub fn prepare() {
    let wanted = WANTED.load(Ordering::Relaxed);
    if wanted <= TRIED.load(Ordering::Relaxed).max(GROWN) || UNITED.load(Ordering::Relaxed) >= HEAP_SIZE {
        return;
    }
    TRIED.store(wanted, Ordering::Relaxed);
    // The host makes none where there is not one page yet.
    for (len, advice) in [(PAGE, MADV_POPULATE_WRITE), (HUGE_PAGE, MADV_COLLAPSE)] {
        // SAFETY: a part of the heap's region, whose contents stay as they are.
        match unsafe { sys::raw(nr::MADVISE, [HEAP_BASE + wanted - HUGE_PAGE, len, advice as usize, 0, 0, 0]) } {
            Ok(_) => {}
            // A host without it, or without huge pages here: never again.
            Err(Errno::EINVAL) => return UNITED.store(HEAP_SIZE, Ordering::Relaxed),
            Err(_) => return,
        }
    }
    READY.store(wanted, Ordering::Relaxed);
}

/// Asks the host for the pages of a block that is about to be written as a whole.
#[cold]
fn ask_whole(block: usize, size: usize) {
    let from = block & !(PAGE - 1);
    let len = (block + size).next_multiple_of(PAGE) - from;
    // SAFETY: pages of the heap, whose contents stay as they are. A host before Linux 5.14 refuses, and faults do it.
    let _ = unsafe { sys::raw(nr::MADVISE, [from, len, MADV_POPULATE_WRITE as usize, 0, 0, 0]) };
}

/// The global allocator of the linux image.
pub struct Heap {
    talc: Talck<FutexLock, Grow>,
    /// Up to where the heap's memory has been asked of the host ahead of its first use.
    present: AtomicUsize,
}

/// Bytes of the heap asked of the host at a time. A page costs a third less than by a fault of its own, and a sandbox's first
/// program uses two hundred.
const AHEAD: usize = 64 << 10;
/// A larger block is left to faults: it may never be used as a whole.
const LARGE: usize = 32 << 10;

impl Heap {
    #[allow(clippy::new_without_default, reason = "used once, in a static")]
    pub const fn new() -> Heap {
        Heap {
            talc: Talc::new(Grow {
                claimed: Span::empty(),
                kept: Kept::NONE,
                idle: Idle::NONE,
                is_scarce: false,
                has_waited: false,
            })
            .lock(),
            present: AtomicUsize::new(HEAP_BASE),
        }
    }

    /// A block by the common allocator.
    ///
    /// # Safety
    /// As [`GlobalAlloc::alloc`].
    unsafe fn fetch(&self, layout: Layout) -> *mut u8 {
        let given = self.ask(|talc| {
            // SAFETY: the caller's promise.
            let block = unsafe { talc.malloc(layout) }.ok()?;
            let idle = &mut talc.oom_handler.idle;
            idle.out(layout.size());
            idle.regain(block.as_ptr(), layout.size());
            Some(block)
        });
        let Some(block) = given.map(NonNull::as_ptr) else { return core::ptr::null_mut() };
        self.fetched(block, layout.size());
        block
    }

    /// A block as long as it was, where it was or elsewhere; neither length is a class'.
    ///
    /// # Safety
    /// As [`GlobalAlloc::realloc`].
    unsafe fn resize(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let old = layout.size();
        // SAFETY: the caller's promise.
        unsafe {
            let block = NonNull::new_unchecked(pointer);
            {
                let mut talc = self.talc.lock();
                if size <= old {
                    talc.shrink(block, layout, size);
                    talc.oom_handler.idle.back(old - size);
                    return pointer;
                }
                if talc.grow_in_place(block, layout, size).is_ok() {
                    let idle = &mut talc.oom_handler.idle;
                    idle.out(size - old);
                    idle.regain(pointer.add(old), size - old);
                    return pointer;
                }
            }
            let new = self.fetch(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(pointer, old);
                self.dealloc(pointer, layout);
            }
            new
        }
    }

    /// A block of a class, from those that are kept or by the common allocator.
    fn fetch_class(&self, class: usize) -> *mut u8 {
        let mut is_new = false;
        let given = self.ask(|talc| {
            let (block, new) = take(talc, class);
            is_new = new;
            block
        });
        let block = given.map_or(core::ptr::null_mut(), NonNull::as_ptr);
        if is_new {
            self.fetched(block, CLASSES[class]);
        }
        block
    }

    /// What the allocator gives, if need be when a process has ended for it.
    #[inline]
    fn ask(&self, mut what: impl FnMut(&mut Talc<Grow>) -> Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        let is_scarce = {
            let mut talc = self.talc.lock();
            let given = what(&mut talc);
            if given.is_some() {
                return given;
            }
            core::mem::take(&mut talc.oom_handler.is_scarce)
        };
        if is_scarce { self.ask_again(what) } else { None }
    }

    #[cold]
    fn ask_again(&self, mut what: impl FnMut(&mut Talc<Grow>) -> Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        let until = HostClock.monotonic() + PATIENCE;
        loop {
            let is_last = !self.wait_for_room() || HostClock.monotonic() >= until;
            let mut talc = self.talc.lock();
            talc.oom_handler.has_waited = is_last;
            let given = what(&mut talc);
            talc.oom_handler.has_waited = false;
            if given.is_some() || is_last {
                return given;
            }
        }
    }

    /// What is left to do without the lock when the allocator has given a block.
    #[inline]
    fn fetched(&self, block: *mut u8, size: usize) {
        let end = block as usize + size;
        if boot::accounts().has_culprit() {
            self.wait_for_room();
        }
        // The allocator takes from the front of what is free, and writes right behind the block.
        let present = self.present.load(Ordering::Relaxed);
        if end >= present {
            self.ask_ahead(present, end, size >= LARGE);
        }
    }

    /// A block of a class whose list is empty, and a few more for the list: who builds a tree takes the lock once for all.
    ///
    /// # Safety
    /// On a kernel stack, whose thread the list belongs to.
    unsafe fn refill(&self, class: usize) -> *mut u8 {
        let more = (REFILL_BYTES / CLASSES[class]).min(KEPT_BLOCKS / 2);
        // SAFETY: the list is the thread's own; a block is large enough for a link.
        unsafe {
            let mut talc = self.talc.lock();
            for _ in 0..more {
                let Some(block) = take(&mut talc, class).0 else { break };
                let (block, cache) = (block.cast::<Free>().as_ptr(), cache());
                (*block).next = (*cache).first[class];
                (*cache).first[class] = block;
                (*cache).count[class] += 1;
            }
        }
        self.fetch_class(class)
    }

    /// Gives the service thread time to end the process that filled the heap, before the reserve is used up too. That thread itself does
    /// not wait: false.
    #[cold]
    fn wait_for_room(&self) -> bool {
        const MOMENT: Nanos = 2_000_000;
        static NOTHING: AtomicU32 = AtomicU32::new(0);
        let here = 0u8;
        // Thread 0 is the service thread.
        let may_wait = hosted::index_of(&raw const here as usize) != 0;
        if may_wait {
            machine::wake_service();
            spawn::park(&NOTHING, 0, Some(HostClock.monotonic() + MOMENT));
        }
        may_wait
    }

    #[cold]
    fn ask_ahead(&self, present: usize, end: usize, large: bool) {
        let from = present.max(end & !(AHEAD - 1));
        let ready = HEAP_BASE + READY.load(Ordering::Relaxed);
        let is_ready = end < ready && end + HUGE_PAGE >= ready;
        let to = if is_ready { ready } else { (end + 1).next_multiple_of(AHEAD).min(HEAP_BASE + HEAP_SIZE) };
        // One of several threads at a time; a host before Linux 5.14 refuses, and faults do it.
        let chosen = self.present.compare_exchange(present, to, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if chosen {
            want_next(to - HEAP_BASE);
        }
        if chosen && !is_ready && !large && from < to {
            // SAFETY: pages of the heap's region, whose contents stay as they are.
            let _ = unsafe { sys::raw(nr::MADVISE, [from, to - from, MADV_POPULATE_WRITE as usize, 0, 0, 0]) };
        }
    }

    /// Gives the allocator the start of its region. Once, before the first allocation.
    pub fn claim(&'static self) {
        self.is_there();
        let region = Span::from_base_size(HEAP_BASE as *mut u8, FIRST);
        let mut talc = self.talc.lock();
        // SAFETY: the region is mapped for the sandbox's life and nobody else uses it.
        if let Ok(claimed) = unsafe { talc.claim(region) } {
            talc.oom_handler.claimed = claimed;
            talc.oom_handler.idle.more(claimed.size());
            CLAIMED.store(claimed.size(), Ordering::Relaxed);
            boot::accounts().add_firm(FIRST);
        }
    }
}

/// Sizes of the blocks that are kept when they are freed, the first of them ([`SMALL`]) by threads for themselves.
const CLASSES: [usize; SMALL + 4 * LARGER] = {
    let mut classes = [0; SMALL + 4 * LARGER];
    let small = [16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
    let mut class = 0;
    while class < SMALL {
        classes[class] = small[class];
        class += 1;
    }
    while class < classes.len() {
        // Four to a doubling: at most a quarter of what was wanted comes on top.
        let step = class - SMALL;
        classes[class] = ((SMALL_MOST / 4) << (step / 4)) * (5 + step % 4);
        class += 1;
    }
    classes
};
const SMALL: usize = 12;
/// Bytes of the largest block that threads keep, and how often the largest class doubles it.
const SMALL_MOST: usize = 1024;
const LARGER: usize = 5;
const MOST: usize = SMALL_MOST << LARGER;
/// For each 16 bytes wanted which small class serves.
const CLASS_OF: [u8; SMALL_MOST / 16 + 1] = {
    let mut table = [0; SMALL_MOST / 16 + 1];
    let mut at = 1;
    while at < table.len() {
        let mut class = 0;
        while CLASSES[class] < at * 16 {
            class += 1;
        }
        table[at] = class as u8;
        at += 1;
    }
    table
};
/// Alignment of every block of a class.
const ALIGN: usize = 16;
/// Bytes of a class that one thread keeps at most, and blocks.
const KEPT_BYTES: usize = 2048;
const KEPT_BLOCKS: usize = 16;
/// Bytes of a class that are fetched for its list when it is found empty.
const REFILL_BYTES: usize = 256;

/// Freed blocks of the thread that runs on a kernel stack, by class: taken and given back without a lock. Nobody else
/// touches it, and the kernel is not interrupted by code that allocates. The next thread on the stack inherits it.
#[repr(C)]
struct Cache {
    first: [*mut Free; SMALL],
    count: [u8; SMALL],
}

/// A block nobody uses.
struct Free {
    next: *mut Free,
}

const _: () = assert!(size_of::<Cache>() <= CACHE_SIZE);

/// The class that serves a layout.
#[inline]
fn class_of(layout: Layout) -> Option<usize> {
    let size = layout.size();
    if size > MOST || layout.align() > ALIGN {
        return None;
    }
    if size <= SMALL_MOST {
        return Some(usize::from(CLASS_OF[size.div_ceil(16)]));
    }
    // Of 1025 to 2048 bytes the four classes differ in the two bits below the highest of what is one byte less.
    let doubling = (size - 1).ilog2() as usize;
    Some(SMALL + 4 * (doubling - SMALL_MOST.ilog2() as usize) + ((size - 1) >> (doubling - 2) & 3))
}

/// A block of a class, with the allocator locked; whether it is one that the allocator has just given, or has not.
fn take(talc: &mut Talc<Grow>, class: usize) -> (Option<NonNull<u8>>, bool) {
    if let Some(block) = talc.oom_handler.kept.take(class) {
        talc.oom_handler.idle.out(CLASSES[class]);
        return (Some(block), false);
    }
    // SAFETY: a class' layout is not empty.
    let block = unsafe { talc.malloc(class_layout(class)) }.ok();
    if let Some(block) = block {
        let idle = &mut talc.oom_handler.idle;
        idle.out(CLASSES[class]);
        idle.regain(block.as_ptr(), CLASSES[class]);
    }
    (block, true)
}

/// Keeps a freed block of a class.
///
/// # Safety
/// The block is of that class and no longer in use.
unsafe fn put(talc: &mut Talc<Grow>, class: usize, block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { talc.oom_handler.kept.put(class, block) };
    talc.oom_handler.idle.back(CLASSES[class]);
}

/// What talc is asked for on behalf of a class.
fn class_layout(class: usize) -> Layout {
    // SAFETY: every class is a multiple of the alignment, which is a power of two.
    unsafe { Layout::from_size_align_unchecked(CLASSES[class], ALIGN) }
}

/// The cache of the calling thread. Kernel code runs on kernel stacks only.
#[inline]
fn cache() -> *mut Cache {
    let here = 0u8;
    hosted::cache(hosted::index_of(&raw const here as usize)).cast()
}

// SAFETY: blocks come from talc, which upholds the contract. Whether a block belongs to a class, and to which, follows from its
// layout alone, so that it goes back to where it came from; a block of a class is as large and as aligned as any layout of that
// class needs. A cached block is in one list only, and a thread's lists are its own.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class_of(layout) else {
            // SAFETY: the caller's promise.
            return unsafe { self.fetch(layout) };
        };
        if class >= SMALL {
            return self.fetch_class(class);
        }
        // SAFETY: the cache is the thread's own; the first block of a list is unused and holds the next one's address.
        unsafe {
            let cache = cache();
            let block = (*cache).first[class];
            if block.is_null() {
                return self.refill(class);
            }
            (*cache).first[class] = (*block).next;
            (*cache).count[class] -= 1;
            block.cast()
        }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(class) = class_of(layout) else {
            let mut talc = self.talc.lock();
            // SAFETY: the caller's promise.
            unsafe { talc.free(NonNull::new_unchecked(pointer), layout) };
            return talc.oom_handler.idle.back(layout.size());
        };
        // SAFETY: the cache is the thread's own; the block is large enough for a link and no longer in use.
        unsafe {
            if class >= SMALL {
                return put(&mut self.talc.lock(), class, pointer);
            }
            let cache = cache();
            let count = usize::from((*cache).count[class]);
            if count >= KEPT_BLOCKS || count * CLASSES[class] >= KEPT_BYTES {
                return put(&mut self.talc.lock(), class, pointer);
            }
            let block = pointer.cast::<Free>();
            (*block).next = (*cache).first[class];
            (*cache).first[class] = block;
            (*cache).count[class] += 1;
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise; the block has that many bytes.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                if layout.size() >= LARGE {
                    ask_whole(block as usize, layout.size());
                }
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise: `size` does not overflow with this alignment; the copy is as long as both blocks are.
        unsafe {
            let wanted = Layout::from_size_align_unchecked(size, layout.align());
            match (class_of(layout), class_of(wanted)) {
                (None, None) => self.resize(pointer, layout, size),
                (Some(old), Some(new)) if old == new => pointer,
                _ => {
                    let new = self.alloc(wanted);
                    if !new.is_null() {
                        new.copy_from_nonoverlapping(pointer, layout.size().min(size));
                        self.dealloc(pointer, layout);
                    }
                    new
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_serves_what_it_is_for() {
        for size in 1..=MOST {
            let class = class_of(Layout::from_size_align(size, 8).unwrap()).unwrap();
            assert!(CLASSES[class] >= size && (class == 0 || CLASSES[class - 1] < size), "{size}");
        }
        for size in (SMALL_MOST..=MOST).rev().take(40).chain(SMALL_MOST..SMALL_MOST + 40) {
            let class = class_of(Layout::from_size_align(size, 8).unwrap()).unwrap();
            assert!(CLASSES[class] - size <= size / 4, "{size}");
        }
        assert_eq!(class_of(Layout::from_size_align(MOST + 1, 8).unwrap()), None);
        assert_eq!(class_of(Layout::from_size_align(32, 64).unwrap()), None);
    }
}
