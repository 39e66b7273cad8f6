//! Directories: listing, the working directory, the root, the umask.

use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::{UserPtr, UserStr};
use janua_object::vfs::{FileKind, Path, access};

use super::at::{self, CWD, Mode};
use crate::Thread;
use crate::thread::ThreadExt;

/// One listing's records on their way to the guest.
struct Records<'a> {
    thread: &'a Thread,
    at: usize,
    left: usize,
    done: usize,
    error: Option<Errno>,
}

impl Records<'_> {
    /// Adds a record; false when it does not fit (EINVAL when not even the first one does).
    fn push(&mut self, record: &[u8]) -> bool {
        if record.len() > self.left {
            if self.done == 0 {
                self.error = Some(Errno::EINVAL);
            }
            return false;
        }
        if self.thread.user().copy_out(self.at + self.done, record).is_err() {
            self.error = Some(Errno::EFAULT);
            return false;
        }
        self.done += record.len();
        self.left -= record.len();
        true
    }
}

/// Longest record: header, name, NUL, type, rounded up to eight.
const RECORD_MOST: usize = 19 + 255 + 2 + 7;

fn list(
    thread: &Thread,
    fd: Fd,
    out: UserPtr<u8>,
    size: u32,
    encode: impl Fn(&janua_object::file::DirEntry<'_>, &mut [u8; RECORD_MOST]) -> usize,
) -> Result<usize> {
    let file = at::file(thread, fd)?;
    file.check_read()?;
    if file.path.as_ref().is_some_and(|path| path.dentry.is_dir() && path.dentry.is_deleted()) {
        return Err(Errno::ENOENT);
    }
    let mut records = Records { thread, at: out.addr(), left: size as usize, done: 0, error: None };
    let result = file.ops.readdir(&file, &mut |entry| {
        let mut record = [0; RECORD_MOST];
        let len = encode(entry, &mut record);
        records.push(&record[..len])
    });
    match (records.done, records.error, result) {
        (done, _, _) if done > 0 => Ok(done),
        (_, Some(errno), _) => Err(errno),
        (_, None, Ok(())) => Ok(0),
        (_, None, Err(errno)) => Err(errno),
    }
}

pub fn getdents64(thread: &Thread, fd: Fd, out: UserPtr<u8>, size: u32) -> Result<usize> {
    list(thread, fd, out, size, |entry, record| {
        let name = &entry.name[..entry.name.len().min(255)];
        let len = (19 + name.len() + 1).next_multiple_of(8);
        record[..8].copy_from_slice(&entry.ino.to_le_bytes());
        record[8..16].copy_from_slice(&entry.next.to_le_bytes());
        record[16..18].copy_from_slice(&(len as u16).to_le_bytes());
        record[18] = entry.kind;
        record[19..19 + name.len()].copy_from_slice(name);
        len
    })
}

/// The older form: the type stands in the record's last byte.
pub fn getdents(thread: &Thread, fd: Fd, out: UserPtr<u8>, size: u32) -> Result<usize> {
    list(thread, fd, out, size, |entry, record| {
        let name = &entry.name[..entry.name.len().min(255)];
        let len = (18 + name.len() + 2).next_multiple_of(8);
        record[..8].copy_from_slice(&entry.ino.to_le_bytes());
        record[8..16].copy_from_slice(&entry.next.to_le_bytes());
        record[16..18].copy_from_slice(&(len as u16).to_le_bytes());
        record[18..18 + name.len()].copy_from_slice(name);
        record[len - 1] = entry.kind;
        len
    })
}

pub fn getcwd(thread: &Thread, out: UserPtr<u8>, size: usize) -> Result<usize> {
    let context = thread.process().fs.read().clone();
    let written = context.cwd.read().write(&context.root.read());
    if written.deleted {
        return Err(Errno::ENOENT);
    }
    let mut name = if written.reachable { written.name } else { [b"(unreachable)", &*written.name].concat() };
    name.push(0);
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
    access::check(&path.inode().perm()?, &thread.ext.cred(), access::EXEC)
}

pub fn chdir(thread: &Thread, path: UserStr) -> Result<()> {
    let path = path.path(thread.user())?;
    let found = at::find(thread, CWD, &path, true)?;
    check_dir(thread, &found)?;
    *thread.process().fs.read().cwd.write() = found;
    Ok(())
}

pub fn fchdir(thread: &Thread, fd: Fd) -> Result<()> {
    let found = at::file(thread, fd)?.path.clone().ok_or(Errno::ENOTDIR)?;
    check_dir(thread, &found)?;
    *thread.process().fs.read().cwd.write() = found;
    Ok(())
}

pub fn chroot(thread: &Thread, path: UserStr) -> Result<()> {
    let path = path.path(thread.user())?;
    let found = at::find(thread, CWD, &path, true)?;
    check_dir(thread, &found)?;
    if !thread.ext.cred().capable(access::CAP_SYS_CHROOT) {
        return Err(Errno::EPERM);
    }
    *thread.process().fs.read().root.write() = found;
    Ok(())
}

pub fn umask(thread: &Thread, mask: Mode) -> u32 {
    thread.process().fs.read().umask.swap(mask.0 & 0o777, Ordering::Relaxed)
}
