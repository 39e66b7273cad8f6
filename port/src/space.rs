//! Address spaces, as far as the machine is concerned.
//!
//! The kernel keeps the list of mappings and decides; the machine makes them real. On hosted spaces that is a host mapping
//! in the guest's process; on paged ones page-table entries. All addresses and lengths are page aligned ([`PAGE`]),
//! checked and non-empty; the range has been cleared of the kernel's own memory by the caller *and* is checked again here.

use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::Result;
use janua_abi::linux::mman::PAGE_SIZE;

use crate::MemoryObject;

/// Bytes of a page: what mappings begin and end at, on every machine.
pub const PAGE: usize = PAGE_SIZE;

/// Access rights of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Prot {
    pub read: bool,
    pub write: bool,
    pub exec: bool,
}

/// What is behind a mapping. A space that maps an object of another machine's kind returns ENODEV.
#[derive(Clone, Debug)]
pub enum Backing {
    /// Zero pages of its own, copied on write at fork.
    Anon,
    /// Zero pages shared with children of a fork.
    AnonShared,
    /// A memory object from `offset` (bytes, page aligned) on: private is copy-on-write. `frozen`: nothing a guest can do changes
    /// its contents.
    Object { object: Arc<dyn MemoryObject>, offset: u64, shared: bool, frozen: bool },
}

/// What user code, or the kernel on its behalf, was about to do with a page when it faulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Load,
    Store,
    Fetch,
}

/// One address space. Methods act on the space of the *calling* guest process when the space is hosted.
pub trait Space: Send + Sync + Any {
    /// Makes `addr..addr+len` a mapping of `backing`, replacing what was there.
    fn map(&self, addr: usize, len: usize, prot: Prot, backing: &Backing) -> Result<()>;
    /// Removes whatever is mapped in the range.
    fn unmap(&self, addr: usize, len: usize) -> Result<()>;
    /// Changes the access rights of a wholly mapped range.
    fn protect(&self, addr: usize, len: usize, prot: Prot) -> Result<()>;
    /// Moves and resizes a mapping: `old..old+old_len` becomes `new..new+new_len`; `old == new` resizes in place.
    fn remap(&self, old: usize, old_len: usize, new: usize, new_len: usize) -> Result<()>;
    /// Like `remap` but leaves the old range mapped and empty (MREMAP_DONTUNMAP).
    fn remap_keep(&self, old: usize, len: usize, new: usize) -> Result<()>;
    /// Passes a hint or order of madvise(2) on (Linux's numbers); the kernel has checked that it is harmless.
    fn advise(&self, addr: usize, len: usize, advice: u32) -> Result<()>;
    /// Writes dirty pages of shared file mappings back (msync(2) flags).
    fn sync(&self, addr: usize, len: usize, flags: u32) -> Result<()>;
    /// For each page of the range one byte, bit 0 set when resident (mincore(2)).
    fn resident(&self, addr: usize, len: usize, out: &mut [u8]) -> Result<()>;
    /// Forgets every guest mapping (exec). When `shared` other tasks go on using this space, so the caller is moved to a
    /// fresh one and the returned space replaces this one; otherwise the emptied space itself comes back.
    fn reset(self: Arc<Self>, shared: bool) -> Result<Arc<dyn Space>>;
    /// The lowest and the end of the highest user address, and the holes between them that the kernel keeps.
    fn bounds(&self) -> Bounds;
}

/// Where user mappings may lie: `low..high` without the holes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub low: usize,
    pub high: usize,
    /// Ranges (start, end) between `low` and `high` that the kernel keeps, ascending; an empty one is none.
    pub holes: [(usize, usize); 2],
}

impl Bounds {
    /// Whether `addr..addr+len` may hold user mappings.
    pub fn contains(&self, addr: usize, len: usize) -> bool {
        let Some(end) = addr.checked_add(len) else { return false };
        let clear = |&(start, stop): &(usize, usize)| start >= stop || end <= start || addr >= stop;
        addr >= self.low && end <= self.high && self.holes.iter().all(clear)
    }

    /// The ranges (start, end) of `low..high` that lie between the holes, ascending, some perhaps empty.
    pub fn parts(&self, low: usize, high: usize) -> [(usize, usize); 3] {
        let (mut from, high) = (low.max(self.low), high.min(self.high));
        let mut parts = [(0, 0); 3];
        for (part, (start, end)) in parts.iter_mut().zip(self.holes) {
            *part = (from, if start < end { start.min(high).max(from) } else { from });
            from = if start < end { from.max(end) } else { from };
        }
        parts[2] = (from, high.max(from));
        parts
    }
}
