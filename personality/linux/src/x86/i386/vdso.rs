//! The vDSO of 32-bit programs in an address space: `__kernel_vsyscall`, by which their C library makes calls, the two returns from
//! handlers, and what of the clocks the machine lets user code read.

use janua_abi::linux::mman::{MAP_ANONYMOUS, MAP_PRIVATE, PAGE_SIZE};
use janua_abi::linux::{Errno, Result};
use janua_object::mm::{Limits, MapRequest, Mm};
use janua_port::Vdso32;
use janua_port::{Compat, Prot, UserMemory};

/// Where the vDSO of an address space is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vdso {
    /// AT_SYSINFO_EHDR.
    pub header: u32,
    /// AT_SYSINFO.
    pub vsyscall: u32,
    /// [`Vdso32::landing`] there.
    pub landing: u32,
}

/// popl %eax; movl $119, %eax; int $0x80. Unwinders know a signal's frame by these bytes, and by the next ones.
pub const SIGRETURN_CODE: [u8; 8] = [0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80];
/// movl $173, %eax; int $0x80
pub const RT_SIGRETURN_CODE: [u8; 7] = [0xb8, 173, 0, 0, 0, 0xcd, 0x80];

/// Puts the machine's image into an address space.
pub fn map(mm: &Mm, mem: &dyn UserMemory, compat: &dyn Compat, limits: &Limits) -> Result<Vdso> {
    let Vdso32 { vsyscall, landing, .. } = compat.vdso();
    let prot = |write| Prot { read: true, write, exec: !write };
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    let request = MapRequest { addr: 0, len: PAGE_SIZE, prot: prot(true), flags, file: None, offset: 0 };
    let at = mm.map(request, limits)?;
    mem.copy_out(at, &compat.vdso_image()).map_err(|_| Errno::EFAULT)?;
    mm.protect(at, PAGE_SIZE, prot(false), false, limits)?;
    mm.set_special(at, PAGE_SIZE, "[vdso]");
    let at = at as u32;
    Ok(Vdso { header: at, vsyscall: at + vsyscall, landing: at + landing })
}
