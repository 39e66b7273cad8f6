//! The kernel's heap: grows by runs of page frames.

use core::alloc::Layout;

use janua_paging::PAGE;
use talc::{OomHandler, Span, Talc, Talck};

use crate::frames::FRAMES;
use crate::lock::SpinLock;

/// The least the heap grows by, bytes.
const STEP: usize = 1 << 20;

/// Asks for more page frames.
pub struct Grow;

impl OomHandler for Grow {
    fn handle_oom(talc: &mut Talc<Self>, layout: Layout) -> Result<(), ()> {
        let size = (layout.size() + layout.align() + PAGE).next_multiple_of(PAGE).max(STEP);
        let start = FRAMES.take_run(size / PAGE).ok_or(())?;
        // SAFETY: frames nobody else uses, mapped for good.
        unsafe { talc.claim(Span::from_base_size(start as *mut u8, size)) }.map(|_| ())
    }
}

/// The global allocator of the image.
pub type Heap = Talck<SpinLock, Grow>;

/// A heap that has nothing yet.
pub const fn new() -> Heap {
    Talc::new(Grow).lock()
}
