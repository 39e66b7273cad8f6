//! Directories: listing, the working directory, the root, the umask.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::i386::stat::fold_ino;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::user::PATH_MAX;
use janua_kernel::{UserPtr, UserStr};
use janua_object::file::DirEntry;
use janua_object::file::flags::O_NOATIME;
use janua_object::vfs::access::{self, Who};
use janua_object::vfs::remembered::changing;
use janua_object::vfs::watch::event;
use janua_object::vfs::{FileKind, NAME_MAX, Path};
use janua_rt::RwLock;

use super::at::{self, CWD, Mode};
use crate::Thread;
use crate::thread::ThreadExt;

/// Most bytes of records gathered for one call; a larger buffer is filled in part.
const GATHERED_MOST: usize = 32 * 1024;

/// Lists an open directory from its position on: bytes stored. `encode` appends an entry's record; the records go to the guest
/// in one piece. A record's length is at its byte `len_at`. EINVAL when not even the first one fits.
fn list(
    thread: &Thread,
    fd: Fd,
    out: UserPtr<u8>,
    size: u32,
    len_at: usize,
    encode: impl Fn(&DirEntry<'_>, &mut Vec<u8>),
) -> Result<usize> {
    let file = at::file(thread, fd)?;
    file.check_read()?;
    if file.path.as_ref().is_some_and(|path| path.dentry.is_dir() && path.dentry.is_deleted()) {
        return Err(Errno::ENOENT);
    }
    let most = (size as usize).min(GATHERED_MOST);
    let mut records = at::vfs(thread).buffer(most);
    let mut too_small = false;
    let before = *file.pos.lock();
    let result = file.ops.readdir(&file, &thread.caller(), &mut |entry| {
        let end = records.len();
        encode(entry, &mut records);
        let fits = records.len() <= most;
        if !fits {
            records.truncate(end);
            too_small = end == 0;
        }
        fits
    });
    let stored = thread.user().copy_out_partial(out.addr(), &records);
    // What cannot be stored whole is for the next call.
    let (len, next) = whole(&records, stored, len_at);
    if len < records.len() {
        *file.pos.lock() = next.unwrap_or(before);
    }
    let any = !records.is_empty();
    at::vfs(thread).give_back(records);
    if let Some(path) = &file.path
        && file.flags() & O_NOATIME == 0
    {
        path.accessed();
    }
    file.notify(event::ACCESS);
    if any {
        return if len > 0 { Ok(len) } else { Err(Errno::EFAULT) };
    }
    result?;
    if too_small { Err(Errno::EINVAL) } else { Ok(0) }
}

/// The whole records among the first `stored` bytes: their length together, and the position after the last of them. A record's
/// length is at `len_at`, the position in as many bytes before it as are left when the inode number has its half.
fn whole(records: &[u8], stored: usize, len_at: usize) -> (usize, Option<u64>) {
    if stored == records.len() {
        return (stored, None);
    }
    let word = |at: usize, size: usize| {
        let bytes = records.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    };
    let (mut len, mut next) = (0, None);
    while let Some(end) = word(len + len_at, 2).map(|size| len + size as usize).filter(|end| *end <= stored) {
        next = word(len + len_at / 2, len_at / 2);
        len = end;
    }
    (len, next)
}

/// What both forms of a record begin with: inode number, next position, length.
fn head(entry: &DirEntry<'_>, len: usize) -> [u8; 18] {
    let mut head = [0; 18];
    head[..8].copy_from_slice(&entry.ino.to_le_bytes());
    head[8..16].copy_from_slice(&entry.next.to_le_bytes());
    head[16..].copy_from_slice(&(len as u16).to_le_bytes());
    head
}

/// A name as a record can hold it.
fn name_of<'a>(entry: &DirEntry<'a>) -> &'a [u8] {
    &entry.name[..entry.name.len().min(NAME_MAX)]
}

pub fn getdents64(thread: &Thread, fd: Fd, out: UserPtr<u8>, size: u32) -> Result<usize> {
    list(thread, fd, out, size, 16, encode_wide)
}

fn encode_wide(entry: &DirEntry<'_>, out: &mut Vec<u8>) {
    let name = name_of(entry);
    let len = (19 + name.len() + 1).next_multiple_of(8);
    out.extend_from_slice(&head(entry, len));
    out.push(entry.kind);
    out.extend_from_slice(name);
    out.extend_from_slice(&[0; 8][..len - 19 - name.len()]);
}

