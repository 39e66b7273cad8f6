//! Whether a part of an address space still is what the kernel knows of it.

use super::Mm;
use super::vma::VmFlags;
use crate::file::OpenFile;

impl Mm {
    /// Whether `addr..addr + len` is within one mapping of a file, with `offset` at `addr`, shared and readable and writable. `is` recognises the file.
    pub fn shows(&self, addr: usize, len: usize, offset: u64, is: impl Fn(&OpenFile) -> bool) -> bool {
        let state = self.lock_state();
        let Some((start, vma)) = state.list.find(addr) else { return false };
        let whole = addr.checked_add(len).is_some_and(|end| end <= vma.end);
        whole
            && vma.flags.contains(VmFlags::READ | VmFlags::WRITE | VmFlags::SHARED)
            && vma.offset_of(start, addr) == offset
            && vma.file().is_some_and(|file| is(file))
    }
}
