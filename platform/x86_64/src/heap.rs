//! The kernel's heap: grows by runs of page frames, seen through the direct map; and when there are no runs any more, by single
//! frames that are mapped one behind the other. When it grows into what is kept back for it, somebody has to go ([`crate::oom`]).

use core::alloc::Layout;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_paging::PAGE;
use talc::{OomHandler, Span, Talc, Talck};

use crate::boot::DIRECT;
use crate::frames::FRAMES;
use crate::lock::SpinLock;
use crate::{oom, tables};

/// The least the heap grows by, bytes.
const STEP: usize = 4 << 20;

/// Asks for more page frames.
pub struct Grow;

impl OomHandler for Grow {
    fn handle_oom(talc: &mut Talc<Self>, layout: Layout) -> Result<(), ()> {
        let want = (layout.size() + layout.align() + PAGE).next_multiple_of(PAGE);
        let size = want.max(STEP);
        if FRAMES.is_low() {
            oom::ask();
        }
        let span = FRAMES
            .take_run(size / PAGE)
            .map(|address| (size, address))
            .or_else(|| FRAMES.take_run(want / PAGE).map(|address| (want, address)))
            .map(|(size, address)| Span::from_base_size((DIRECT + address) as *mut u8, size))
            .or_else(|| scattered(want))
            .ok_or(())?;
        // SAFETY: frames nobody else uses, mapped for good.
        unsafe { talc.claim(span) }.map(|_| ())
    }
}

/// Bytes of [`tables::HEAP`] that are mapped, and that the heap has.
static MAPPED: AtomicUsize = AtomicUsize::new(0);
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// Pages from anywhere, seen in a row. Called under the heap's lock. What an attempt without success has mapped is the next one's.
fn scattered(bytes: usize) -> Option<Span> {
    let start = GIVEN.load(Ordering::Relaxed);
    let end = start + bytes;
    while MAPPED.load(Ordering::Relaxed) < end {
        let page = MAPPED.load(Ordering::Relaxed);
        if !tables::map_heap_page(tables::HEAP + page) {
            return None;
        }
        MAPPED.store(page + PAGE, Ordering::Relaxed);
    }
    GIVEN.store(end, Ordering::Relaxed);
    Some(Span::from_base_size((tables::HEAP + start) as *mut u8, bytes))
}

/// The global allocator of the image.
pub type Heap = Talck<SpinLock, Grow>;

/// A heap that has nothing yet.
pub const fn new() -> Heap {
    Talc::new(Grow).lock()
}
