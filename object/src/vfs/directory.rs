//! Open directories.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::Mutex;

use crate::caller::Caller;
use crate::file::{DirEntry, Events, File, OpenFile, whence};
use crate::vfs::inode::{FileKind, Inode};

/// The first position after "." and "..".
const FIRST: u64 = 2;

/// An open directory whose inode lists itself by stable positions ([`Inode::readdir`]): position `n` of the inode is `n + 2`
/// of the file, after "." and "..".
pub struct Directory {
    inode: Arc<dyn Inode>,
}

impl Directory {
    pub fn new(inode: Arc<dyn Inode>) -> Directory {
        Directory { inode }
    }
}

/// "." and ".." as far as they are still to come: false when `emit` is full.
fn dots(file: &OpenFile, inode: &Arc<dyn Inode>, pos: &mut u64, emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<bool> {
    if *pos >= FIRST {
        return Ok(true);
    }
    let own = inode.ino()?;
    if *pos == 0 {
        if !emit(&DirEntry { ino: own, next: 1, kind: FileKind::Directory.dirent(), name: b"." }) {
            return Ok(false);
        }
        *pos = 1;
    }
    if *pos == 1 {
        let up = file.path.as_ref().and_then(|path| path.up()?.inode().ino().ok());
        let ino = up.unwrap_or(own);
        if !emit(&DirEntry { ino, next: FIRST, kind: FileKind::Directory.dirent(), name: b".." }) {
            return Ok(false);
        }
        *pos = FIRST;
    }
    Ok(true)
}

macro_rules! directory_file {
    () => {
        fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
            Err(Errno::EISDIR)
        }
        fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
            Err(Errno::EBADF)
        }
        fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
            Events::ALWAYS
        }
        fn seekable(&self) -> bool {
            true
        }
        fn size(&self) -> Result<u64> {
            Ok(0)
        }
        fn sync(&self, _data_only: bool) -> Result<()> {
            self.inode.sync()
        }
        fn sync_blocks(&self) -> bool {
            self.inode.sync_blocks()
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    };
}

impl File for Directory {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn readdir(&self, file: &OpenFile, caller: &dyn Caller, emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        let mut pos = file.pos.lock();
        if !dots(file, &self.inode, &mut pos, emit)? {
            return Ok(());
        }
        let from = *pos - FIRST;
        let mut last = from;
        self.inode.readdir(caller, from, &mut |entry| {
            let Some(next) = entry.next.checked_add(FIRST) else { return false };
            let taken = emit(&DirEntry { ino: entry.ino, next, kind: entry.kind, name: entry.name });
            if taken {
                last = entry.next;
            }
            taken
        })?;
        *pos = last + FIRST;
        Ok(())
    }
    directory_file!();
}

/// Entries of a directory in one piece.
#[derive(Default)]
struct Listing {
    entries: Vec<Listed>,
    /// All names, one after the other.
    names: Vec<u8>,
}

struct Listed {
    ino: u64,
    kind: u8,
    len: u8,
    /// Where the name begins in [`Listing::names`].
    at: usize,
}

impl Listing {
    fn name(&self, entry: &Listed) -> &[u8] {
        &self.names[entry.at..entry.at + usize::from(entry.len)]
    }
}

/// An open directory that is listed once, when reading begins or begins again, and then served from memory: for directories
/// that have no stable positions of their own.
pub struct Snapshot {
    inode: Arc<dyn Inode>,
    list: Mutex<Option<Listing>>,
}

impl Snapshot {
    pub fn new(inode: Arc<dyn Inode>) -> Snapshot {
        Snapshot { inode, list: Mutex::new(None) }
    }
}

impl File for Snapshot {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn readdir(&self, file: &OpenFile, caller: &dyn Caller, emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        let mut pos = file.pos.lock();
        let mut list = self.list.lock();
        if *pos == 0 || list.is_none() {
            let mut fresh = Listing { entries: Vec::with_capacity(32), names: Vec::with_capacity(1024) };
            // The list of a directory with millions of names may be more than there is.
            let mut fits = true;
            self.inode.readdir(caller, 0, &mut |entry| {
                fits = fresh.entries.try_reserve(1).is_ok() && fresh.names.try_reserve(entry.name.len()).is_ok();
                // No file system here has longer names than a byte counts.
                if fits && let Ok(len) = u8::try_from(entry.name.len()) {
                    fresh.entries.push(Listed { ino: entry.ino, kind: entry.kind, len, at: fresh.names.len() });
                    fresh.names.extend_from_slice(entry.name);
                }
                fits
            })?;
            if !fits {
                return Err(Errno::ENOMEM);
            }
            *list = Some(fresh);
        }
        if !dots(file, &self.inode, &mut pos, emit)? {
            return Ok(());
        }
        let Some(listing) = &*list else { return Ok(()) };
        let from = usize::try_from(*pos - FIRST).unwrap_or(usize::MAX).min(listing.entries.len());
        for entry in &listing.entries[from..] {
            if !emit(&DirEntry { ino: entry.ino, next: *pos + 1, kind: entry.kind, name: listing.name(entry) }) {
                break;
            }
            *pos += 1;
        }
        Ok(())
    }
    fn seek(&self, file: &OpenFile, offset: i64, from: u32) -> Result<u64> {
        let mut pos = file.pos.lock();
        let base = match from {
            whence::SEEK_SET => 0,
            whence::SEEK_CUR => *pos,
            whence::SEEK_END => FIRST + self.list.lock().as_ref().map_or(0, |list| list.entries.len() as u64),
            _ => return Err(Errno::EINVAL),
        };
        let new = base.checked_add_signed(offset).ok_or(Errno::EINVAL)?;
        *pos = new;
        Ok(new)
    }
    directory_file!();
}
