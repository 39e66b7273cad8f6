//! A file in memory as the name space sees it: what each operation on an inode does here.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_rt::Mutex;

use crate::caller::{Caller, Cred};
use crate::file::{DirEntry, File};
use crate::vfs::access::inherit;
use crate::vfs::directory::{Directory, Snapshot};
use crate::vfs::inode::{Attr, Contents, FileFlags, FileKind, Inode, Perm, SetAttr};
use crate::vfs::remembered::changing;
use crate::vfs::{Busy, Slot};

use super::table::Entry;
use super::{Body, Node, file, node_of};

impl Inode for Node {
    fn kind(&self) -> FileKind {
        self.kind
    }

    fn known_attr(&self) -> Option<Attr> {
        let (size, blocks) = match &self.body {
            Body::Regular(data) => {
                let data = data.try_lock()?;
                (data.size(), data.known_blocks(self.lower.as_ref().map_or(0, |lower| lower.blocks))?)
            }
            Body::Symlink(target) => {
                let below = self.lower.as_ref().map_or(0, |lower| lower.size);
                (target.try_lock()?.as_ref().map_or(below, |target| target.len() as u64), 0)
            }
            Body::Directory(table) => match &self.lower {
                Some(lower) => (lower.size, lower.blocks),
                None => (Node::size_of(&*table.try_lock()?), 0),
            },
            Body::Special { .. } => (0, 0),
        };
        Some(self.attr_with(&*self.meta.try_lock()?, size, blocks))
    }

    fn id(&self) -> Option<(u64, u64)> {
        Some((self.shared.dev, self.ino))
    }

    fn contents(&self) -> Option<Contents> {
        let Body::Regular(data) = &self.body else { return None };
        let (size, changes) = {
            let data = data.lock();
            (data.size(), data.changes()?)
        };
        Some(Contents { changes, ..Contents::from(&self.attr_with(&self.meta.lock(), size, 0)) })
    }

    fn known_target(&self) -> Option<Arc<[u8]>> {
        match &self.body {
            Body::Symlink(target) => target.try_lock()?.clone(),
            _ => None,
        }
    }

    fn ino(&self) -> Result<u64> {
        Ok(self.ino)
    }

    fn attr(&self) -> Result<Attr> {
        let (size, blocks) = match &self.body {
            Body::Regular(data) => {
                let data = data.lock();
                (data.size(), data.blocks(self.lower.as_ref().map_or(0, |lower| lower.blocks)))
            }
            Body::Symlink(target) => {
                let below = self.lower.as_ref().map_or(0, |lower| lower.size);
                (target.lock().as_ref().map_or(below, |target| target.len() as u64), 0)
            }
            Body::Directory(table) => match &self.lower {
                Some(lower) => (lower.size, lower.blocks),
                None => (Node::size_of(&table.lock()), 0),
            },
            Body::Special { .. } => (0, 0),
        };
        Ok(self.attr_with(&self.meta.lock(), size, blocks))
    }

    fn perm(&self) -> Result<Perm> {
        Ok(Node::perm_of(&self.meta.lock()))
    }

    fn searchable_by_all(&self) -> bool {
        self.open_to_all.load(Ordering::Acquire)
    }

