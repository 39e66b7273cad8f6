//! Memory objects: what is behind mappings that several have, or that a file shares with those who read and write it.

use alloc::sync::{Arc, Weak};
use core::any::Any;
use core::fmt;
use core::ops::Range;

use janua_abi::linux::{Errno, Result};

use crate::host::OwnedFd;
use crate::user::Window;

/// Memory with a length, in bytes, that is mapped ([`crate::Backing::Object`]), read and written: anonymous, as [`crate::Machine::memory_object`] makes
/// it, or a file of the host's ([`OwnedFd`]). Bytes nobody has written are holes, which read as zero. It lives as long as somebody has it or maps it.
pub trait MemoryObject: Any + Send + Sync {
    /// Bytes read at `at`: fewer than asked for at the end.
    fn read(&self, at: u64, out: &mut [u8]) -> Result<usize>;
    /// Writes at `at`, growing the object: bytes written. ENOSPC, or ENOMEM, when none could be; EFBIG.
    fn write(&self, at: u64, data: &[u8]) -> Result<usize>;
    /// Cuts or extends it (with a hole). What is cut off is gone from mappings too.
    fn truncate(&self, size: u64) -> Result<()>;
    /// fallocate(2); `mode` are FALLOC_FL_* bits. EOPNOTSUPP for such as the machine does not know.
    fn allocate(&self, mode: u32, at: u64, len: u64) -> Result<()>;
    /// SEEK_DATA from `at` on, or SEEK_HOLE when `hole`. ENXIO behind the end, or where no data follows.
    fn seek(&self, at: u64, hole: bool) -> Result<u64>;
    /// Bytes of memory (or of a disk) it takes; 0 when the machine does not know.
    fn resident(&self) -> u64;
    /// From now on pages that it lacks are no holes to those who map it: `fill` brings them, and a thread that touches one waits. Nobody maps it
    /// yet. ENOSYS where mappings are the host's, which knows no such hook: what is to be mapped must be there before.
    fn set_fill(&self, _fill: Weak<dyn Fill>) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// Pages of an object with a [`Fill`] that shared mappings may have stored into since this was last asked, in runs. What is
    /// read of them from now on includes all such stores but those that the next call reports. ENOSYS as [`MemoryObject::set_fill`].
    fn take_stored(&self, _each: &mut dyn FnMut(Range<u64>)) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// Shows `len` bytes from `at` on, both page aligned, to the kernel where the caller runs, until the window is dropped: for who looks at memory that it shares
    /// with a program again and again. EXDEV where the caller cannot have one, though another thread of the kernel's can; ENOSYS where memory is reached without, or
    /// as well by [`MemoryObject::read`]; ENOMEM.
    fn window(&self, _at: u64, _len: usize) -> Result<Arc<dyn Window>> {
        Err(Errno::ENOSYS)
    }
    /// The host's file that it is, if it is one.
    fn host_file(&self) -> Option<&OwnedFd> {
        None
    }
}

impl fmt::Debug for dyn MemoryObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory object {:p}", self)
    }
}

/// Brings the pages of a memory object whose contents are elsewhere, on a disk for one, when a mapping of it is first touched there.
pub trait Fill: Send + Sync {
    /// Makes the page with this number present in the object, and perhaps others around it. May put the calling thread to sleep. Done as
    /// well when the object has been cut off before the page meanwhile. EIO: it cannot be read; ENOMEM.
    fn fill(&self, page: u64) -> Result<()>;
}
