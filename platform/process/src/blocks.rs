//! Which page frames are free, by blocks of neighbours.
//!
//! Neighbours are handed out in a row where that can be: what is contiguous in the file of physical memory as well as in an address space is one mapping
//! of the host's, of which a process may have 65,530. A block that is wholly free can be given back to the host.

use core::ops::Range;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed};

/// Frames of a block.
pub const BLOCK: usize = 16;
const ALL: u16 = u16::MAX;
/// Ends a list.
const NONE: u32 = u32::MAX;

/// A block, in at most one of the lists. Changed only by who has [`Blocks`].
#[derive(Default)]
pub struct Block {
    /// Frames that are free, and those that have been in use since the host has given them: bits.
    free: AtomicU16,
    stale: AtomicU16,
    next: AtomicU32,
    before: AtomicU32,
}

/// The first block of a list.
#[derive(Clone, Copy)]
struct List(u32);

/// Frames that were handed out: the first, how many follow it with it, and which of them hold what somebody has left there (bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub first: usize,
    pub count: usize,
    pub stale: u16,
}

/// All of them.
pub struct Blocks {
    blocks: &'static [Block],
    /// Blocks with some free frames.
    partial: List,
    /// Blocks that are wholly free: those that hold what somebody has left, and those that the host gives as zeroes.
    stale: List,
    clean: List,
    /// Blocks from here on have never been in use.
    fresh: usize,
    /// Free frames.
    pages: usize,
    /// Blocks in `stale`.
    stale_blocks: usize,
}

impl Blocks {
    /// None at all.
    pub const NONE: Blocks =
        Blocks { blocks: &[], partial: List(NONE), stale: List(NONE), clean: List(NONE), fresh: 0, pages: 0, stale_blocks: 0 };

    /// All free, and zeroes.
    pub fn new(blocks: &'static [Block]) -> Blocks {
        Blocks { blocks, pages: blocks.len() * BLOCK, ..Blocks::NONE }
    }

    /// Free frames.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Blocks that could be given back to the host.
    pub fn stale_blocks(&self) -> usize {
        self.stale_blocks
    }

    fn push(&self, list: List, number: u32) -> List {
        let block = &self.blocks[number as usize];
        block.next.store(list.0, Relaxed);
        block.before.store(NONE, Relaxed);
        if list.0 != NONE {
            self.blocks[list.0 as usize].before.store(number, Relaxed);
        }
        List(number)
    }

    fn without(&self, list: List, number: u32) -> List {
        let block = &self.blocks[number as usize];
        let (next, before) = (block.next.load(Relaxed), block.before.load(Relaxed));
        if next != NONE {
            self.blocks[next as usize].before.store(before, Relaxed);
        }
        if before == NONE {
            return List(next);
        }
        self.blocks[before as usize].next.store(next, Relaxed);
        list
    }

    /// A block that is wholly free, out of its list: one that is in memory already if there is any.
    fn whole(&mut self) -> Option<u32> {
        if self.stale.0 != NONE {
            let number = self.stale.0;
            self.stale = self.without(self.stale, number);
            self.stale_blocks -= 1;
            return Some(number);
        }
        if self.clean.0 != NONE {
            let number = self.clean.0;
            self.clean = self.without(self.clean, number);
            return Some(number);
        }
        let number = self.fresh;
        let block = self.blocks.get(number)?;
        block.free.store(ALL, Relaxed);
        self.fresh += 1;
        Some(number as u32)
    }

    /// Takes the lowest frames of a block, of which as many are free.
    fn take_of(&mut self, number: u32, count: usize) -> Taken {
        let block = &self.blocks[number as usize];
        let (free, stale) = (block.free.load(Relaxed), block.stale.load(Relaxed));
        let first = free.trailing_zeros() as usize;
        let taken = (ALL >> (BLOCK - count)) << first;
        debug_assert!(free & taken == taken, "frames that are not free");
        block.free.store(free & !taken, Relaxed);
        block.stale.store(stale | taken, Relaxed);
        self.pages -= count;
        Taken { first: number as usize * BLOCK + first, count, stale: (stale & taken) >> first }
    }

    /// One frame.
    pub fn take(&mut self) -> Option<Taken> {
        if self.partial.0 == NONE {
            let number = self.whole()?;
            self.partial = self.push(self.partial, number);
        }
        let number = self.partial.0;
        let taken = self.take_of(number, 1);
        if self.blocks[number as usize].free.load(Relaxed) == 0 {
            self.partial = self.without(self.partial, number);
        }
        Some(taken)
    }

    /// Up to `most` frames in a row, at most [`BLOCK`]: as many, or none where no block is wholly free.
    pub fn take_row(&mut self, most: usize) -> Option<Taken> {
        let count = most.clamp(1, BLOCK);
        let number = self.whole()?;
        let taken = self.take_of(number, count);
        if count < BLOCK {
            self.partial = self.push(self.partial, number);
        }
        Some(taken)
    }

