//! The kernel's heap: a fixed region of the shared file, the same in every process.

use core::alloc::{GlobalAlloc, Layout};

use janua_arch::x86_64::hosted::{HEAP_BASE, HEAP_SIZE};
use talc::{OomHandler, Span, Talc, Talck};

use crate::lock::FutexLock;

/// Bytes of the region the allocator starts with. It writes at the end of what it has, and a process needs page tables for
/// every place it touches.
const FIRST: usize = 1 << 20;

/// Gives the allocator more of the region, twice what it has each time.
struct Grow {
    claimed: Span,
}

impl OomHandler for Grow {
    fn handle_oom(talc: &mut Talc<Grow>, layout: Layout) -> Result<(), ()> {
        let old = talc.oom_handler.claimed;
        let wanted = old.size().max(layout.size().saturating_add(layout.align())).next_power_of_two();
        let new = Span::from_base_size(HEAP_BASE as *mut u8, old.size().saturating_add(wanted).min(HEAP_SIZE));
        if new.size() <= old.size() {
            return Err(());
        }
        // SAFETY: the old span is what was claimed, and the new one lies in the heap's region, which nobody else uses.
        talc.oom_handler.claimed = unsafe { talc.extend(old, new) };
        Ok(())
    }
}

/// The global allocator of the linux image.
pub struct Heap(Talck<FutexLock, Grow>);

impl Heap {
    #[allow(clippy::new_without_default, reason = "used once, in a static")]
    pub const fn new() -> Heap {
        Heap(Talc::new(Grow { claimed: Span::empty() }).lock())
    }

    /// Gives the allocator the start of its region. Once, before the first allocation.
    pub fn claim(&self) {
        let region = Span::from_base_size(HEAP_BASE as *mut u8, FIRST);
        let mut talc = self.0.lock();
        // SAFETY: the region is mapped for the sandbox's life and nobody else uses it.
        if let Ok(claimed) = unsafe { talc.claim(region) } {
            talc.oom_handler.claimed = claimed;
        }
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
