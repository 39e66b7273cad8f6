//! The kernel's heap: grows by runs of page frames.

use core::alloc::{GlobalAlloc, Layout};

use talc::{OomHandler, Span, Talc, Talck};

use crate::frames::{self, PAGE};
use crate::lock::SpinLock;

/// The least the heap grows by, bytes.
const STEP: usize = 1 << 20;

/// Asks for more page frames.
pub struct Grow;

impl OomHandler for Grow {
    fn handle_oom(talc: &mut Talc<Self>, layout: Layout) -> Result<(), ()> {
        let size = (layout.size() + layout.align() + PAGE).next_multiple_of(PAGE).max(STEP);
        let start = frames::take_run(size / PAGE).ok_or(())?;
        // SAFETY: frames nobody else uses, mapped for good.
        unsafe { talc.claim(Span::from_base_size(start as *mut u8, size)) }.map(|_| ())
    }
}

/// The global allocator of the image.
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
