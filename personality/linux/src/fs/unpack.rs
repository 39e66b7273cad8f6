//! Fills a file system from an archive.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::WriteBuf;
use janua_object::Caller;
use janua_object::file::{OpenFile, flags};
use janua_object::vfs::{FileKind, Inode, Make, Path, SetAttr, Vfs, device};
use janua_port::{Host, HostFd};

use super::setup;
use crate::boot::archive::{self, Entry};

/// Unpacks the archive behind `fd` below `root`. Directories stand before what is in them. EINVAL for an archive that is broken.
pub fn unpack(vfs: &Vfs, caller: &dyn Caller, root: &Path, host: &dyn Host, fd: HostFd) -> Result<()> {
    let size = usize::try_from(host.stat(fd, b"")?.size).map_err(|_| Errno::EFBIG)?;
    let mut bytes = vec![0; size];
    let mut done = 0;
    while done < size {
        match host.read(fd, &mut bytes[done..], Some(done as u64))? {
            0 => return Err(Errno::EIO),
            n => done += n,
        }
    }
    let mut known: BTreeMap<u32, Arc<dyn Inode>> = BTreeMap::new();
    let mut at = 0;
    while let Some(entry) = archive::next(&bytes, &mut at).map_err(|_| Errno::EINVAL)? {
        place(vfs, caller, root, &entry, &mut known)?;
    }
    Ok(())
}

fn place(
    vfs: &Vfs,
    caller: &dyn Caller,
    root: &Path,
    entry: &Entry<'_>,
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
            &caller.cred(),
            &dir,
            name,
            &match (first, kind) {
                (Some(first), _) => Make::Link(first),
                (None, FileKind::Symlink) => Make::Symlink(entry.data),
                (None, _) => Make::Node { mode: entry.mode, rdev },
            },
        )?;
        let inode = made.inode().clone();
        if kind == FileKind::Regular && !entry.data.is_empty() {
            write(caller, &made, entry.data)?;
        }
        known.entry(entry.ino).or_insert_with(|| inode.clone());
        inode
    };
    let time = i64::from(entry.mtime) * 1_000_000_000;
    let mode = (FileKind::of_mode(entry.mode) != Some(FileKind::Symlink)).then_some(entry.mode & 0o7777);
    inode.set_attr(&SetAttr {
        mode,
        uid: Some(entry.uid),
        gid: Some(entry.gid),
        mtime: Some(time),
        ..SetAttr::default()
    })
}

fn write(caller: &dyn Caller, path: &Path, data: &[u8]) -> Result<()> {
    let ops = path.inode().clone().open(caller, flags::O_WRONLY)?;
    let file = OpenFile::new(ops, flags::O_WRONLY | flags::O_LARGEFILE, Some(path.clone()));
    let mut done = 0;
    while done < data.len() {
        match file.ops.write(&file, &mut WriteBuf::kernel(&data[done..]), done as u64)? {
            0 => return Err(Errno::ENOSPC),
            n => done += n,
        }
    }
    Ok(())
}
