//! Open regular files of the memory file system.

use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::fcntl::falloc;
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::{Backing, MemoryObject};
use janua_rt::Mutex;

use crate::caller::Caller;
use crate::file::{Events, File, OpenFile, cut_behind, flags, offset};
use crate::vfs::access::{CAP_FSETID, without_privileges};
use crate::vfs::{FileFlags, MountFlags};

use super::Node;
use super::data::Source;

/// A day, after which reading updates a relatime access time anyway.
const DAY: i64 = 24 * 3600 * 1_000_000_000;

pub struct MemoryFile {
    node: Arc<Node>,
    /// The opener may leave set-user-ID bits on what it writes.
    keeps_privileges: bool,
    /// What is mapped stays open as long as this file.
    mapped: Mutex<alloc::vec::Vec<Arc<dyn MemoryObject>>>,
}

impl Node {
    /// See [`Inode::accessed`](crate::vfs::Inode::accessed).
    pub(super) fn note_access(&self, relative: bool) {
        let now = self.shared.now();
        let mut meta = self.meta.lock();
        if meta.flags.contains(FileFlags::NOATIME) {
            return;
        }
        let stale = meta.atime <= meta.mtime || meta.atime <= meta.ctime || now - meta.atime >= DAY;
        if stale || !relative {
            meta.atime = now;
        }
    }
}

impl MemoryFile {
    pub fn open(node: Arc<Node>, caller: &dyn Caller, open: u32) -> Result<MemoryFile> {
        let writes = open & flags::O_ACCMODE != flags::O_RDONLY;
        if let Some(lower) = &node.lower {
            let data = node.data()?;
            if writes {
                // From here on mappings and readers are to see what this file writes.
                if data.lock().is_lower() {
                    node.keep();
                    let mut data = data.lock();
                    let size = data.size();
                    data.own(&node.shared.space, size, &|| caller.is_killed())?;
                }
            } else if data.lock().is_lower() {
                // What the host refuses is refused now, not at the first read.
                lower.inode.reader()?;
            }
        }
        let keeps_privileges = writes && caller.cred().capable(CAP_FSETID);
        Ok(MemoryFile { node, keeps_privileges, mapped: Mutex::new(alloc::vec::Vec::new()) })
    }

    fn read_done(&self, file: &OpenFile) {
        let mount = file.path.as_ref().map_or(MountFlags::NOATIME, |path| path.mount.flags());
        if file.flags() & flags::O_NOATIME != 0
            || mount.contains(MountFlags::NOATIME)
            || file.path.as_ref().is_some_and(|path| path.mount.check_write().is_err())
        {
            return;
        }
        self.node.note_access(mount.contains(MountFlags::RELATIME));
    }

    /// Writes what is in front of `most`: bytes written, and the offset behind them.
    fn write_at(&self, buf: &mut WriteBuf<'_>, offset: u64, most: u64) -> Result<(usize, u64)> {
        let mut noted = false;
        self.node.data()?.write(buf, offset, |data, part, at| {
            let at = if at == offset::END { data.size() } else { at };
            cut_behind(part, at, most)?;
            let n = data.write(&self.node.shared.space, part, at)?;
            // With the first part: others may look at it, and run it, before the last.
            if !core::mem::replace(&mut noted, true) {
                self.wrote();
            }
            Ok((n, at + n as u64))
        })
    }

    fn wrote(&self) {
        let now = self.node.shared.now();
        let mut meta = self.node.meta.lock();
        meta.mtime = now;
        meta.ctime = now;
        self.node.drop_capability(&mut meta);
        if !self.keeps_privileges
            && let Some(mode) = without_privileges(meta.mode)
        {
            meta.mode = mode;
        }
    }
}

impl File for MemoryFile {
    fn read(&self, file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        if buf.left() == 0 {
            return Ok(0);
        }
        let source = self.node.data()?.lock().read(buf, offset)?;
        let n = match source {
            Source::Done(n) => n,
            Source::Object(object) => object.read_at(buf, offset)?,
        };
        self.read_done(file);
        Ok(n)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        if buf.left() == 0 { Ok(0) } else { Ok(self.write_at(buf, offset, u64::MAX)?.0) }
    }

    fn append(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, most: u64) -> Result<(usize, u64)> {
        self.write_at(buf, offset::END, most)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
        Events::ALWAYS
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> Result<u64> {
        Ok(self.node.data()?.lock().size())
    }

    fn seek_data(&self, offset: u64, hole: bool) -> Result<u64> {
        self.node.data()?.lock().seek(offset, hole)
    }

    fn backing(&self, file: &OpenFile, offset: u64, len: usize, shared: bool) -> Result<Backing> {
        let writable = shared && file.flags() & flags::O_ACCMODE == flags::O_RDWR;
        let (object, frozen) = {
            let mut data = self.node.data()?.lock();
            (data.map(&self.node.shared.space, writable, offset, offset.saturating_add(len as u64))?, data.is_frozen())
        };
        let mut mapped = self.mapped.lock();
        if !mapped.iter().any(|known| Arc::ptr_eq(known, &object)) {
            mapped.push(object.clone());
        }
        Ok(Backing::Object { object, offset, shared, frozen })
    }

    fn mapping_made(&self, _writable: bool) -> Result<()> {
        self.node.data()?.lock().mapping_made();
        Ok(())
    }

    fn mapping_gone(&self, _writable: bool) {
        if let Ok(data) = self.node.data() {
            data.lock().mapping_gone();
        }
    }

    fn truncate(&self, _file: &OpenFile, len: u64) -> Result<()> {
        self.node.keep();
        self.node.data()?.change().truncate(&self.node.shared.space, len)?;
        self.wrote();
        Ok(())
    }

    fn allocate(&self, _file: &OpenFile, mode: u32, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let (shared, data) = (&self.node.shared, self.node.data()?);
        match mode {
            falloc::COLLAPSE_RANGE if shared.moves_ranges => data.change().collapse(&shared.space, offset, len)?,
            falloc::INSERT_RANGE if shared.moves_ranges => data.change().insert(&shared.space, offset, len)?,
            // As tmpfs has it.
            _ if !shared.moves_ranges && mode & !(falloc::KEEP_SIZE | falloc::PUNCH_HOLE) != 0 => {
                return Err(Errno::EOPNOTSUPP);
            }
            _ => data.change().allocate(&shared.space, mode, offset, len)?,
        }
        self.wrote();
        Ok(())
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
