//! What the virtual file system asks of a file of the host.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};

use janua_kernel::wait::EVENTS;

use crate::caller::{Caller, Cred};
use crate::file::{DirEntry, File, flags};
use crate::vfs::access::{S_ISGID, S_ISUID, inherit};
use crate::vfs::directory::Snapshot;
use crate::vfs::inode::{Attr, FileFlags, FileKind, Inode, Perm, SetAttr};
use crate::vfs::{Busy, Slot};

use super::lately::Moment;
use super::{BENEATH, HostInode, PERM_AGE, file, host_inode};

impl Inode for HostInode {
    fn kind(&self) -> FileKind {
        self.kind
    }

    fn attr(&self) -> Result<Attr> {
        let stat = match self.shared.fresh {
            true => self.seen_lately().map_or_else(|| self.fetch(), Ok)?,
            false => *self.stat.lock(),
        };
        Ok(self.convert(&stat))
    }

    fn ino(&self) -> Result<u64> {
        Ok(self.shared.ino(self.id.0, self.id.1))
    }

    fn last_attr(&self) -> Result<Attr> {
        let stat = *self.stat.lock();
        Ok(self.convert(&stat))
    }

    fn id(&self) -> Option<(u64, u64)> {
        let attr = self.last_attr().ok()?;
        Some((attr.dev, attr.ino))
    }

