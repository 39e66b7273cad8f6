//! Address spaces.

use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_port::space::Bounds;
use janua_port::{Backing, Prot, Space};

/// An address space nothing can be mapped in.
///
/// The kernel has decided already that a mapping may be made, and keeps the list of them; each method here makes one decision
/// real. All of them check the range against [`Space::bounds`] again: this is the last place before the machine acts.
pub struct SkeletonSpace;

impl Space for SkeletonSpace {
    /// A host mapping with MAP_FIXED, or entries of a page table that are filled in on first touch. Replaces what was there in
    /// one step as far as other threads of the space can see.
    fn map(&self, _addr: usize, _len: usize, _prot: Prot, _backing: &Backing) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Holes in the range are fine. On return no processor reaches the old pages (flush remote address caches before).
    fn unmap(&self, _addr: usize, _len: usize) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// As [`Space::unmap`], a right that is taken away is gone on every processor on return.
    fn protect(&self, _addr: usize, _len: usize, _prot: Prot) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The pages move, their contents are not copied; what grows is zero or more of the same object. An old length of 0 maps
    /// the shared object a second time (mremap(2)).
    fn remap(&self, _old: usize, _old_len: usize, _new: usize, _new_len: usize) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The pages move, the old range stays mapped and reads as zero.
    fn remap_keep(&self, _old: usize, _len: usize, _new: usize) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// MADV_DONTNEED must really give zero pages (or the file's) afterwards; mere hints may be ignored with success.
    fn advise(&self, _addr: usize, _len: usize, _advice: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Success where shared mappings and the file are the same pages.
    fn sync(&self, _addr: usize, _len: usize, _flags: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// One byte a page; a page not yet touched is not resident.
    fn resident(&self, _addr: usize, _len: usize, _out: &mut [u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// What exec(2) relies on after the point of no return: on return nothing of the old program is mapped. With `shared` the
    /// other tasks' space must stay as it is, and the calling thread live in a fresh one.
    fn reset(self: Arc<Self>, _shared: bool) -> Result<Arc<dyn Space>> {
        Err(Errno::ENOSYS)
    }

    /// Constant for the life of the machine. These bounds leave room for nothing.
    fn bounds(&self) -> Bounds {
        Bounds { low: 0, high: 0, holes: [(0, 0); 2] }
    }
}
