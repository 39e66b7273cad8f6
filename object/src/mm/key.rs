//! What a futex word is known by.

use janua_abi::linux::{Errno, Result};

use super::{Mm, VmFlags};

/// The identity of a futex word: the same for two addresses exactly when they are the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FutexKey {
    /// Memory of one address space.
    Private { mm: u64, addr: usize },
    /// Bytes `offset` into a file or a shared object.
    Shared { dev: u64, ino: u64, offset: u64 },
}

impl Mm {
    /// The key of the word at `addr`. `private` is the caller's word (FUTEX_PRIVATE_FLAG) that only this address space uses it;
    /// then nothing is looked up. EFAULT when nothing is mapped there, or what may not be read.
    pub fn futex_key(&self, addr: usize, private: bool) -> Result<FutexKey> {
        if private {
            return Ok(FutexKey::Private { mm: self.id, addr });
        }
        let state = self.lock_state();
        let (start, vma) = state.list.find(addr).ok_or(Errno::EFAULT)?;
        if !vma.flags.intersects(VmFlags::ACCESS) {
            return Err(Errno::EFAULT);
        }
        Ok(if vma.is_shared() {
            FutexKey::Shared { dev: vma.dev, ino: vma.ino, offset: vma.offset_of(start, addr) }
        } else {
            FutexKey::Private { mm: self.id, addr }
        })
    }
}
