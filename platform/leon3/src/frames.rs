//! The machine's page frames: the memory behind the module.

use janua_arch::sparc::usercopy::janua_zero_page;
use janua_paging::PAGE;
use janua_platform_bare::frames::{Memory, PIECES};

use crate::boot::MEMORY;
use crate::lock::SpinLock;

/// The machine's memory, mapped where it is.
pub struct InPlace;

impl Memory for InPlace {
    type Lock = SpinLock;
    const FIRST: usize = MEMORY / PAGE;

    fn base() -> usize {
        0
    }

    unsafe fn zero(page: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { janua_zero_page(page) };
    }
}

/// The machine's page frames.
pub type Physical = janua_platform_bare::Physical<InPlace>;

/// The one set of frames; the most that applications do not get of it.
pub static FRAMES: Physical = Physical::new(256);

/// Gives the allocator the memory from `start` to `end`, which nothing else uses.
pub fn init(start: usize, end: usize) {
    let (start, end) = (start.next_multiple_of(PAGE), end & !(PAGE - 1));
    let mut pieces = [(0, 0); PIECES];
    pieces[0] = (start, end.max(start));
    // SAFETY: the loader reports that the memory is free; the boot code has mapped all of it.
    unsafe { FRAMES.init(pieces, end, usize::MAX) };
}
