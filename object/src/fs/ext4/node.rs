//! Inodes in memory.

use alloc::format;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_port::Fill;
use janua_rt::Mutex;
use rsext4::{
    DeviceNumber, DirectoryCursor, DirectoryEntryType, Ext4Error, Ext4Result, FileName, FilePermissions, InodeInfo,
    InodeMetadataUpdate, InodeNumber, MutationContext, RenameOptions, SpecialInodeKind, UnlinkOutcome, XattrNamespace,
    XattrSetMode,
};

use super::data::Data;
use super::device::{Times, timestamp};
use super::file::DiskFile;
use super::{BLOCK, Core, Shared, back};
use crate::caller::{Caller, Cred};
use crate::file::{DirEntry, File};
use crate::vfs::access::{inherit, without_privileges};
use crate::vfs::directory::Snapshot;
use crate::vfs::inode::{Attr, FileFlags, FileKind, Inode, Perm, SetAttr};
use crate::vfs::remembered::changing;
use crate::vfs::{Busy, Slot, device, rename};

/// A day, after which reading updates a relatime access time anyway.
const DAY: i64 = 24 * 3600 * 1_000_000_000;
/// Directory entries read at a time.
const ENTRIES: usize = 128;

struct Meta {
    /// Type and permission bits.
    mode: u32,
    uid: u32,
    gid: u32,
    nlink: u32,
    /// Bytes; a regular file's is with its data.
    size: u64,
    /// Units of 512 bytes; `None`: to be asked for.
    blocks: Option<u64>,
    atime: i64,
    mtime: i64,
    ctime: i64,
    btime: i64,
    /// The disk does not have these times, and perhaps the mode, yet.
    stale: bool,
}

impl Meta {
    fn times(&self) -> Times {
        [self.atime, self.mtime, self.ctime, self.btime]
    }

    fn perm(&self) -> Perm {
        Perm { mode: self.mode, uid: self.uid, gid: self.gid, flags: FileFlags::empty() }
    }

    /// Takes over what a change of names has made of the inode.
    fn absorb(&mut self, info: &InodeInfo) {
        self.nlink = info.links.into();
        self.size = info.size;
        self.blocks = Some(info.blocks);
    }
}

enum Body {
    Regular(Mutex<Data>),
    Directory,
    /// `None`: not yet read.
    Symlink(Mutex<Option<Arc<[u8]>>>),
    Special {
        fifo: Slot,
        socket: Slot,
    },
}

/// An inode in memory. There is one for each inode of the disk that is in use.
pub struct Node {
    shared: Arc<Shared>,
    this: Weak<Node>,
    number: InodeNumber,
    kind: FileKind,
    rdev: u64,
    meta: Mutex<Meta>,
    body: Body,
    /// Held by who writes to a file or changes its size, so that one write is whole before the next; user memory may be touched with it.
    turn: Mutex<()>,
    /// All three execute bits are set. Written with `meta` locked.
    open_to_all: AtomicBool,
    /// Its room has been given back already.
    reaped: AtomicBool,
    busy: Busy,
}

fn kind_of(info: &InodeInfo) -> Option<FileKind> {
    FileKind::of_mode(info.mode.into())
}

impl Node {
    /// The inode in memory. `Corrupted` for a type no file has.
    pub fn new(shared: &Arc<Shared>, info: &InodeInfo, times: Times) -> Ext4Result<Arc<Node>> {
        let kind = kind_of(info).ok_or_else(Ext4Error::corrupted)?;
        // The crate would make room for a target of any size.
        if kind == FileKind::Symlink && info.size >= BLOCK as u64 {
            return Err(Ext4Error::corrupted());
        }
        let body = |fill: Weak<dyn Fill>| match kind {
            FileKind::Regular => Body::Regular(Mutex::new(Data::new(info.number, info.size, fill))),
            FileKind::Directory => Body::Directory,
            FileKind::Symlink => Body::Symlink(Mutex::new(None)),
            _ => Body::Special { fifo: Slot::new(), socket: Slot::new() },
        };
        let [atime, mtime, ctime, btime] = times;
        let mode = u32::from(info.mode);
        Ok(Arc::new_cyclic(|this| Node {
            shared: shared.clone(),
            this: this.clone(),
            number: info.number,
            kind,
            rdev: info.device_number.map_or(0, |number| device::number(number.major(), number.minor())),
            meta: Mutex::new(Meta {
                mode,
                uid: info.uid,
                gid: info.gid,
                nlink: info.links.into(),
                size: info.size,
                blocks: Some(info.blocks),
                atime,
                mtime,
                ctime,
                btime,
                stale: false,
            }),
            body: body(this.clone()),
            turn: Mutex::default(),
            open_to_all: AtomicBool::new(mode & 0o111 == 0o111),
            reaped: AtomicBool::new(false),
            busy: Busy::new(),
        }))
    }

