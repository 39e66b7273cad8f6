//! A tile's memory: where it has what, the pool of stacks, pages for the application.

use alloc::vec::Vec;

use janua_abi::linux::Result;
pub use janua_port::PAGE;
use janua_port::{Backing, Prot, Space};

/// Where a tile's memory has what, besides the program, which is where it was linked. Page aligned; given by the image, which
/// knows the machine.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The cores' records and the program's arguments, [`Layout::RECORDS_SIZE`] bytes.
    pub records: usize,
    /// Stacks for i-lets: `stack_count` of `stack_size` bytes, a power of two to which `stacks` is aligned. The lowest page of each
    /// stays empty.
    pub stacks: usize,
    pub stack_size: usize,
    pub stack_count: usize,
    /// Pages the application can ask for.
    pub heap: usize,
    pub heap_end: usize,
}

impl Layout {
    pub const RECORDS_SIZE: usize = 8 * PAGE;
}

/// What user memory of data may do.
pub const DATA: Prot = Prot { read: true, write: true, exec: false };

/// The pool of a tile's stacks.
pub struct Stacks {
    base: usize,
    size: usize,
    count: usize,
    /// Stacks in use once and free now, the last one first: it is warm.
    free: Vec<usize>,
    used: usize,
}

impl Stacks {
    pub fn new(layout: &Layout) -> Stacks {
        Stacks { base: layout.stacks, size: layout.stack_size, count: layout.stack_count, free: Vec::new(), used: 0 }
    }

    /// A stack: its number and end. It is mapped at its first use, in the calling tile's own space. `None` when all are in use or
    /// the machine has no memory left.
    pub fn take(&mut self, space: &dyn Space) -> Option<(usize, usize)> {
        let end = |stack: usize| self.base + (stack + 1) * self.size;
        if let Some(stack) = self.free.pop() {
            return Some((stack, end(stack)));
        }
        let stack = self.used;
        if stack == self.count {
            return None;
        }
        let start = self.base + stack * self.size + PAGE;
        space.map(start, self.size - PAGE, DATA, &Backing::Anon).ok()?;
        self.used += 1;
        Some((stack, end(stack)))
    }

    pub fn give_back(&mut self, stack: usize) {
        self.free.push(stack);
    }
}

/// Pages given to the application, first fit.
pub struct Heap {
    /// Free ranges (start, end), ascending, none touching another.
    free: Vec<(usize, usize)>,
    start: usize,
    end: usize,
}

impl Heap {
    pub fn new(layout: &Layout) -> Heap {
        Heap { free: Vec::from([(layout.heap, layout.heap_end)]), start: layout.heap, end: layout.heap_end }
    }

    /// Pages in all.
    pub fn pages(&self) -> usize {
        (self.end - self.start) / PAGE
    }

    /// Maps that many pages; `None` when there is no room.
    pub fn map(&mut self, space: &dyn Space, pages: usize) -> Option<usize> {
        let len = pages.checked_mul(PAGE).filter(|&len| len > 0)?;
        let at = self.free.iter().position(|(start, end)| end - start >= len)?;
        let addr = self.free[at].0;
        space.map(addr, len, DATA, &Backing::Anon).ok()?;
        self.free[at].0 += len;
        if self.free[at].0 == self.free[at].1 {
            self.free.remove(at);
        }
        Some(addr)
    }

    /// Takes pages back that [`Heap::map`] gave, in whole or in part. False for a range that is not all given.
    pub fn unmap(&mut self, space: &dyn Space, addr: usize, pages: usize) -> Result<bool> {
        let Some(len) = pages.checked_mul(PAGE).filter(|&len| len > 0) else { return Ok(false) };
        let Some(end) = addr.checked_add(len) else { return Ok(false) };
        let inside = addr.is_multiple_of(PAGE) && addr >= self.start && end <= self.end;
        if !inside || self.free.iter().any(|&(start, stop)| start < end && addr < stop) {
            return Ok(false);
        }
        space.unmap(addr, len)?;
        let at = self.free.partition_point(|&(start, _)| start < addr);
        self.free.insert(at, (addr, end));
        if self.free.get(at + 1).is_some_and(|next| next.0 == end) {
            self.free[at].1 = self.free.remove(at + 1).1;
        }
        if at > 0 && self.free[at - 1].1 == addr {
            self.free[at - 1].1 = self.free.remove(at).1;
        }
        Ok(true)
    }
}