    /// A frame is free again.
    pub fn release(&mut self, frame: usize) {
        let number = (frame / BLOCK) as u32;
        let block = &self.blocks[number as usize];
        let before = block.free.load(Relaxed);
        let now = before | 1 << (frame % BLOCK);
        debug_assert!(now != before, "a frame that is free already");
        block.free.store(now, Relaxed);
        self.pages += 1;
        if before == 0 {
            self.partial = self.push(self.partial, number);
        }
        if now == ALL {
            self.partial = self.without(self.partial, number);
            self.stale = self.push(self.stale, number);
            self.stale_blocks += 1;
        }
    }

    /// Takes out neighbouring frames that nobody uses and that hold what somebody has left, to be given back to the host: at most so many blocks.
    /// [`Blocks::cleaned`] must follow. Nobody else gets them meanwhile.
    pub fn take_stale(&mut self, most: usize) -> Option<Range<usize>> {
        if self.stale.0 == NONE {
            return None;
        }
        let (mut start, mut end) = (self.stale.0, self.stale.0 + 1);
        self.take_out_stale(start);
        // What is freed in order is next to one another in the list.
        while ((end - start) as usize) < most {
            let next = self.stale.0;
            if next == end {
                end += 1;
            } else if next != NONE && next + 1 == start {
                start = next;
            } else {
                break;
            }
            self.take_out_stale(next);
        }
        Some(start as usize * BLOCK..end as usize * BLOCK)
    }

    fn take_out_stale(&mut self, number: u32) {
        self.stale = self.without(self.stale, number);
        self.stale_blocks -= 1;
        self.pages -= BLOCK;
    }

    /// Frames of [`Blocks::take_stale`] are free again: zeroes, unless the host has refused to take them.
    pub fn cleaned(&mut self, frames: Range<usize>, clean: bool) {
        for number in (frames.start / BLOCK..frames.end / BLOCK).map(|number| number as u32) {
            self.pages += BLOCK;
            if clean {
                self.blocks[number as usize].stale.store(0, Relaxed);
                self.clean = self.push(self.clean, number);
            } else {
                self.stale = self.push(self.stale, number);
                self.stale_blocks += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::*;

    fn some(count: usize) -> Blocks {
        let blocks: Vec<Block> = (0..count).map(|_| Block::default()).collect();
        Blocks::new(Box::leak(blocks.into_boxed_slice()))
    }

    #[test]
    fn single_frames_come_in_a_row() {
        let mut blocks = some(2);
        for frame in 0..20 {
            assert_eq!(blocks.take(), Some(Taken { first: frame, count: 1, stale: 0 }));
        }
        assert_eq!(blocks.pages(), 12);
        assert_eq!(blocks.take_row(4), None, "no block is whole");
        (20..32).for_each(|frame| assert_eq!(blocks.take().map(|taken| taken.first), Some(frame)));
        assert_eq!((blocks.take(), blocks.pages()), (None, 0));
    }

    #[test]
    fn what_was_in_use_says_so_until_the_host_has_taken_it() {
        let mut blocks = some(3);
        let rows: Vec<_> = (0..3).filter_map(|_| blocks.take_row(BLOCK)).collect();
        assert_eq!(rows.iter().map(|row| (row.first, row.stale)).collect::<Vec<_>>(), [(0, 0), (16, 0), (32, 0)]);
        (0..48).for_each(|frame| blocks.release(frame));
        assert_eq!((blocks.stale_blocks(), blocks.pages()), (3, 48));
        assert_eq!(blocks.take_row(2), Some(Taken { first: 32, count: 2, stale: 3 }));
        let gone = blocks.take_stale(8).expect("two blocks");
        assert_eq!((gone.clone(), blocks.pages(), blocks.stale_blocks()), (0..32, 14, 0));
        blocks.cleaned(gone, true);
        assert_eq!((blocks.take_stale(8), blocks.pages()), (None, 46));
        assert_eq!(blocks.take_row(16).map(|row| row.stale), Some(0));
        blocks.release(32);
        blocks.release(33);
        let gone = blocks.take_stale(8).expect("the third");
        blocks.cleaned(gone.clone(), false);
        assert_eq!(blocks.take_stale(8), Some(gone), "the host has refused it");
    }

    #[test]
    fn no_frame_is_two_peoples() {
        let mut blocks = some(8);
        let mut held: BTreeMap<usize, ()> = BTreeMap::new();
        let mut random = 12345u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = (random >> 33) as usize;
            match word % 5 {
                0 | 1 => {
                    for frame in blocks.take().into_iter().map(|taken| taken.first) {
                        assert!(held.insert(frame, ()).is_none());
                    }
                }
                2 => {
                    if let Some(taken) = blocks.take_row(1 + word / 5 % 20) {
                        (taken.first..taken.first + taken.count).for_each(|frame| assert!(held.insert(frame, ()).is_none()));
                    }
                }
                3 => {
                    if let Some(gone) = blocks.take_stale(word / 5 % 4 + 1) {
                        assert!(gone.clone().all(|frame| !held.contains_key(&frame)));
                        blocks.cleaned(gone, (word / 20).is_multiple_of(2));
                    }
                }
                _ => {
                    let frame = held.keys().nth(word / 5 % held.len().max(1)).copied();
                    if let Some(frame) = frame {
                        held.remove(&frame);
                        blocks.release(frame);
                    }
                }
            }
            assert_eq!(blocks.pages() + held.len(), 8 * BLOCK);
        }
    }
}
