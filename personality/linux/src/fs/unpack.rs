//! Fills a file system from an archive.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::WriteBuf;
use janua_object::Caller;
use janua_object::file::{OpenFile, flags};
use janua_object::vfs::access::Who;
use janua_object::vfs::{FileKind, Inode, Make, Path, SetAttr, Vfs, device};
use janua_port::{Host, HostFd};

use super::setup;
use crate::boot::archive::{Entry, HEADER, Head};

/// Bytes moved at a time.
const CHUNK: usize = 64 * 1024;
/// Longest target of a symbolic link.
const TARGET_MOST: usize = 4096;

/// Where file data comes from: the archive's file, and a place in it.
struct Source<'a> {
    host: &'a dyn Host,
    fd: HostFd,
}

impl Source<'_> {
    /// Exactly these bytes. EINVAL when the archive ends before.
    fn read(&self, at: usize, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            match self.host.read(self.fd, &mut out[done..], Some((at + done) as u64))? {
                0 => return Err(Errno::EINVAL),
                n => done += n,
            }
        }
        Ok(())
    }
}

/// Unpacks the archive behind `fd` below `root`. Directories come before what is in them. EINVAL for an archive that is broken,
/// ENOSPC or ENOMEM when there is no room for it.
pub fn unpack(vfs: &Vfs, caller: &dyn Caller, root: &Path, host: &dyn Host, fd: HostFd) -> Result<()> {
    let source = Source { host, fd };
    let mut known: BTreeMap<u32, Arc<dyn Inode>> = BTreeMap::new();
    let mut at = 0;
    let mut header = [0; HEADER];
    loop {
        source.read(at, &mut header)?;
        let head = Head::of(&header).map_err(|_| Errno::EINVAL)?;
        let mut name = vec![0; head.name];
        source.read(at + HEADER, &mut name)?;
        let Some(name) = head.name(&name).map_err(|_| Errno::EINVAL)? else { return Ok(()) };
        let (data, next) = head.places(at).ok_or(Errno::EINVAL)?;
        let mut target = Vec::new();
        if FileKind::of_mode(head.entry.mode) == Some(FileKind::Symlink) {
            if head.data > TARGET_MOST {
                return Err(Errno::EINVAL);
            }
            target.resize(head.data, 0);
            source.read(data, &mut target)?;
        }
        let entry = Entry { name, data: &target, ..head.entry };
        place(vfs, caller, root, &entry, &source, data..data + head.data, &mut known)?;
        at = next;
    }
}

fn place(
    vfs: &Vfs,
    caller: &dyn Caller,
    root: &Path,
    entry: &Entry<'_>,
    source: &Source<'_>,
    data: Range<usize>,
    known: &mut BTreeMap<u32, Arc<dyn Inode>>,
) -> Result<()> {
    let inode = if entry.name.is_empty() || entry.name == b"." {
        root.inode().clone()
    } else {
        let parts: Vec<&[u8]> = entry.name.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
        let (name, dirs) = parts.split_last().ok_or(Errno::EINVAL)?;
        if parts.iter().any(|part| *part == b"..") {
            return Err(Errno::EINVAL);
        }
        let dir = if dirs.is_empty() { root.clone() } else { setup::find(vfs, caller, root, &dirs.join(&b"/"[..]))? };
        let kind = FileKind::of_mode(entry.mode).ok_or(Errno::EINVAL)?;
        let first = known.get(&entry.ino).filter(|_| entry.links > 1 && kind != FileKind::Directory);
        let rdev = device::number(entry.device.0, entry.device.1);
        let made = vfs.make(
            Who { caller, cred: &caller.cred() },
            &dir,
            name,
            &match (first, kind) {
                (Some(first), _) => Make::Link(first),
                (None, FileKind::Symlink) => Make::Symlink(entry.data),
                (None, _) => Make::Node { mode: entry.mode, rdev },
            },
        )?;
        let inode = made.inode().clone();
        if kind == FileKind::Regular && !data.is_empty() {
            write(caller, &made, source, data)?;
        }
        known.entry(entry.ino).or_insert_with(|| inode.clone());
        inode
    };
    let time = i64::from(entry.mtime) * 1_000_000_000;
    let mode = (FileKind::of_mode(entry.mode) != Some(FileKind::Symlink)).then_some(entry.mode & 0o7777);
    inode.set_attr(&SetAttr { mode, uid: Some(entry.uid), gid: Some(entry.gid), mtime: Some(time), ..SetAttr::default() })
}

fn write(caller: &dyn Caller, path: &Path, source: &Source<'_>, data: Range<usize>) -> Result<()> {
    let ops = path.inode().clone().open(caller, flags::O_WRONLY)?;
    let file = OpenFile::new(ops, flags::O_WRONLY | flags::O_LARGEFILE, Some(path.clone()));
    let mut bytes = vec![0; data.len().min(CHUNK)];
    let mut done = 0;
    while done < data.len() {
        let part = (data.len() - done).min(CHUNK);
        source.read(data.start + done, &mut bytes[..part])?;
        let mut written = 0;
        while written < part {
            match file.ops.write(&file, caller, &mut WriteBuf::kernel(&bytes[written..part]), (done + written) as u64)? {
                0 => return Err(Errno::ENOSPC),
                n => written += n,
            }
        }
        done += part;
    }
    Ok(())
}
