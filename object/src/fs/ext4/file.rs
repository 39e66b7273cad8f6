//! Open regular files.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::Backing;

use super::data::Data;
use super::node::Node;
use super::{BLOCK, back};
use crate::caller::Caller;
use crate::file::{Events, File, OpenFile, cut_behind, flags, offset};
use crate::vfs::MountFlags;
use crate::vfs::access::CAP_FSETID;

pub struct DiskFile {
    node: Arc<Node>,
    /// The opener may leave set-user-ID bits on what it writes.
    keeps_privileges: bool,
}

impl DiskFile {
    pub fn new(node: Arc<Node>, caller: &dyn Caller, open: u32) -> DiskFile {
        let writes = open & flags::O_ACCMODE != flags::O_RDONLY;
        let keeps_privileges = writes && caller.cred().capable(CAP_FSETID);
        DiskFile { node, keeps_privileges }
    }

    fn read_done(&self, file: &OpenFile) {
        let Some(path) = &file.path else { return };
        let mount = path.mount.flags();
        if file.flags() & flags::O_NOATIME == 0 && !mount.contains(MountFlags::NOATIME) && path.mount.check_write().is_ok() {
            self.node.accessed(mount.contains(MountFlags::RELATIME));
        }
    }
}

/// Bytes written at a time: they are in the kernel's memory before the file is locked.
const PART: usize = 32 * BLOCK;

impl DiskFile {
    /// Reads what can be had at a time: how much, and whether that was all of it. `None` at the end of the file. The pages are copied to
    /// user memory without the file's lock, which a fault there may need.
    fn read_part(&self, buf: &mut ReadBuf<'_>, offset: u64) -> Result<Option<(usize, bool)>> {
        let ready = Data::ready(&mut self.node.data()?.lock(), self.node.shared(), offset, buf.left())?;
        let Some((pages, len)) = ready else { return Ok(None) };
        let n = buf.within(len, |buf| pages.object.read_at(buf, offset))?;
        Ok(Some((n, n == len)))
    }

    /// Writes what is written at a time: how much, and whether that was all of it. For the caller whose turn it is.
    fn write_part(&self, buf: &mut WriteBuf<'_>, room: &mut Vec<u8>, offset: u64) -> Result<(usize, bool)> {
        // Up to a border of pages: none is written in part twice.
        let want = buf.left().min(PART - (offset % BLOCK as u64) as usize);
        let n = match buf.kernel_range() {
            Some(bytes) => self.write_at(&bytes[..want], offset)?,
            None => {
                room.resize(want, 0);
                let have = buf.clone().get(room)?;
                self.write_at(&room[..have], offset)?
            }
        };
        buf.skip(n);
        Ok((n, n == want))
    }

    /// Writes at `offset`, or behind the end, what is in front of `most`: bytes written, and where they begin. Writes to the file
    /// come one after the other.
    fn write_in_turn(&self, buf: &mut WriteBuf<'_>, offset: u64, most: u64) -> Result<(usize, u64)> {
        if buf.left() == 0 {
            return Ok((0, if offset == offset::END { self.size()? } else { offset }));
        }
        if self.node.shared().read_only {
            return Err(Errno::EROFS);
        }
        let _turn = self.node.turn().lock();
        let start = if offset == offset::END { self.size()? } else { offset };
        cut_behind(buf, start, most)?;
        let mut room = Vec::new();
        let mut moved = 0;
        while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
            match self.write_part(buf, &mut room, start.saturating_add(moved as u64)) {
                Ok((n, whole)) => {
                    moved += n;
                    if !whole {
                        break;
                    }
                }
                Err(errno) if moved == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        self.node.wrote(self.keeps_privileges);
        Ok((moved, start))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        let shared = self.node.shared();
        let later = shared.make_room((bytes.len() / BLOCK) as u64 + 2);
        let mut data = self.node.data()?.lock();
        let n = Data::write(&mut data, shared, bytes, offset, !later)?;
        if shared.is_over_dirty_limit() {
            // What cannot be written now stays dirty, and the next call that flushes it returns the error.
            let _ = back::flush(&mut data, shared, false, false);
        }
        Ok(n)
    }
}

impl File for DiskFile {
    fn read(&self, file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        if buf.left() == 0 {
            return Ok(0);
        }
        let mut moved = 0;
        while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
            match self.read_part(buf, offset + moved as u64) {
                Ok(Some((n, whole))) => {
                    moved += n;
                    if !whole {
                        break;
                    }
                }
                Err(errno) if moved == 0 => return Err(errno),
                _ => break,
            }
        }
        self.read_done(file);
        Ok(moved)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        Ok(self.write_in_turn(buf, offset, u64::MAX)?.0)
    }

    fn append(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, most: u64) -> Result<(usize, u64)> {
        let (n, start) = self.write_in_turn(buf, offset::END, most)?;
        Ok((n, start + n as u64))
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
        Data::seek(&mut self.node.data()?.lock(), self.node.shared(), offset, hole)
    }

    fn backing(&self, file: &OpenFile, offset: u64, len: usize, shared: bool) -> Result<Backing> {
        let writable = shared && file.flags() & flags::O_ACCMODE == flags::O_RDWR;
        let object = Data::map(&mut self.node.data()?.lock(), self.node.shared(), offset, len, writable)?;
        Ok(Backing::Object { object, offset, shared, frozen: false })
    }

    fn counts_mappings(&self) -> bool {
        true
    }

    fn mapping_made(&self, writable: bool) -> Result<()> {
        self.node.data()?.lock().mapping_made(writable);
        if writable {
            self.node.mark_dirty();
        }
        Ok(())
    }

    fn mapping_gone(&self, writable: bool) {
        if let Ok(data) = self.node.data()
            && data.lock().mapping_gone(self.node.shared(), writable)
        {
            self.node.wrote(true);
        }
    }

    fn sync_mapping(&self) -> Result<()> {
        self.sync(true)
    }

    fn truncate(&self, _file: &OpenFile, len: u64) -> Result<()> {
        let _turn = self.node.turn().lock();
        Data::truncate(&mut self.node.data()?.lock(), self.node.shared(), len)?;
        self.node.wrote(self.keeps_privileges);
        Ok(())
    }

    fn allocate(&self, _file: &OpenFile, mode: u32, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let _turn = self.node.turn().lock();
        let shared = self.node.shared();
        shared.make_room(len.div_ceil(BLOCK as u64));
        Data::allocate(&mut self.node.data()?.lock(), shared, mode, offset, len)?;
        self.node.wrote(self.keeps_privileges);
        Ok(())
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        self.node.write_back(true)?;
        self.node.shared().commit()
    }

    fn sync_blocks(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
