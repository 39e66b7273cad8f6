//! Open regular files of the host.

use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::{Backing, OwnedFd};

use crate::caller::Caller;
use crate::file::{Events, File, OpenFile, cut_behind, flags, offset, whence};
use crate::fs::hostio;
use crate::vfs::access::{CAP_FSETID, without_privileges};

use super::HostInode;
use super::lately::Change;

pub struct HostRegular {
    inode: Arc<HostInode>,
    fd: Arc<OwnedFd>,
    /// The opener may leave set-user-ID bits on what it writes.
    keeps_privileges: bool,
}

impl HostRegular {
    /// Opens the file on the host with the same access mode.
    pub fn open(inode: Arc<HostInode>, caller: &dyn Caller, open: u32) -> Result<HostRegular> {
        let fd = match open & flags::O_ACCMODE {
            flags::O_RDONLY => {
                let made = inode.fds.lock().made.take();
                // A file made just now may have a mode by which the host lets nobody else open it.
                inode.reader().or_else(|errno| made.ok_or(errno))?
            }
            access => {
                let made = inode.fds.lock().made.take();
                let access = access | open & (flags::O_SYNC | flags::O_DSYNC) | flags::O_NONBLOCK;
                let kept = {
                    let fds = inode.fds.lock();
                    fds.any().filter(|_| fds.pinned)
                };
                match kept {
                    _ if made.is_some() && access & (flags::O_SYNC | flags::O_DSYNC) == 0 => made.ok_or(Errno::EIO)?,
                    // The root, or a file that no name leads to any more.
                    Some(kept) => inode.shared.open(&kept, b"", access, 0, 0)?,
                    None => inode.open_place(access)?,
                }
            }
        };
        Ok(HostRegular::over(inode, caller, fd))
    }

    /// An open file over a descriptor with the access mode it was opened with.
    pub fn over(inode: Arc<HostInode>, caller: &dyn Caller, fd: Arc<OwnedFd>) -> HostRegular {
        inode.shared.note_copies(inode.id.0, &fd);
        inode.fds.lock().lent = Arc::downgrade(&fd);
        HostRegular { inode, fd, keeps_privileges: caller.cred().capable(CAP_FSETID) }
    }

    /// The file's contents are about to be changed: takes off the bits that lend its owner's rights, as Linux does before it writes.
    fn writes(&self) -> Result<()> {
        // As the mode was at the last look: this is asked at every write.
        if self.keeps_privileges || without_privileges(self.inode.stat.lock().mode).is_none() {
            return Ok(());
        }
        let _held = self.inode.busy.hold_rights();
        let stat = self.inode.host().stat(self.fd.fd())?;
        let Some(mode) = without_privileges(stat.mode) else { return Ok(()) };
        self.inode.looked.store(0, Ordering::Relaxed);
        match self.inode.host().chmod(self.fd.fd(), mode & 0o7777) {
            // Then the host does it itself when it is written to: it takes the sandbox for nobody who may keep the bits.
            Err(Errno::EPERM) => Ok(()),
            other => other,
        }
    }
}

impl File for HostRegular {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        hostio::read_at(&self.fd, buf, offset)
    }

    fn write(&self, file: &OpenFile, caller: &dyn Caller, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        if offset == offset::END {
            return Ok(self.append(file, caller, buf, u64::MAX)?.0);
        }
        if buf.left() == 0 {
            return Ok(0);
        }
        self.writes()?;
        let _change = Change::begin();
        hostio::write_at(&self.fd, buf, offset)
    }

    fn append(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, most: u64) -> Result<(usize, u64)> {
        self.writes()?;
        // Several ranges of one writer stay together.
        let _append = self.inode.append.lock();
        if most != u64::MAX {
            cut_behind(buf, self.size()?, most)?;
        }
        let _change = Change::begin();
        let n = hostio::write_at(&self.fd, buf, offset::END)?;
        // The host has moved its own position, which `seek_data` alone does besides.
        Ok((n, self.inode.host().lseek(self.fd.fd(), 0, whence::SEEK_CUR)?))
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
        Events::ALWAYS
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> Result<u64> {
        Ok(self.inode.host().stat(self.fd.fd())?.size)
    }

    fn seek_data(&self, offset: u64, hole: bool) -> Result<u64> {
        let offset = i64::try_from(offset).map_err(|_| Errno::EINVAL)?;
        // It moves the host's position, which `append` reads.
        let _append = self.inode.append.lock();
        self.inode.host().lseek(self.fd.fd(), offset, if hole { 4 } else { 3 })
    }

    fn backing(&self, _file: &OpenFile, offset: u64, _len: usize, shared: bool) -> Result<Backing> {
        Ok(Backing::Object { object: self.fd.clone(), offset, shared, frozen: self.inode.is_frozen() })
    }

    fn truncate(&self, _file: &OpenFile, len: u64) -> Result<()> {
        self.writes()?;
        let _change = Change::begin();
        self.inode.host().truncate(self.fd.fd(), len)
    }

    fn allocate(&self, _file: &OpenFile, mode: u32, offset: u64, len: u64) -> Result<()> {
        self.writes()?;
        let _change = Change::begin();
        self.inode.host().fallocate(self.fd.fd(), mode, offset, len)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        self.inode.host().fsync(self.fd.fd(), data_only)
    }

    fn sync_blocks(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
