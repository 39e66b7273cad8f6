//! The kernel's heap: a fixed region of the shared file, the same in every process.

use core::alloc::{GlobalAlloc, Layout};

use janua_arch::x86_64::hosted::{HEAP_BASE, HEAP_SIZE};
use talc::{ErrOnOom, Span, Talc, Talck};

use crate::lock::FutexLock;

/// The global allocator of the linux image.
pub struct Heap(Talck<FutexLock, ErrOnOom>);

impl Heap {
    #[allow(clippy::new_without_default, reason = "used once, in a static")]
    pub const fn new() -> Heap {
        Heap(Talc::new(ErrOnOom).lock())
    }

    /// Gives the allocator its region. Once, before the first allocation.
    pub fn claim(&self) {
        let region = Span::from_base_size(HEAP_BASE as *mut u8, HEAP_SIZE);
        // SAFETY: the region is mapped for the sandbox's life and nobody else uses it.
        let claimed = unsafe { self.0.lock().claim(region) };
        assert!(claimed.is_ok(), "the heap region is too small");
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
