//! mlock(2) and its variants.

use janua_abi::linux::mman::MLOCK_ONFAULT;
use janua_abi::linux::{Errno, Result};

use super::{Addr, LockWord, is_killed, limits, mm};
use crate::Thread;

/// mlock(2).
pub fn mlock(thread: &Thread, addr: Addr, len: usize) -> Result<()> {
    mm(thread)?.lock(addr.0, len, false, &limits(thread), &|| is_killed(thread))
}

/// mlock2(2).
pub fn mlock2(thread: &Thread, addr: Addr, len: usize, flags: u32) -> Result<()> {
    if flags & !MLOCK_ONFAULT != 0 {
        return Err(Errno::EINVAL);
    }
    mm(thread)?.lock(addr.0, len, flags & MLOCK_ONFAULT != 0, &limits(thread), &|| is_killed(thread))
}

/// munlock(2).
pub fn munlock(thread: &Thread, addr: Addr, len: usize) -> Result<()> {
    mm(thread)?.unlock(addr.0, len)
}

/// mlockall(2).
pub fn mlockall(thread: &Thread, flags: LockWord) -> Result<()> {
    mm(thread)?.lock_all(flags.0, &limits(thread), &|| is_killed(thread))
}

/// munlockall(2).
pub fn munlockall(thread: &Thread) -> Result<()> {
    mm(thread)?.unlock_all();
    Ok(())
}
