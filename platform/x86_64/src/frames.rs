//! The machine's page frames: what of its memory they are.

use janua_paging::PAGE;
use janua_platform_bare::frames::{Memory, PIECES};

use crate::boot::{DIRECT, Loaded};
use crate::lock::SpinLock;

/// The machine's memory.
pub struct Direct;

impl Memory for Direct {
    type Lock = SpinLock;
    const FIRST: usize = 0;

    fn base() -> usize {
        DIRECT
    }
}

/// The machine's page frames.
pub type Physical = janua_platform_bare::Physical<Direct>;

/// The one set of frames; the most that guests do not get of it.
pub static FRAMES: Physical = Physical::new(4096);

/// Memory below this is left to firmware and to the start of other cores.
const LOW_END: usize = 1 << 20;
/// What the boot page tables map.
pub const REACH: usize = 4 << 30;
/// What the direct map may come to: up to the thread stacks.
const MOST: usize = crate::tables::STACKS - DIRECT;

unsafe extern "C" {
    static kernel_end: u8;
}

/// A range of memory: start and end.
pub type Range = (usize, usize);

/// The pieces of memory the loader reports, without the kernel, the initial file tree and a further hole; and where the highest ends.
pub fn pieces(loaded: &Loaded, hole: Range) -> ([Range; PIECES], usize) {
    let kernel = (&raw const kernel_end) as usize - crate::boot::KERNEL_OFFSET;
    let mut holes = [loaded.initrd().unwrap_or((0, 0)), hole];
    holes.sort_unstable();
    let floor = kernel.max(LOW_END).next_multiple_of(PAGE);
    let mut pieces = [(0usize, 0usize); PIECES];
    let mut used = 0;
    let mut highest = 0;
    let mut add = |start: usize, end: usize| {
        let (start, end) = (start.max(floor).next_multiple_of(PAGE), end.min(MOST) & !(PAGE - 1));
        if start < REACH && end > REACH {
            // Not mapped as yet, and no machine's memory goes on without a break here.
            return;
        }
        if start < end && used < pieces.len() {
            pieces[used] = (start, end);
            used += 1;
            highest = highest.max(end);
        }
    };
    for (start, end) in loaded.memory() {
        let mut from = start;
        for hole in holes.into_iter().filter(|hole| hole.1 > hole.0 && hole.0 < end && hole.1 > start) {
            add(from, hole.0);
            from = hole.1;
        }
        add(from, end);
    }
    (pieces, highest)
}

/// Takes over the memory the loader reports, without the kernel, what is other tiles', and the initial file tree, which is to be freed later.
/// What else the loader left is read before anything is taken.
pub fn init(loaded: &Loaded, others: Range) {
    let (pieces, highest) = pieces(loaded, others);
    let highest = highest.max(loaded.initrd().map_or(0, |(_, end)| end)).next_multiple_of(PAGE);
    // SAFETY: memory that the loader reports free; the boot page tables map what is below `REACH` at `DIRECT`.
    unsafe { FRAMES.init(pieces, highest, REACH) };
}
