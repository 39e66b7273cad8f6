//! Flags of files: FS_IOC_GETFLAGS and its variants (ioctl_iflags(2), ioctl_xfs_fsgetxattr(2)), as chattr(1) and lsattr(1) ask.

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_object::OpenFile;
use janua_object::file::request;
use janua_object::vfs::{FileFlags, FileKind, Perm, access};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::Thread;

/// `struct fsxattr`.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Extended {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    cow_extent_size: u32,
    pad: [u8; 8],
}

/// FS_XFLAG_*: what other file systems know as well, which these here can only be without.
mod extended {
    pub const PREALLOC: u32 = 0x2;
    pub const EXTSIZE: u32 = 0x800;
    pub const EXTSZINHERIT: u32 = 0x1000;
    pub const COWEXTSIZE: u32 = 0x1_0000;
    pub const HASATTR: u32 = 0x8000_0000;
    /// All that Linux knows.
    pub const KNOWN: u32 = 0x8001_fffb;
    /// What means nothing without a size beside it, or is never set from outside.
    pub const WITHOUT_EFFECT: u32 = PREALLOC | EXTSIZE | EXTSZINHERIT | COWEXTSIZE | HASATTR;
}

/// The flags both forms have, with FS_XFLAG_*'s bit.
const PAIRS: [(FileFlags, u32); 4] =
    [(FileFlags::IMMUTABLE, 0x8), (FileFlags::APPEND, 0x10), (FileFlags::NOATIME, 0x40), (FileFlags::NODUMP, 0x80)];

/// The requests FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_FSGETXATTR and FS_IOC_FSSETXATTR. ENOTTY for a file without flags; EPERM for who
/// does not own it, or without CAP_LINUX_IMMUTABLE for a change of the first two; EOPNOTSUPP for flags there are none of.
pub fn ioctl(thread: &Thread, file: &OpenFile, request: u32, arg: usize) -> Result<usize> {
    let user = thread.user();
    match request {
        request::FS_IOC_GETFLAGS => UserPtr::<u32>::new(arg).write(user, &of(file)?.0.bits())?,
        request::FS_IOC_SETFLAGS => {
            let word = UserPtr::<u32>::new(arg).read(user)?;
            set(thread, file, |_| FileFlags::from_bits(word).ok_or(Errno::EOPNOTSUPP))?;
        }
        request::FS_IOC_FSGETXATTR => {
            let mut answer = Extended::new_zeroed();
            let flags = of(file)?.0;
            answer.flags = PAIRS.iter().filter(|(flag, _)| flags.contains(*flag)).fold(0, |word, (_, bit)| word | bit);
            UserPtr::<Extended>::new(arg).write(user, &answer)?;
        }
        _ => {
            let given = UserPtr::<Extended>::new(arg).read(user)?;
            if given.flags & !extended::KNOWN != 0 {
                return Err(Errno::EOPNOTSUPP);
            }
            set(thread, file, |kind| from_extended(&given, kind))?;
        }
    }
    Ok(0)
}

/// The flags of a file and its permissions. ENOTTY.
fn of(file: &OpenFile) -> Result<(FileFlags, Perm)> {
    let inode = file.inode().ok_or(Errno::ENOTTY)?;
    if !matches!(inode.kind(), FileKind::Regular | FileKind::Directory) {
        return Err(Errno::ENOTTY);
    }
    Ok((inode.flags().ok_or(Errno::ENOTTY)?, inode.perm()?))
}

fn set(thread: &Thread, file: &OpenFile, new: impl FnOnce(FileKind) -> Result<FileFlags>) -> Result<()> {
    let Some(path) = &file.path else { return Err(Errno::ENOTTY) };
    path.mount.check_write()?;
    // What is asked of the flags as they are must hold until they are others.
    let _held = path.inode().busy().map(|busy| busy.hold_rights());
    let (old, perm) = of(file)?;
    let cred = thread.cred();
    if !access::owns(&perm, &cred) {
        return Err(Errno::EPERM);
    }
    let new = new(path.dentry.kind());
    // What is not there to be set is no change of what needs the right.
    let guarded = FileFlags::IMMUTABLE | FileFlags::APPEND;
    let changed = (*new.as_ref().unwrap_or(&old) ^ old) & guarded;
    if !changed.is_empty() && !cred.capable(access::CAP_LINUX_IMMUTABLE) {
        return Err(Errno::EPERM);
    }
    path.inode().set_flags(new?)
}

/// EINVAL for a size on the wrong kind of file, EOPNOTSUPP for what there is none of.
fn from_extended(given: &Extended, kind: FileKind) -> Result<FileFlags> {
    let directory = kind == FileKind::Directory;
    let misplaced = if directory { extended::EXTSIZE } else { extended::EXTSZINHERIT };
    if given.flags & misplaced != 0 {
        return Err(Errno::EINVAL);
    }
    let common = PAIRS.iter().fold(extended::WITHOUT_EFFECT, |word, (_, bit)| word | bit);
    if given.flags & !common != 0 || [given.extent_size, given.project, given.cow_extent_size] != [0; 3] {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(PAIRS.iter().filter(|(_, bit)| given.flags & bit != 0).map(|(flag, _)| *flag).collect())
}