    fn before_size(&self, caller: &dyn Caller, size: u64) -> Result<()> {
        self.keep();
        self.data()?.lock().own(&self.shared.space, size, &|| caller.is_killed())
    }

    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        self.keep();
        if let Some(size) = change.size {
            self.data()?.change().truncate(&self.shared.space, size)?;
        }
        let mut meta = self.meta.lock();
        if change.size.is_some() || change.uid.is_some() || change.gid.is_some() {
            self.drop_capability(&mut meta);
        }
        if let Some(mode) = change.mode {
            if self.kind == FileKind::Directory {
                self.open_to_all.store(false, Ordering::Release);
                changing();
            }
            meta.mode = meta.mode & !0o7777 | mode & 0o7777;
            self.open_to_all.store(mode & 0o111 == 0o111, Ordering::Release);
        }
        meta.uid = change.uid.unwrap_or(meta.uid);
        meta.gid = change.gid.unwrap_or(meta.gid);
        meta.atime = change.atime.unwrap_or(meta.atime);
        meta.mtime = change.mtime.unwrap_or(meta.mtime);
        meta.ctime = change.ctime.unwrap_or(meta.ctime);
        Ok(())
    }

    fn flags(&self) -> Option<FileFlags> {
        Some(self.meta.lock().flags)
    }

    fn set_flags(&self, flags: FileFlags) -> Result<()> {
        self.keep();
        let mut meta = self.meta.lock();
        meta.flags = flags;
        meta.ctime = self.shared.now();
        Ok(())
    }

    fn no_exec(&self) -> bool {
        self.on_no_exec()
    }

    fn accessed(&self, relative: bool) {
        self.note_access(relative);
    }

    fn lookup(&self, _caller: &dyn Caller, name: &[u8]) -> Result<Arc<dyn Inode>> {
        let mut table = self.table()?;
        Ok(self.find(&mut table, name)?)
    }

    fn cache_names(&self) -> bool {
        true
    }

    fn stat_uncached(&self, name: &[u8], attr: &mut Attr) -> Result<bool> {
        let Some(lower) = self.lower_dir() else { return Ok(false) };
        if self.table()?.get(name).is_some() || !lower.stat_uncached(name, attr)? {
            return Ok(false);
        }
        self.shared.adapt(attr);
        // Nobody has given it any here.
        attr.flags = Some(FileFlags::empty());
        Ok(true)
    }

    fn create(&self, name: &[u8], mode: u32, rdev: u64, cred: &Cred) -> Result<Arc<dyn Inode>> {
        let node = self.born(mode, rdev, cred)?;
        self.enter(name, &node)?;
        Ok(node)
    }

    fn symlink(&self, name: &[u8], target: &[u8], cred: &Cred) -> Result<Arc<dyn Inode>> {
        let mode = FileKind::Symlink as u32 | 0o777;
        let dir = Node::perm_of(&self.meta.lock());
        let (_, gid) = inherit(&dir, mode, cred);
        let body = Body::Symlink(Mutex::new(Some(Arc::from(target))));
        let node = Node::make(&self.shared, mode, 0, cred.fsuid, gid, body);
        node.meta.lock().flags = dir.flags & FileFlags::INHERITED;
        self.enter(name, &node)?;
        Ok(node)
    }

    fn link(&self, name: &[u8], target: &Arc<dyn Inode>) -> Result<()> {
        let target = node_of(target)?;
        if !Arc::ptr_eq(&target.shared, &self.shared) {
            return Err(Errno::EXDEV);
        }
        let node = target.this.upgrade().ok_or(Errno::ENOENT)?;
        {
            let meta = target.meta.lock();
            if meta.nlink == 0 && !target.linkable.load(Ordering::Acquire) {
                return Err(Errno::ENOENT);
            }
            if meta.nlink == u32::MAX {
                return Err(Errno::EMLINK);
            }
        }
        target.keep();
        self.enter(name, &node)?;
        target.linkable.store(false, Ordering::Release);
        target.linked(1, self.shared.now());
        Ok(())
    }

    fn unlink(&self, name: &[u8], dir: bool) -> Result<()> {
        let node = {
            let mut table = self.table()?;
            self.find(&mut table, name)?
        };
        if dir && !node.is_empty()? {
            return Err(Errno::ENOTEMPTY);
        }
        self.keep();
        // The node's own name goes now; should it be one of several, the others must lead to what it has become.
        node.keep();
        let now = self.shared.now();
        let gone = self.table()?.remove(name);
        self.touched(-i32::from(dir), now);
        node.linked(-1, now);
        drop(gone);
        Ok(())
    }

    fn rename(&self, old: &[u8], new_dir: &Arc<dyn Inode>, new: &[u8], flags: u32) -> Result<()> {
        self.rename_to(old, node_of(new_dir)?, new, flags)
    }

    fn tmpfile(&self, mode: u32, cred: &Cred, linkable: bool) -> Result<Arc<dyn Inode>> {
        if self.shared.space.machine.accounts().is_tight() {
            return Err(Errno::ENOSPC);
        }
        let node = self.born(mode, 0, cred)?;
        node.meta.lock().nlink = 0;
        node.linkable.store(linkable, Ordering::Release);
        Ok(node)
    }

    fn readdir(&self, _caller: &dyn Caller, from: u64, emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        let Some(lower) = self.lower_dir() else {
            // Collected first: `emit` writes to guest memory, which is no place to be with a lock.
            let mut at = from;
            loop {
                let batch = self.table()?.batch(at);
                let Some(last) = batch.last() else { return Ok(()) };
                at = last.0 + 1;
                for (cookie, name, node) in &batch {
                    let entry = DirEntry { ino: node.ino, next: cookie + 1, kind: node.kind.dirent(), name };
                    if !emit(&entry) {
                        return Ok(());
                    }
                }
            }
        };
        let mut at = 0;
        let mut more = true;
        let mut put = |ino: u64, kind: u8, name: &[u8]| {
            at += 1;
            more = more && (at <= from || emit(&DirEntry { ino, next: at, kind, name }));
            more
        };
        let Body::Directory(table) = &self.body else { return Err(Errno::ENOTDIR) };
        let transparent = table.lock().is_transparent();
        lower.list(&mut |ino, kind, name| {
            let ours = !transparent && matches!(table.lock().get(name), Some(Entry::Held { .. } | Entry::Whiteout));
            ours || put(ino, kind, name)
        })?;
        let mut next = 0;
        loop {
            let batch = table.lock().batch(next);
            let Some(last) = batch.last() else { return Ok(()) };
            next = last.0 + 1;
            for (_, name, node) in &batch {
                if !put(node.ino, node.kind.dirent(), name) {
                    return Ok(());
                }
            }
        }
    }

    fn readlink(&self, _caller: &dyn Caller) -> Result<Vec<u8>> {
        let Body::Symlink(target) = &self.body else { return Err(Errno::EINVAL) };
        let mut target = target.lock();
        if let Some(target) = &*target {
            return Ok(target.to_vec());
        }
        let read = self.lower.as_ref().ok_or(Errno::EINVAL)?.inode.target()?;
        *target = Some(Arc::from(&read[..]));
        Ok(read)
    }

    fn open(self: Arc<Self>, caller: &dyn Caller, flags: u32) -> Result<Arc<dyn File>> {
        match &self.body {
            Body::Directory(_) if self.lower.is_some() => Ok(Arc::new(Snapshot::new(self))),
            Body::Directory(_) => Ok(Arc::new(Directory::new(self))),
            Body::Regular(_) => Ok(Arc::new(file::MemoryFile::open(self, caller, flags)?)),
            _ => Err(Errno::ENXIO),
        }
    }

    fn busy(&self) -> Option<&Busy> {
        Some(&self.busy)
    }

    fn fifo_slot(&self) -> Option<&Slot> {
        match &self.body {
            Body::Special { fifo, .. } => Some(fifo),
            _ => None,
        }
    }

    fn socket_slot(&self) -> Option<&Slot> {
        match &self.body {
            Body::Special { socket, .. } => Some(socket),
            _ => None,
        }
    }

    fn get_xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.xattr(name)
    }
    fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        self.change_xattr(name, Some(value), flags)
    }
    fn list_xattr(&self) -> Result<Vec<Vec<u8>>> {
        self.xattr_names()
    }
    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        self.change_xattr(name, None, 0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