    pub fn number(&self) -> InodeNumber {
        self.number
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The pages. EINVAL for anything but a regular file.
    pub fn data(&self) -> Result<&Mutex<Data>> {
        match &self.body {
            Body::Regular(data) => Ok(data),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Whose turn it is to change the file. Taken before any other lock of the file system.
    pub fn turn(&self) -> &Mutex<()> {
        &self.turn
    }

    /// Whether the file has lost its last name.
    pub fn is_gone(&self) -> bool {
        self.meta.lock().nlink == 0
    }

    /// The file was read.
    pub fn accessed(&self, relatime: bool) {
        let now = self.shared.now();
        {
            let mut meta = self.meta.lock();
            let due = meta.atime <= meta.mtime || meta.atime <= meta.ctime || now - meta.atime >= DAY;
            if !due && relatime {
                return;
            }
            meta.atime = now;
            meta.stale = true;
        }
        self.mark_dirty();
    }

    /// The file was written, or cut.
    pub fn wrote(&self, keeps_privileges: bool) {
        let now = self.shared.now();
        {
            let mut meta = self.meta.lock();
            meta.mtime = now;
            meta.ctime = now;
            meta.blocks = None;
            meta.stale = true;
            if !keeps_privileges && let Some(mode) = without_privileges(meta.mode) {
                meta.mode = mode;
            }
        }
        self.mark_dirty();
    }

    /// There is something to write back.
    pub fn mark_dirty(&self) {
        if let Some(this) = self.this.upgrade() {
            self.shared.dirty.lock().entry(self.number.raw()).or_insert(this);
        }
    }

    /// Whether it may become dirty at any time unnoticed.
    pub fn stays_dirty(&self) -> bool {
        self.data().is_ok_and(|data| data.lock().is_stored_to())
    }

    /// Writes pages and times back; with `mapped` also pages a shared mapping may have changed.
    pub fn write_back(&self, mapped: bool) -> Result<()> {
        // Held from the last page to the end, and who comes before waits for who writes: nobody takes the file for written before it is.
        let mut held = None;
        if let Body::Regular(data) = &self.body {
            let data = held.insert(data.lock());
            let flushed = back::flush(data, &self.shared, mapped, false);
            if data.take_rewritten() {
                self.meta.lock().stale = true;
            }
            flushed?;
        }
        let (update, times, ctime) = {
            let mut meta = self.meta.lock();
            if !meta.stale {
                return Ok(());
            }
            meta.stale = false;
            let update = InodeMetadataUpdate {
                permissions: (self.kind != FileKind::Symlink).then_some(permissions(meta.mode)).transpose()?,
                atime: Some(timestamp(meta.atime)),
                mtime: Some(timestamp(meta.mtime)),
                ..InodeMetadataUpdate::default()
            };
            (update, meta.times(), meta.ctime)
        };
        let result = self.shared.change_at(ctime, |core, _| {
            core.remember(self.number.raw(), times);
            core.fs.update_inode_metadata(self.number, update)
        });
        let mut meta = self.meta.lock();
        match result {
            Ok(info) => meta.blocks = Some(info.blocks),
            Err(errno) => {
                meta.stale = true;
                return Err(errno);
            }
        }
        Ok(())
    }

    /// Lets the pages go, unless that costs something; with `mapped` those of a file that is mapped.
    pub fn let_go(&self, mapped: bool) {
        // The holder of the lock is using the pages.
        if let Body::Regular(data) = &self.body
            && let Some(mut data) = data.try_lock()
        {
            data.let_go(&self.shared, mapped);
        }
    }

    /// What was never written back is not wanted any more.
    pub fn discard(&self) {
        if let Body::Regular(data) = &self.body {
            let mut data = data.lock();
            back::settle(&mut data, &self.shared, true);
            data.discard(&self.shared);
        }
        self.meta.lock().stale = false;
    }

    /// Somebody else gives its room back.
    pub fn forget(&self) {
        self.reaped.store(true, Ordering::Relaxed);
    }

    /// Takes over what a change of names has made of this inode, at `now`.
    fn changed(&self, core: &mut Core, now: i64, contents: bool) -> Ext4Result<()> {
        let info = core.fs.inode(self.number)?;
        let mut meta = self.meta.lock();
        if self.kind == FileKind::Regular {
            meta.nlink = info.links.into();
        } else {
            meta.absorb(&info);
        }
        if contents {
            meta.mtime = now;
        }
        meta.ctime = now;
        core.remember(self.number.raw(), meta.times());
        Ok(())
    }

    /// A name of a file is gone.
    fn lost(&self, core: &mut Core, outcome: UnlinkOutcome, now: i64) -> Ext4Result<()> {
        match self.shared.known(outcome.inode) {
            Some(node) => {
                let mut meta = node.meta.lock();
                meta.nlink = outcome.remaining_links.into();
                meta.ctime = now;
                core.remember(outcome.inode.raw(), meta.times());
                Ok(())
            }
            None if outcome.requires_reap() => {
                core.times.remove(&outcome.inode.raw());
                core.fs.reap_unlinked_inode(outcome.inode)
            }
            None => Ok(()),
        }
    }

    /// Makes an inode by `make`, which is given the name and the owners.
    fn born(
        &self,
        mode: u32,
        cred: &Cred,
        make: impl FnOnce(&mut Core, MutationContext, FilePermissions) -> Ext4Result<InodeInfo>,
    ) -> Result<Arc<Node>> {
        let (mode, gid) = inherit(&self.meta.lock().perm(), mode, cred);
        let permissions = permissions(mode)?;
        self.shared.make_room(1);
        self.shared.change(|core, now| {
            let info = make(core, MutationContext::new(cred.fsuid, gid, 0, 0), permissions)?;
            let node = self.shared.node(core, &info)?;
            {
                let mut meta = node.meta.lock();
                (meta.atime, meta.mtime, meta.ctime, meta.btime) = (now, now, now, now);
                core.remember(info.number.raw(), meta.times());
            }
            self.changed(core, now, true)?;
            Ok(node)
        })
    }
}

fn permissions(mode: u32) -> Result<FilePermissions> {
    FilePermissions::new((mode & 0o7777) as u16).map_err(super::errno)
}

fn node_of(inode: &Arc<dyn Inode>) -> Result<&Node> {
    inode.as_any().downcast_ref::<Node>().ok_or(Errno::EXDEV)
}

/// The name of a DT_* value.
fn entry_kind(kind: DirectoryEntryType) -> u8 {
    match kind {
        DirectoryEntryType::Unknown => 0,
        DirectoryEntryType::RegularFile => FileKind::Regular.dirent(),
        DirectoryEntryType::Directory => FileKind::Directory.dirent(),
        DirectoryEntryType::CharacterDevice => FileKind::CharDevice.dirent(),
        DirectoryEntryType::BlockDevice => FileKind::BlockDevice.dirent(),
        DirectoryEntryType::Fifo => FileKind::Fifo.dirent(),
        DirectoryEntryType::Socket => FileKind::Socket.dirent(),
        DirectoryEntryType::Symlink => FileKind::Symlink.dirent(),
    }
}

/// Extended attributes: the prefixes of their names and what the disk has for each.
const PREFIXES: [(&[u8], XattrNamespace); 3] =
    [(b"user.", XattrNamespace::User), (b"trusted.", XattrNamespace::Trusted), (b"security.", XattrNamespace::Security)];
/// EOPNOTSUPP for a name space the disk has no number for, and for access control lists: who opens a file is judged by its mode alone, so
/// none is kept that would decide otherwise (as Linux is without CONFIG_EXT4_FS_POSIX_ACL).
fn attribute(name: &[u8]) -> Result<(XattrNamespace, &[u8])> {
    let found = PREFIXES.iter().find_map(|(prefix, space)| Some((*space, name.strip_prefix(*prefix)?)));
    found.ok_or(Errno::EOPNOTSUPP)
}

/// The file system reports "not found" for attributes too.
fn no_data(errno: Errno) -> Errno {
    if errno == Errno::ENOENT { Errno::ENODATA } else { errno }
}

impl Inode for Node {
    fn kind(&self) -> FileKind {
        self.kind
    }

    fn attr(&self) -> Result<Attr> {
        let data = match &self.body {
            Body::Regular(data) => {
                let data = data.lock();
                Some((data.size(), data.unplaced() * (BLOCK / 512) as u64))
            }
            _ => None,
        };
        let known = self.meta.lock().blocks;
        let blocks = match known {
            Some(blocks) => blocks,
            None => {
                let blocks = self.shared.look(|core| core.fs.inode(self.number))?.blocks;
                // Pages still to be written may change it again.
                let settled = data.is_none_or(|(_, unplaced)| unplaced == 0);
                self.meta.lock().blocks = settled.then_some(blocks);
                blocks
            }
        };
        let meta = self.meta.lock();
        let (size, unplaced) = data.unwrap_or((meta.size, 0));
        Ok(Attr {
            dev: self.shared.dev,
            ino: self.number.raw().into(),
            mode: meta.mode,
            nlink: meta.nlink,
            uid: meta.uid,
            gid: meta.gid,
            rdev: self.rdev,
            size,
            blksize: BLOCK as u32,
            blocks: blocks + unplaced,
            atime: meta.atime,
            mtime: meta.mtime,
            ctime: meta.ctime,
            btime: meta.btime,
            flags: None,
        })
    }

    fn perm(&self) -> Result<Perm> {
        Ok(self.meta.lock().perm())
    }

    fn searchable_by_all(&self) -> bool {
        self.open_to_all.load(Ordering::Acquire)
    }

    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        if let Some(size) = change.size {
            let _turn = self.turn.lock();
            Data::truncate(&mut self.data()?.lock(), &self.shared, size)?;
        }
        let at = change.ctime.unwrap_or_else(|| self.shared.now());
        self.shared.change_at(at, |core, _| {
            let mut meta = self.meta.lock();
            let mode = change.mode.map_or(meta.mode, |mode| meta.mode & !0o7777 | mode & 0o7777);
            let (uid, gid) = (change.uid.unwrap_or(meta.uid), change.gid.unwrap_or(meta.gid));
            let (atime, mtime) = (change.atime.unwrap_or(meta.atime), change.mtime.unwrap_or(meta.mtime));
            if (uid, gid) != (meta.uid, meta.gid) {
                // The crate takes privileges away with the owner; the caller has decided about those, and gives them below.
                let owner = Some((uid, gid));
                core.fs.update_inode_metadata(self.number, InodeMetadataUpdate { owner, ..Default::default() })?;
            }
            let permissions = match self.kind {
                FileKind::Symlink => None,
                _ => Some(FilePermissions::new((mode & 0o7777) as u16)?),
            };
            let update = InodeMetadataUpdate {
                permissions,
                atime: Some(timestamp(atime)),
                mtime: Some(timestamp(mtime)),
                ..Default::default()
            };
            let info = core.fs.update_inode_metadata(self.number, update)?;
            if self.kind == FileKind::Directory && mode != meta.mode {
                self.open_to_all.store(false, Ordering::Release);
                changing();
            }
            (meta.mode, meta.uid, meta.gid, meta.atime, meta.mtime, meta.ctime) = (mode, uid, gid, atime, mtime, at);
            meta.blocks = Some(info.blocks);
            meta.stale = false;
            self.open_to_all.store(mode & 0o111 == 0o111, Ordering::Release);
            core.remember(self.number.raw(), meta.times());
            Ok(())
        })
    }

    fn lookup(&self, _caller: &dyn Caller, name: &[u8]) -> Result<Arc<dyn Inode>> {
        if self.kind != FileKind::Directory {
            return Err(Errno::ENOTDIR);
        }
        let node = self.shared.look(|core| {
            let info = core.fs.lookup_child(self.number, FileName::new(name)?)?;
            info.map(|info| self.shared.node(core, &info)).transpose()
        })?;
        Ok(node.ok_or(Errno::ENOENT)?)
    }

    fn cache_names(&self) -> bool {
        true
    }

    fn create(&self, name: &[u8], mode: u32, rdev: u64, cred: &Cred) -> Result<Arc<dyn Inode>> {
        let kind = FileKind::of_mode(mode).ok_or(Errno::EINVAL)?;
        let parent = self.number;
        let node = self.born(mode, cred, |core, context, permissions| {
            let name = FileName::new(name)?;
            let number = || DeviceNumber::new(device::major(rdev), device::minor(rdev));
            let special = match kind {
                FileKind::Regular => return core.fs.create_regular_file(context, parent, name, permissions),
                FileKind::Directory => return core.fs.create_directory(context, parent, name, permissions),
                FileKind::Symlink => return Err(Ext4Error::invalid_input()),
                FileKind::CharDevice => SpecialInodeKind::CharacterDevice(number()?),
                FileKind::BlockDevice => SpecialInodeKind::BlockDevice(number()?),
                FileKind::Fifo => SpecialInodeKind::Fifo,
                FileKind::Socket => SpecialInodeKind::Socket,
            };
            core.fs.create_special_inode(context, parent, name, permissions, special)
        })?;
        Ok(node)
    }

    fn symlink(&self, name: &[u8], target: &[u8], cred: &Cred) -> Result<Arc<dyn Inode>> {
        let node = self.born(FileKind::Symlink as u32 | 0o777, cred, |core, context, _| {
            core.fs.create_symlink(context, self.number, FileName::new(name)?, target)
        })?;
        Ok(node)
    }

    fn link(&self, name: &[u8], target: &Arc<dyn Inode>) -> Result<()> {
        let target = node_of(target)?;
        if !Arc::ptr_eq(&target.shared, &self.shared) {
            return Err(Errno::EXDEV);
        }
        if target.is_gone() {
            return Err(Errno::ENOENT);
        }
        self.shared.make_room(1);
        self.shared.change(|core, now| {
            core.fs.hard_link(target.number, self.number, FileName::new(name)?)?;
            target.changed(core, now, false)?;
            self.changed(core, now, true)
        })
    }

    fn unlink(&self, name: &[u8], dir: bool) -> Result<()> {
        self.shared.change(|core, now| {
            let name = FileName::new(name)?;
            let outcome = match dir {
                true => core.fs.remove_empty_directory(self.number, name)?,
                false => core.fs.unlink(self.number, name)?,
            };
            self.changed(core, now, true)?;
            self.lost(core, outcome, now)
        })
    }

    fn rename(&self, old: &[u8], new_dir: &Arc<dyn Inode>, new: &[u8], flags: u32) -> Result<()> {
        let to = node_of(new_dir)?;
        if !Arc::ptr_eq(&to.shared, &self.shared) {
            return Err(Errno::EXDEV);
        }
        let options = match flags {
            0 => RenameOptions::REPLACE,
            rename::NOREPLACE => RenameOptions::NO_REPLACE,
            rename::EXCHANGE => RenameOptions::EXCHANGE,
            rename::WHITEOUT => RenameOptions::WHITEOUT,
            flags if flags == rename::WHITEOUT | rename::NOREPLACE => RenameOptions::WHITEOUT_NO_REPLACE,
            _ => return Err(Errno::EINVAL),
        };
        self.shared.make_room(1);
        self.shared.change(|core, now| {
            let (old, new) = (FileName::new(old)?, FileName::new(new)?);
            let outcome = core.fs.rename(self.number, old, to.number, new, options)?;
            self.changed(core, now, true)?;
            to.changed(core, now, true)?;
            let moved = [(to.number, new), (self.number, old)];
            for (dir, name) in &moved[..if flags & rename::EXCHANGE != 0 { 2 } else { 1 }] {
                let info = core.fs.lookup_child(*dir, *name)?.ok_or_else(Ext4Error::not_found)?;
                if let Some(node) = self.shared.known(info.number) {
                    node.changed(core, now, false)?;
                    // The crate need not have given it the time.
                    node.meta.lock().stale = true;
                    node.mark_dirty();
                }
            }
            outcome.replaced.map_or(Ok(()), |outcome| self.lost(core, outcome, now))
        })
    }

    fn tmpfile(&self, mode: u32, cred: &Cred, linkable: bool) -> Result<Arc<dyn Inode>> {
        if linkable {
            // A name for a file that never had one is more than the crate can give.
            return Err(Errno::EOPNOTSUPP);
        }
        let node = self.born(mode, cred, |core, context, permissions| {
            // Named for a moment in which nobody else can look.
            let mut turn = 0u32;
            let (name, mut info) = loop {
                let name = format!(".janua-nameless-{turn}").into_bytes();
                match core.fs.create_regular_file(context, self.number, FileName::new(&name)?, permissions) {
                    Err(error) if error.kind() == rsext4::Ext4ErrorKind::AlreadyExists => turn += 1,
                    other => break (name, other?),
                }
            };
            info.links = core.fs.unlink(self.number, FileName::new(&name)?)?.remaining_links;
            Ok(info)
        })?;
        Ok(node)
    }

    fn readdir(&self, _caller: &dyn Caller, from: u64, emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        // Listed in one piece (`Snapshot`): the places of a hashed directory are no numbers that could be returned.
        let mut entries = Vec::new();
        let mut fits = true;
        self.shared.look(|core| {
            let mut reader = core.fs.open_directory_reader(self.number)?;
            let mut cursor = DirectoryCursor::Start;
            loop {
                let more = core.fs.read_directory_with_reader(&mut reader, cursor, ENTRIES)?;
                let Some(last) = more.last() else { return Ok(()) };
                cursor = last.next_cursor;
                fits = entries.try_reserve(more.len()).is_ok();
                if !fits {
                    return Ok(());
                }
                entries.extend(more);
            }
        })?;
        if !fits {
            return Err(Errno::ENOMEM);
        }
        entries.retain(|entry| entry.name != b"." && entry.name != b"..");
        for (entry, next) in entries.iter().zip(1..).skip(usize::try_from(from).unwrap_or(usize::MAX)) {
            let (ino, kind) = (entry.inode.raw().into(), entry_kind(entry.file_type));
            if !emit(&DirEntry { ino, next, kind, name: &entry.name }) {
                break;
            }
        }
        Ok(())
    }

    fn readlink(&self, _caller: &dyn Caller) -> Result<Vec<u8>> {
        let Body::Symlink(target) = &self.body else { return Err(Errno::EINVAL) };
        let mut target = target.lock();
        if let Some(target) = &*target {
            return Ok(target.to_vec());
        }
        let mut bytes = vec![0; BLOCK];
        let n = self.shared.look(|core| core.fs.read_inode(self.number, 0, &mut bytes))?;
        bytes.truncate(n);
        *target = Some(Arc::from(&bytes[..]));
        Ok(bytes)
    }

    fn open(self: Arc<Self>, caller: &dyn Caller, flags: u32) -> Result<Arc<dyn File>> {
        match &self.body {
            Body::Directory => Ok(Arc::new(Snapshot::new(self))),
            Body::Regular(_) => Ok(Arc::new(DiskFile::new(self, caller, flags))),
            _ => Err(Errno::ENXIO),
        }
    }

    fn sync(&self) -> Result<()> {
        self.write_back(true)?;
        self.shared.commit()
    }

    fn sync_blocks(&self) -> bool {
        true
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
        let (space, name) = attribute(name)?;
        self.shared.look(|core| core.fs.get_xattr(self.number, space, name)).map_err(no_data)
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let (space, name) = attribute(name)?;
        let mode = match flags {
            0 => XattrSetMode::Upsert,
            1 => XattrSetMode::Create,
            2 => XattrSetMode::Replace,
            _ => return Err(Errno::EINVAL),
        };
        self.shared.make_room(1);
        let set = self.shared.change(|core, now| {
            core.fs.set_xattr(self.number, space, name, value, mode)?;
            self.changed(core, now, false)
        });
        set.map_err(no_data)
    }

    fn list_xattr(&self) -> Result<Vec<Vec<u8>>> {
        let names = self.shared.look(|core| core.fs.list_xattrs(self.number))?;
        let whole = |name: rsext4::XattrName| {
            let (prefix, _) = PREFIXES.iter().find(|(_, space)| *space == name.namespace)?;
            Some([*prefix, &name.name].concat())
        };
        Ok(names.into_iter().filter_map(whole).collect())
    }

    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        let (space, name) = attribute(name)?;
        let removed = self.shared.change(|core, now| {
            core.fs.remove_xattr(self.number, space, name)?;
            self.changed(core, now, false)
        });
        removed.map_err(no_data)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Fill for Node {
    fn fill(&self, page: u64) -> Result<()> {
        Data::fault(&mut self.data()?.lock(), &self.shared, page)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Body::Regular(data) = &mut self.body {
            data.get_mut().discard(&self.shared);
        }
        let unreachable = self.meta.get_mut().nlink == 0 && !self.shared.read_only;
        if unreachable && !*self.reaped.get_mut() {
            // Freeing its blocks is work for the disk, which does not belong wherever the last user happens to go.
            self.shared.dead.lock().push(self.number);
            self.shared.ring();
        }
    }
}