/// The same with inode numbers as stat(2) reports them to 32-bit programs.
pub fn getdents64_compat(thread: &Thread, fd: Fd, out: UserPtr<u8>, size: u32) -> Result<usize> {
    list(thread, fd, out, size, 16, |entry, out| encode_wide(&DirEntry { ino: fold_ino(entry.ino).into(), ..*entry }, out))
}

/// The older form: the type is in the record's last byte.
pub fn getdents(thread: &Thread, fd: Fd, out: UserPtr<u8>, size: u32) -> Result<usize> {
    list(thread, fd, out, size, 16, |entry, out| {
        let name = name_of(entry);
        let len = (18 + name.len() + 2).next_multiple_of(8);
        let end = out.len() + len;
        out.extend_from_slice(&head(entry, len));
        out.extend_from_slice(name);
        out.resize(end - 1, 0);
        out.push(entry.kind);
    })
}

/// The older form with 32-bit inode numbers and positions. What does not fit is cut.
pub fn getdents_compat(thread: &Thread, fd: Fd, out: UserPtr<u8>, size: u32) -> Result<usize> {
    list(thread, fd, out, size, 8, |entry, out| {
        let name = name_of(entry);
        let len = (10 + name.len() + 2).next_multiple_of(4);
        let end = out.len() + len;
        out.extend_from_slice(&fold_ino(entry.ino).to_le_bytes());
        out.extend_from_slice(&(entry.next as u32).to_le_bytes());
        out.extend_from_slice(&(len as u16).to_le_bytes());
        out.extend_from_slice(name);
        out.resize(end - 1, 0);
        out.push(entry.kind);
    })
}

pub fn getcwd(thread: &Thread, out: UserPtr<u8>, size: usize) -> Result<usize> {
    let context = thread.fs.read().clone();
    let written = context.cwd.read().write(&context.root.read());
    if written.deleted {
        return Err(Errno::ENOENT);
    }
    let mut name = if written.reachable { written.name } else { [b"(unreachable)", &*written.name].concat() };
    name.push(0);
    if name.len() > PATH_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    if name.len() > size {
        return Err(Errno::ERANGE);
    }
    thread.user().copy_out(out.addr(), &name).map_err(|_| Errno::EFAULT)?;
    Ok(name.len())
}

/// A directory one may make one's own: ENOTDIR, EACCES.
fn check_dir(thread: &Thread, path: &Path) -> Result<()> {
    if path.dentry.kind() != FileKind::Directory {
        return Err(Errno::ENOTDIR);
    }
    Who { caller: &thread.caller(), cred: &thread.ext.cred() }.check(&**path.inode(), access::EXEC)
}

/// Changes where names start.
fn move_to(thread: &Thread, start: &RwLock<Path>, found: Path) {
    let mut start = start.write();
    let old = core::mem::replace(&mut *start, found);
    changing();
    drop(start);
    let chain = at::vfs(thread).watches.chain(&old.dentry);
    drop(old);
    at::vfs(thread).watches.released_of(&chain);
}

pub fn chdir(thread: &Thread, path: UserStr) -> Result<()> {
    let path = path.path(thread.user())?;
    let found = at::find(thread, CWD, &path, true)?;
    check_dir(thread, &found)?;
    move_to(thread, &thread.fs.read().cwd, found);
    Ok(())
}

pub fn fchdir(thread: &Thread, fd: Fd) -> Result<()> {
    let found = at::file(thread, fd)?.path.clone().ok_or(Errno::ENOTDIR)?;
    check_dir(thread, &found)?;
    move_to(thread, &thread.fs.read().cwd, found);
    Ok(())
}

pub fn chroot(thread: &Thread, path: UserStr) -> Result<()> {
    let path = path.path(thread.user())?;
    let found = at::find(thread, CWD, &path, true)?;
    check_dir(thread, &found)?;
    if !thread.ext.cred().capable(access::CAP_SYS_CHROOT) {
        return Err(Errno::EPERM);
    }
    move_to(thread, &thread.fs.read().root, found);
    Ok(())
}

pub fn umask(thread: &Thread, mask: Mode) -> u32 {
    thread.fs.read().umask.swap(mask.0 & 0o777, Ordering::Relaxed)
}
