//! PR_SET_MDWE: memory that was not executable never becomes so, and none is writable and executable at once.

use core::sync::atomic::Ordering;

use janua_abi::linux::prctl::{MDWE_NO_INHERIT, MDWE_REFUSE_EXEC_GAIN};
use janua_abi::linux::{Errno, Result};

use super::Mm;
use super::vma::VmFlags;

impl Mm {
    /// PR_MDWE_* that hold for this space.
    pub fn exec_gain(&self) -> u32 {
        self.exec_gain.load(Ordering::Relaxed)
    }

    /// Those of a child's space, or of the next program's.
    pub fn inherited_exec_gain(&self) -> u32 {
        let own = self.exec_gain();
        if own & MDWE_NO_INHERIT != 0 { 0 } else { own }
    }

    /// Sets PR_MDWE_*. EINVAL for what is no such set; EPERM, since what is refused stays refused.
    pub fn set_exec_gain(&self, bits: u32) -> Result<()> {
        if bits & !(MDWE_REFUSE_EXEC_GAIN | MDWE_NO_INHERIT) != 0 || bits == MDWE_NO_INHERIT {
            return Err(Errno::EINVAL);
        }
        // With the lock: a caller that maps or changes rights has done so before or sees it.
        let _state = self.lock_state();
        match self.exec_gain() {
            0 => self.exec_gain.store(bits, Ordering::Relaxed),
            old if old == bits => {}
            _ => return Err(Errno::EPERM),
        }
        Ok(())
    }

    /// Whether memory with the rights `old` must not get the rights `new`.
    pub(super) fn refuses_exec(&self, old: VmFlags, new: VmFlags) -> bool {
        self.exec_gain() != 0 && new.contains(VmFlags::EXEC) && (new.contains(VmFlags::WRITE) || !old.contains(VmFlags::EXEC))
    }
}
