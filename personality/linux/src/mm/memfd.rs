//! memfd_create(2).

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserStr;
use janua_kernel::table::{Arg, Fd, Kind};
use janua_object::Caller;
use janua_object::memfd::seal;

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

const MFD_CLOEXEC: u32 = 1;
const MFD_ALLOW_SEALING: u32 = 2;
const MFD_NOEXEC_SEAL: u32 = 8;
const MFD_EXEC: u32 = 0x10;
/// Longest name, so that "memfd:" and it fit in a file name.
const NAME_MOST: usize = 249;

/// memfd_create(2). MFD_HUGETLB answers EINVAL: there is no pool of huge pages.
pub fn memfd_create(thread: &Thread, name: UserStr, flags: MemfdFlags) -> Result<Fd> {
    let flags = flags.0;
    if flags & !(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | MFD_EXEC) != 0
        || flags & MFD_EXEC != 0 && flags & MFD_NOEXEC_SEAL != 0
    {
        return Err(Errno::EINVAL);
    }
    let name = name.read(thread.user(), NAME_MOST + 1, Errno::EINVAL)?;
    let (mode, seals) = match flags {
        _ if flags & MFD_NOEXEC_SEAL != 0 => (0o666, seal::EXEC),
        _ if flags & MFD_ALLOW_SEALING != 0 => (0o777, 0),
        _ => (0o777, seal::SEAL),
    };
    let files = thread.kernel.memory.as_ref().ok_or(Errno::ENOSYS)?;
    let file = files.memfd(&thread.kernel.vfs, &name, mode, seals, &thread.caller().cred());
    fd::install(thread, file, flags & MFD_CLOEXEC != 0)
}
