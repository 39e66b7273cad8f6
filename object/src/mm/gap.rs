//! Where a mapping goes when the caller leaves it open.

use janua_abi::linux::mman::PAGE_SIZE;
use janua_abi::linux::{Errno, Result};

use super::{Mm, State};

/// Where the part ends that MAP_32BIT means.
pub(super) const END_32: usize = 0x8000_0000;

impl Mm {
    /// Free space for `len` bytes below the mmap base, highest first; above it when there is none. `align` is a power of two.
    pub(super) fn find_gap(&self, state: &mut State, len: usize, align: usize) -> Option<usize> {
        let base = state.mmap_base;
        self.bounds
            .parts(self.lowest(), base)
            .into_iter()
            .rev()
            .find_map(|(low, high)| state.list.highest_gap(low, high, len, align))
            .or_else(|| {
                self.bounds
                    .parts(base, self.bounds.high)
                    .into_iter()
                    .find_map(|(low, high)| state.list.lowest_gap(low, high, len, align))
            })
    }

    /// Free space for exec to map into: at `hint` when that is free, otherwise anywhere. Nothing is reserved: for an address
    /// space with one thread. ENOMEM.
    pub fn find_free(&self, hint: usize, len: usize, align: usize) -> Result<usize> {
        let mut state = self.lock_state();
        if hint != 0 && self.is_free_at(&state, hint, len) {
            return Ok(hint);
        }
        self.find_gap(&mut state, len, align).ok_or(Errno::ENOMEM)
    }

    /// Free space in the part that MAP_32BIT means (mmap(2)): the second gigabyte.
    pub(super) fn find_gap_32(&self, state: &mut State, len: usize) -> Option<usize> {
        self.bounds
            .parts(0x4000_0000.max(self.lowest()), END_32)
            .into_iter()
            .find_map(|(low, high)| state.list.lowest_gap(low, high, len, PAGE_SIZE))
    }

    /// Whether the space at `addr` is free, and not the guard gap of a stack.
    pub(super) fn is_free_at(&self, state: &State, addr: usize, len: usize) -> bool {
        if !self.is_user(addr, len) {
            return false;
        }
        let end = addr + len;
        let below_stack = state.list.above(end).is_some_and(|(start, vma)| {
            vma.flags.contains(super::VmFlags::GROWSDOWN) && start.saturating_sub(super::list::GUARD_GAP) < end
        });
        state.list.is_free(addr, end) && !below_stack
    }

    /// Mappings without a given address stay clear of the first pages (vm.mmap_min_addr).
    pub(super) fn lowest(&self) -> usize {
        self.bounds.low.max(0x1_0000)
    }
}
