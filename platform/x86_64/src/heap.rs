//! The kernel's heap: grows by runs of page frames, seen through the direct map.

use core::alloc::{GlobalAlloc, Layout};

use janua_paging::PAGE;
use talc::{OomHandler, Span, Talc, Talck};

use crate::boot::DIRECT;
use crate::frames::FRAMES;
use crate::lock::SpinLock;

/// The least the heap grows by, bytes.
const STEP: usize = 4 << 20;

/// Asks for more page frames.
pub struct Grow;

impl OomHandler for Grow {
    fn handle_oom(talc: &mut Talc<Self>, layout: Layout) -> Result<(), ()> {
        let want = (layout.size() + layout.align() + PAGE).next_multiple_of(PAGE);
        let size = want.max(STEP);
        let (size, address) = FRAMES
            .take_run(size / PAGE)
            .map(|address| (size, address))
            .or_else(|| FRAMES.take_run(want / PAGE).map(|address| (want, address)))
            .ok_or(())?;
        let span = Span::from_base_size((DIRECT + address) as *mut u8, size);
        // SAFETY: frames nobody else uses, mapped for good.
        unsafe { talc.claim(span) }.map(|_| ())
    }
}

/// The global allocator of the bare image.
pub struct Heap(Talck<SpinLock, Grow>);

impl Heap {
    #[allow(clippy::new_without_default, reason = "used once, in a static")]
    pub const fn new() -> Heap {
        Heap(Talc::new(Grow).lock())
    }
}

// SAFETY: hands on to talc, which upholds the contract.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.0.realloc(pointer, layout, size) }
    }
}
