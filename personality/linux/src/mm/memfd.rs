//! memfd_create(2).

use janua_abi::linux::mman::{MFD_ALLOW_SEALING, MFD_CLOEXEC, MFD_EXEC, MFD_HUGETLB, MFD_NOEXEC_SEAL};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserStr;
use janua_kernel::table::{Arg, Fd, Kind};
use janua_object::Caller;
use janua_object::memfd::{MemFs, seal};

use crate::Thread;
use crate::fs::fd;
use crate::thread::ThreadExt;

/// MFD_* flags.
#[derive(Clone, Copy, Debug)]
pub struct MemfdFlags(u32);

impl Arg for MemfdFlags {
    const KIND: Kind = Kind::Named("memfd");
    fn decode(word: usize) -> Result<Self> {
        Ok(MemfdFlags(word as u32))
    }
}

/// With MFD_HUGETLB: the binary logarithm of the page's size, 0 for the usual one.
const SIZE_SHIFT: u32 = 26;
const SIZE_MASK: u32 = 0x3f << SIZE_SHIFT;
/// Sizes of huge pages on x86-64, 2 MiB and 1 GiB, as logarithms; the first is the usual one.
const SIZES: [u32; 2] = [21, 30];
/// Longest name, so that "memfd:" and it fit in a file name.
const NAME_MOST: usize = 249;

/// memfd_create(2). With MFD_HUGETLB as on a machine that has set no huge pages aside: mapping returns ENOMEM.
pub fn memfd_create(thread: &Thread, name: UserStr, flags: MemfdFlags) -> Result<Fd> {
    let flags = flags.0;
    let known = MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_NOEXEC_SEAL | MFD_EXEC;
    let sizes = if flags & MFD_HUGETLB != 0 { SIZE_MASK } else { 0 };
    if flags & !(known | sizes) != 0 || flags & MFD_EXEC != 0 && flags & MFD_NOEXEC_SEAL != 0 {
        return Err(Errno::EINVAL);
    }
    let name = name.read(thread.user(), NAME_MOST + 1, Errno::EINVAL)?;
    let (mode, seals) = match flags {
        _ if flags & MFD_NOEXEC_SEAL != 0 => (0o666, seal::EXEC),
        _ if flags & MFD_ALLOW_SEALING != 0 => (0o777, 0),
        _ => (0o777, seal::SEAL),
    };
    let files = thread.kernel.memory.clone();
    let files = match (flags & sizes) >> SIZE_SHIFT {
        _ if flags & MFD_HUGETLB == 0 => files,
        0 => MemFs::huge(&thread.kernel.vfs, 1 << SIZES[0]),
        size if SIZES.contains(&size) => MemFs::huge(&thread.kernel.vfs, 1 << size),
        _ => return Err(Errno::ENODEV),
    };
    let file = files.memfd(&thread.kernel.vfs, &name, mode, seals, &thread.caller().cred());
    fd::install(thread, file, flags & MFD_CLOEXEC != 0)
}
