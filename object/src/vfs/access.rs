//! Who may do what with a file (path_resolution(7), capabilities(7)).

pub use janua_abi::linux::capability::{
    CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_LINUX_IMMUTABLE, CAP_MKNOD, CAP_SETFCAP,
    CAP_SYS_ADMIN, CAP_SYS_CHROOT,
};
use janua_abi::linux::{Errno, Result};

use crate::caller::{Caller, Cred};
use crate::vfs::inode::{FileFlags, FileKind, Inode, Perm};

pub const S_ISUID: u32 = 0o4000;
pub const S_ISGID: u32 = 0o2000;
pub const S_ISVTX: u32 = 0o1000;
pub const S_IXGRP: u32 = 0o010;

/// Rights asked for: the bits of access(2) (R_OK 4, W_OK 2, X_OK 1).
pub const READ: u32 = 4;
pub const WRITE: u32 = 2;
pub const EXEC: u32 = 1;

/// Whether `cred` has all of `want` on a file. EACCES; EPERM for who wants to write to what cannot be changed.
pub fn check(perm: &Perm, cred: &Cred, want: u32) -> Result<()> {
    if want & WRITE != 0 && perm.flags.contains(FileFlags::IMMUTABLE) {
        return Err(Errno::EPERM);
    }
    let class = if cred.fsuid == perm.uid {
        perm.mode >> 6
    } else if cred.in_group(perm.gid) {
        perm.mode >> 3
    } else {
        perm.mode
    };
    if class & 7 & want == want {
        return Ok(());
    }
    let dir = FileKind::of_mode(perm.mode) == Some(FileKind::Directory);
    let read_search = if dir { want & WRITE == 0 } else { want & !READ == 0 };
    let over_ride = dir || want & EXEC == 0 || perm.mode & 0o111 != 0;
    if (read_search && cred.capable(CAP_DAC_READ_SEARCH)) || (over_ride && cred.capable(CAP_DAC_OVERRIDE)) {
        Ok(())
    } else {
        Err(Errno::EACCES)
    }
}

/// Who acts on files, and with which rights: mostly the caller's own.
#[derive(Clone, Copy)]
pub struct Who<'a> {
    pub caller: &'a dyn Caller,
    pub cred: &'a Cred,
}

impl Who<'_> {
    /// [`check`] of a file, where the file may grant more to this caller ([`Inode::grants`]).
    #[inline]
    pub fn check(self, inode: &dyn Inode, want: u32) -> Result<()> {
        self.check_perm(inode, &inode.perm()?, want)
    }

    /// The same with what [`Inode::perm`] of the file was a moment ago.
    #[inline]
    pub fn check_perm(self, inode: &dyn Inode, perm: &Perm, want: u32) -> Result<()> {
        match check(perm, self.cred, want) {
            Err(Errno::EACCES) if inode.grants(self.caller) => Ok(()),
            result => result,
        }
    }
}

/// Whether the right to search a directory needs no look at its mode.
pub fn searches_all(cred: &Cred) -> bool {
    cred.cap_effective & (1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH) != 0
}

/// Whether `cred` owns the file or may act as if (CAP_FOWNER).
pub fn owns(perm: &Perm, cred: &Cred) -> bool {
    cred.fsuid == perm.uid || cred.capable(CAP_FOWNER)
}

/// In a sticky directory names belong to the owner of the file or of the directory. EPERM.
pub fn check_sticky(dir: &Perm, file: &Perm, cred: &Cred) -> Result<()> {
    if dir.mode & S_ISVTX == 0 || cred.fsuid == file.uid || owns(dir, cred) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Mode and group of a new file in `dir` (inode(7): set-group-ID directories hand their group on).
pub fn inherit(dir: &Perm, mode: u32, cred: &Cred) -> (u32, u32) {
    if dir.mode & S_ISGID == 0 {
        return (mode, cred.fsgid);
    }
    if FileKind::of_mode(mode) == Some(FileKind::Directory) {
        return (mode | S_ISGID, dir.gid);
    }
    (if lends_group(mode) && !may_lend(dir, cred) { mode & !S_ISGID } else { mode }, dir.gid)
}

/// Whether who runs a file gets the rights of its group.
fn lends_group(mode: u32) -> bool {
    mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP
}

/// Whether `cred` may make files that lend the rights of the directory's group.
fn may_lend(dir: &Perm, cred: &Cred) -> bool {
    cred.in_group(dir.gid) || cred.capable(CAP_FSETID)
}

/// The mode asked for of a new file, no directory, in `dir`, without the umask. That it is not to lend the rights of the directory's
/// group is found before the umask takes away the bit by which it would: chmod(2) could bring that back.
pub fn new_mode(dir: &dyn Inode, mode: u32, umask: u32, cred: &Cred) -> Result<u32> {
    if !lends_group(mode) || umask & S_IXGRP == 0 {
        return Ok(mode & !umask);
    }
    let perm = dir.perm()?;
    let refused = perm.mode & S_ISGID != 0 && !may_lend(&perm, cred);
    Ok(mode & !umask & if refused { !S_ISGID } else { !0 })
}

/// A mode without the bits that lend rights to who runs the file, when that is another.
pub fn without_set_id(mode: u32) -> Option<u32> {
    let mut kill = mode & S_ISUID;
    if lends_group(mode) {
        kill |= S_ISGID;
    }
    (kill != 0).then_some(mode & !kill)
}

/// The mode a file has after somebody without CAP_FSETID wrote to it, when that is another.
pub fn without_privileges(mode: u32) -> Option<u32> {
    without_set_id(mode).filter(|_| FileKind::of_mode(mode) == Some(FileKind::Regular))
}