    fn perm(&self) -> Result<Perm> {
        // As old as the last walk that ended here, or a second; the host checks for itself besides.
        if self.shared.fresh {
            let looked = self.looked.load(Ordering::Relaxed);
            if looked == 0 || self.shared.machine.clock().monotonic().saturating_sub(looked) > PERM_AGE {
                self.fetch()?;
            }
        }
        let stat = self.stat.lock();
        Ok(Perm { mode: stat.mode, uid: stat.uid, gid: stat.gid, flags: FileFlags::empty() })
    }

    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        let _change = self.change()?;
        if let Some(size) = change.size {
            let fd = self.open_place(flags::O_WRONLY | flags::O_NONBLOCK)?;
            self.host().truncate(fd.fd(), size)?;
        }
        // A link too: its name may be another file's by now, whose owner this would become.
        let file = self.any_fd()?;
        if change.uid.is_some() || change.gid.is_some() {
            self.host().chown(file.fd(), b"", change.uid.unwrap_or(u32::MAX), change.gid.unwrap_or(u32::MAX))?;
        }
        if let Some(mode) = change.mode {
            if self.kind == FileKind::Symlink {
                return Err(Errno::EOPNOTSUPP);
            }
            self.host().chmod(file.fd(), mode & 0o7777)?;
        }
        // A change of size sets the times on the host itself.
        if (change.atime.is_some() || change.mtime.is_some()) && change.size.is_none() {
            self.host().utimens(file.fd(), b"", change.atime, change.mtime)?;
        }
        let mut stat = self.stat.lock();
        stat.uid = change.uid.unwrap_or(stat.uid);
        stat.gid = change.gid.unwrap_or(stat.gid);
        if let Some(mode) = change.mode {
            stat.mode = stat.mode & !0o7777 | mode & 0o7777;
        }
        if stat.mode & (S_ISUID | S_ISGID) != 0 {
            // The host may have taken these bits.
            self.looked.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn no_exec(&self) -> bool {
        self.on_no_exec()
    }

    fn lookup(&self, _caller: &dyn Caller, name: &[u8]) -> Result<Arc<dyn Inode>> {
        // Where only guests change names, what one was found to be a moment ago it is still.
        match self.shared.looks.find(self, name).filter(|_| !self.shared.fresh && !self.hidden) {
            Some(stat) => Ok(self.adopt(stat, name)?),
            None => Ok(self.child(name)?),
        }
    }

    fn lookup_to_open(&self, caller: &dyn Caller, name: &[u8]) -> Result<Arc<dyn Inode>> {
        match self.shared.looks.find(self, name) {
            Some(stat) => Ok(self.adopt(stat, name)?),
            None => self.lookup(caller, name),
        }
    }

    fn cache_names(&self) -> bool {
        !self.shared.fresh
    }

    fn checks_names(&self) -> bool {
        self.shared.fresh
    }

    fn check_names(&self, names: &[u8], file: &Arc<dyn Inode>) -> bool {
        let Ok(file) = host_inode(file) else { return false };
        let Ok(dir) = self.any_fd() else { return false };
        let moment = Moment::now();
        match self.host().stat_at(dir.fd(), names) {
            Ok(stat) if file.is(&stat) => {
                file.saw_at(stat, moment);
                if file.kind == FileKind::Directory {
                    self.shared.ways.note(self, names, file, moment);
                } else if file.several_names.load(Ordering::Relaxed) {
                    self.found_below(names, file);
                }
                true
            }
            _ => false,
        }
    }

    fn checked_lately(&self, names: &[u8], dir: &Arc<dyn Inode>) -> bool {
        host_inode(dir).is_ok_and(|dir| self.led_lately(names, dir))
    }

    fn stat_uncached(&self, name: &[u8], attr: &mut Attr) -> Result<bool> {
        if self.hidden {
            return Ok(false);
        }
        let dir = self.any_fd()?;
        let moment = Moment::now();
        let stat = self.host().stat_at(dir.fd(), name)?;
        self.shared.looks.note(self, name, &stat, moment);
        let kind = FileKind::of_mode(stat.mode);
        // A file with several names may have changed under another one, and what is on another device may be hidden.
        let plain = stat.dev == self.id().0 && (stat.nlink == 1 || kind == Some(FileKind::Directory));
        if plain {
            *attr = self.convert(&stat);
        }
        Ok(plain)
    }

    fn outlives_name(&self) -> Result<()> {
        self.pin()
    }

    fn create(&self, name: &[u8], mode: u32, rdev: u64, cred: &Cred) -> Result<Arc<dyn Inode>> {
        let _change = self.change()?;
        let dir = self.any_fd()?;
        let (mode, gid) = inherit(&self.perm()?, mode, cred);
        let since = self.shared.machine.clock().realtime();
        match FileKind::of_mode(mode) {
            Some(FileKind::Directory) => self.host().mkdir(dir.fd(), name, mode & 0o7777)?,
            Some(FileKind::Regular) => {
                let open = flags::O_CREAT | flags::O_EXCL | flags::O_RDWR | flags::O_NOFOLLOW;
                let fd = self.shared.open(&dir, name, open, mode & 0o7777, BENEATH)?;
                let inode = self.made(&fd, name, mode, gid, cred)?;
                inode.fds.lock().made = Some(fd);
                self.shared.opened(&inode.this);
                return Ok(inode);
            }
            Some(_) => self.host().mknod(dir.fd(), name, mode, rdev)?,
            None => return Err(Errno::EINVAL),
        }
        Ok(self.made_here(name, mode, gid, cred, since)?)
    }

    fn symlink(&self, name: &[u8], target: &[u8], cred: &Cred) -> Result<Arc<dyn Inode>> {
        let _change = self.change()?;
        let dir = self.any_fd()?;
        let since = self.shared.machine.clock().realtime();
        self.host().symlink(target, dir.fd(), name)?;
        let mode = FileKind::Symlink as u32 | 0o777;
        let (_, gid) = inherit(&self.perm()?, mode, cred);
        Ok(self.made_here(name, mode, gid, cred, since)?)
    }

    fn link(&self, name: &[u8], target: &Arc<dyn Inode>) -> Result<()> {
        let _change = self.change()?;
        let target = host_inode(target)?;
        if !Arc::ptr_eq(&target.shared, &self.shared) {
            return Err(Errno::EXDEV);
        }
        let (old_dir, old) = target.dir_and_name()?;
        let stat = self.host().stat_at(old_dir.fd(), &old)?;
        if (stat.dev, stat.ino) != target.id() {
            return Err(Errno::ENOENT);
        }
        self.host().link(old_dir.fd(), &old, self.any_fd()?.fd(), name)?;
        target.note_several_names();
        Ok(())
    }

    fn unlink(&self, name: &[u8], dir: bool) -> Result<()> {
        let _change = self.change()?;
        self.host().unlink(self.any_fd()?.fd(), name, dir)?;
        if dir {
            EVENTS.advance();
        }
        Ok(())
    }

    fn unlink_unseen(&self, name: &[u8]) -> Option<Result<()>> {
        // A file that has been met under several names may believe this one to be its own.
        if !self.shared.fresh || !self.shared.writable || self.shared.several_names.load(Ordering::Relaxed) {
            return None;
        }
        let _change = self.change().ok()?;
        Some(self.any_fd().and_then(|dir| self.host().unlink(dir.fd(), name, false)))
    }

    fn rename(&self, old: &[u8], new_dir: &Arc<dyn Inode>, new: &[u8], change: u32) -> Result<()> {
        let _change = self.change()?;
        let to = host_inode(new_dir)?;
        if !Arc::ptr_eq(&to.shared, &self.shared) {
            return Err(Errno::EXDEV);
        }
        self.host().rename(self.any_fd()?.fd(), old, to.any_fd()?.fd(), new, change)?;
        // Another bind may show the same directories.
        EVENTS.advance();
        to.settle_in(new);
        if change & crate::vfs::rename::EXCHANGE != 0 {
            self.settle_in(old);
        }
        Ok(())
    }

    fn tmpfile(&self, mode: u32, cred: &Cred, linkable: bool) -> Result<Arc<dyn Inode>> {
        let _change = self.change()?;
        // The host links by name, and this file has none; the program then makes a named one.
        if linkable {
            return Err(Errno::EOPNOTSUPP);
        }
        let dir = self.any_fd()?;
        let (mode, gid) = inherit(&self.perm()?, mode, cred);
        let open = flags::O_TMPFILE | flags::O_EXCL | flags::O_RDWR;
        let fd = self.shared.open(&dir, b".", open, mode & 0o7777, BENEATH)?;
        let inode = self.made(&fd, b"", mode, gid, cred)?;
        {
            let mut fds = inode.fds.lock();
            fds.read = Some(fd);
            fds.pinned = true;
        }
        Ok(inode)
    }

    fn readdir(&self, _caller: &dyn Caller, from: u64, emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        let mut at = 0;
        self.list(&mut |ino, kind, name| {
            at += 1;
            at <= from || emit(&DirEntry { ino, next: at, kind, name })
        })
    }

    fn readlink(&self, _caller: &dyn Caller) -> Result<Vec<u8>> {
        if self.kind == FileKind::Symlink { self.target() } else { Err(Errno::EINVAL) }
    }

    fn open(self: Arc<Self>, caller: &dyn Caller, open: u32) -> Result<Arc<dyn File>> {
        match self.kind {
            FileKind::Directory => {
                self.reader()?;
                Ok(Arc::new(Snapshot::new(self)))
            }
            FileKind::Regular => Ok(Arc::new(file::HostRegular::open(self, caller, open)?)),
            _ => Err(Errno::ENXIO),
        }
    }

    fn open_by_names(
        self: Arc<Self>,
        caller: &dyn Caller,
        open: u32,
        base: &Arc<dyn Inode>,
        names: &[u8],
    ) -> Result<Arc<dyn File>> {
        let base = host_inode(base)?;
        let reads = open & flags::O_ACCMODE == flags::O_RDONLY;
        let at_hand = {
            let fds = self.fds.lock();
            fds.pinned || fds.made.is_some() || reads && fds.read.is_some()
        };
        if at_hand {
            let this: Arc<dyn Inode> = self.clone();
            return if base.check_names(names, &this) { self.open(caller, open) } else { Err(Errno::ESTALE) };
        }
        if reads {
            let directory = if self.kind == FileKind::Directory { flags::O_DIRECTORY } else { 0 };
            let fd = self.open_names(base, names, flags::O_RDONLY | flags::O_NONBLOCK | directory)?;
            self.keep_reader(&fd);
            return self.open(caller, open);
        }
        let access = open & (flags::O_ACCMODE | flags::O_SYNC | flags::O_DSYNC) | flags::O_NONBLOCK;
        let fd = self.open_names(base, names, access)?;
        Ok(Arc::new(file::HostRegular::over(self, caller, fd)))
    }

    fn sync(&self) -> Result<()> {
        if !self.shared.writable || self.kind != FileKind::Directory {
            return Ok(());
        }
        self.host().fsync(self.reader()?.fd(), false)
    }

    fn sync_blocks(&self) -> bool {
        self.shared.writable && self.kind == FileKind::Directory
    }

    fn busy(&self) -> Option<&Busy> {
        Some(&self.busy)
    }
    fn fifo_slot(&self) -> Option<&Slot> {
        Some(&self.fifo)
    }
    fn socket_slot(&self) -> Option<&Slot> {
        Some(&self.socket)
    }

    fn get_xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.xattr(name)
    }
    fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        self.change_xattr(name, value, flags)
    }
    fn list_xattr(&self) -> Result<Vec<Vec<u8>>> {
        self.xattr_names()
    }
    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        self.drop_xattr(name)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
