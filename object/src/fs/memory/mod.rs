//! The memory file system: inodes, names and data in the kernel's memory, alone (tmpfs) or as changes over a host directory
//! (overlay).
//!
//! A [`Node`] made here is all in memory. A node that represents a file below has its attributes copied at the first look-up
//! (from then on they are this file system's: a snapshot) and its names, data and extended attributes taken from below until
//! they change. Nothing is copied up but what a change needs: a new mode costs no data, a rename of a directory moves the
//! node, which remembers what it represents.
//!
//! A file below with several names is one node whatever name leads to it, with one number and one copy, and stays one file when it
//! has changed: as with Linux's overlayfs and index=on.
//!
//! An unchanged node is forgotten with its last user. A changed one must be found again, so before its first change it is
//! *kept*: entered for good in its directory's table, and that directory in its own, up to the root.
//!
//! Lock order: a directory's table, its child's table, a file's data, `meta`, the links table. Two directories of a rename: by address.

pub(crate) mod data;
mod file;
mod inode;
mod rename;
mod space;
mod table;
pub(crate) mod turns;
mod xattr;

use alloc::collections::{BTreeMap, LinkedList};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_port::Machine;
use janua_rt::{AtomicU64, Mutex, MutexGuard};

use crate::caller::Cred;
use crate::fs::hostfs::HostInode;
use crate::vfs::access::inherit;
use crate::vfs::inode::{Attr, FileFlags, FileKind, Inode, Perm};
use crate::vfs::{Busy, NameHasher, Slot, now};

use data::Data;
use table::{Entry, Table};
use turns::Turns;

pub use data::PAGE;
pub use space::Space;

/// The first inode number of files made here; numbers of files below are smaller. Folded to 32 bits for 32-bit programs it is
/// still above those most file systems reach.
const FIRST_INO: u64 = 1 << 40 | 3 << 30;

/// What the nodes of one file system share.
pub struct Shared {
    space: Space,
    dev: u64,
    next_ino: AtomicU64,
    nodes: AtomicU64,
    /// fallocate(2) may take ranges out of files and put some in: a disk's file system can, tmpfs cannot.
    moves_ranges: bool,
    /// Files below that have several names: one node each, whatever the name; held once it has changed.
    links: Mutex<Links>,
}

type Links = HashMap<(u64, u64), (Weak<Node>, Option<Arc<Node>>), core::hash::BuildHasherDefault<NameHasher>>;

impl Shared {
    /// `limit` in pages, `u64::MAX` for none.
    pub fn new(machine: &'static dyn Machine, dev: u64, limit: u64, moves_ranges: bool) -> Arc<Shared> {
        Arc::new(Shared {
            space: Space::of_files(machine, limit),
            dev,
            next_ino: AtomicU64::new(FIRST_INO),
            nodes: AtomicU64::new(0),
            moves_ranges,
            links: Mutex::new(Links::default()),
        })
    }

    pub fn dev(&self) -> u64 {
        self.dev
    }

    /// Pages in use and their limit.
    pub fn pages(&self) -> (u64, u64) {
        self.space.pages()
    }

    /// Pages that may be taken besides, as far as the whole sandbox's limit goes.
    pub fn room(&self) -> u64 {
        self.space.room()
    }

    pub fn set_limit(&self, pages: u64) {
        self.space.set_limit(pages);
    }

    /// Inodes in memory.
    pub fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    fn now(&self) -> i64 {
        now(self.space.machine)
    }

    /// Makes the attributes of an unchanged file below those that it has here.
    fn adapt(&self, attr: &mut Attr) {
        attr.dev = self.dev;
        attr.blksize = PAGE as u32;
        match attr.kind() {
            Some(FileKind::Regular | FileKind::Directory) => {}
            Some(FileKind::Symlink) => attr.blocks = 0,
            _ => (attr.size, attr.blocks) = (0, 0),
        }
    }
}

/// What changes about a file besides its bytes and names.
struct Meta {
    mode: u32,
    uid: u32,
    gid: u32,
    nlink: u32,
    atime: i64,
    mtime: i64,
    ctime: i64,
    btime: i64,
    flags: FileFlags,
    /// `None`: those of the file below, or none.
    xattrs: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
}

enum Body {
    Directory(Mutex<Table>),
    Regular(Turns<Data>),
    /// `None`: not yet read from below.
    Symlink(Mutex<Option<Arc<[u8]>>>),
    /// Devices, fifos, sockets.
    Special {
        fifo: Slot,
        socket: Slot,
    },
}

/// An inode in memory.
pub struct Node {
    shared: Arc<Shared>,
    this: Weak<Node>,
    ino: u64,
    kind: FileKind,
    rdev: u64,
    meta: Mutex<Meta>,
    body: Body,
    /// What it represents below, and the blocks and size that had.
    lower: Option<Lower>,
    /// Whether the node will be found again without help: made here, or entered in its directory's table.
    kept: AtomicBool,
    /// Where it was found, while it is not kept.
    place: Mutex<Option<(Arc<Node>, Arc<[u8]>)>>,
    /// An O_TMPFILE file that may still get a name.
    linkable: AtomicBool,
    /// All three execute bits are set. Written with `meta` locked.
    open_to_all: AtomicBool,
    /// Made in a directory of which [`Node::on_no_exec`] holds.
    no_exec: AtomicBool,
    busy: Busy,
}

struct Lower {
    inode: Arc<HostInode>,
    blocks: u64,
    size: u64,
}

impl Node {
    /// The root of a file system made here.
    pub fn root(shared: &Arc<Shared>, mode: u32, uid: u32, gid: u32) -> Arc<Node> {
        Node::make(shared, FileKind::Directory as u32 | mode, 0, uid, gid, Body::Directory(Mutex::default()))
    }

    /// The root of a file system over a host directory.
    pub fn root_over(shared: &Arc<Shared>, lower: Arc<HostInode>) -> Result<Arc<Node>> {
        let root = Node::over(shared, lower, None)?;
        root.kept.store(true, Ordering::Relaxed);
        Ok(root)
    }

    fn make(shared: &Arc<Shared>, mode: u32, rdev: u64, uid: u32, gid: u32, body: Body) -> Arc<Node> {
        let now = shared.now();
        let kind = FileKind::of_mode(mode).unwrap_or(FileKind::Regular);
        shared.nodes.fetch_add(1, Ordering::Relaxed);
        Arc::new_cyclic(|this| Node {
            shared: shared.clone(),
            this: this.clone(),
            ino: shared.next_ino.fetch_add(1, Ordering::Relaxed),
            kind,
            rdev,
            meta: Mutex::new(Meta {
                mode,
                uid,
                gid,
                nlink: if kind == FileKind::Directory { 2 } else { 1 },
                atime: now,
                mtime: now,
                ctime: now,
                btime: now,
                flags: FileFlags::empty(),
                xattrs: None,
            }),
            body,
            lower: None,
            kept: AtomicBool::new(true),
            place: Mutex::new(None),
            linkable: AtomicBool::new(false),
            open_to_all: AtomicBool::new(mode & 0o111 == 0o111),
            no_exec: AtomicBool::new(false),
            busy: Busy::new(),
        })
    }

    fn over(shared: &Arc<Shared>, lower: Arc<HostInode>, place: Option<(Arc<Node>, Arc<[u8]>)>) -> Result<Arc<Node>> {
        let attr = lower.attr()?;
        let kind = lower.kind();
        let body = match kind {
            FileKind::Directory => Body::Directory(Mutex::default()),
            FileKind::Regular => Body::Regular(Turns::new(Data::of_lower(lower.clone(), attr.size))),
            FileKind::Symlink => Body::Symlink(Mutex::new(None)),
            _ => Body::Special { fifo: Slot::new(), socket: Slot::new() },
        };
        shared.nodes.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new_cyclic(|this| Node {
            shared: shared.clone(),
            this: this.clone(),
            ino: attr.ino,
            kind,
            rdev: attr.rdev,
            meta: Mutex::new(Meta {
                mode: attr.mode,
                uid: attr.uid,
                gid: attr.gid,
                nlink: attr.nlink,
                atime: attr.atime,
                mtime: attr.mtime,
                ctime: attr.ctime,
                btime: attr.btime,
                flags: FileFlags::empty(),
                xattrs: None,
            }),
            body,
            lower: Some(Lower { inode: lower, blocks: attr.blocks, size: attr.size }),
            kept: AtomicBool::new(false),
            place: Mutex::new(place),
            linkable: AtomicBool::new(false),
            open_to_all: AtomicBool::new(attr.mode & 0o111 == 0o111),
            no_exec: AtomicBool::new(false),
            busy: Busy::new(),
        }))
    }

    /// The node for a file below, found as `name` in `self`: the one there is when the file has several names.
    fn adopt(&self, lower: Arc<HostInode>, name: &[u8]) -> Result<Arc<Node>> {
        let place = self.this.upgrade().map(|dir| (dir, Arc::from(name)));
        let several = lower.kind() != FileKind::Directory && lower.attr()?.nlink > 1;
        if !several {
            return Node::over(&self.shared, lower, place);
        }
        let id = lower.id();
        if let Some((known, _)) = self.shared.links.lock().get(&id)
            && let Some(known) = known.upgrade()
        {
            return Ok(known);
        }
        let node = Node::over(&self.shared, lower, place)?;
        let mut links = self.shared.links.lock();
        // Somebody may have come by another name, in another directory, meanwhile.
        let known = links.get(&id).and_then(|(known, _)| known.upgrade());
        if known.is_none() {
            links.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            if links.len() >= 1024 && links.len().is_power_of_two() {
                links.retain(|_, (weak, _)| weak.strong_count() > 0);
            }
            links.insert(id, (Arc::downgrade(&node), None));
        }
        drop(links);
        Ok(known.unwrap_or(node))
    }

    /// Before the first change: sees to it that the node is found again, and all directories on the way.
    fn keep(&self) {
        let mut at = self.this.upgrade();
        while let Some(node) = at {
            if node.kept.swap(true, Ordering::AcqRel) {
                return;
            }
            if let Some(lower) = &node.lower
                && node.kind != FileKind::Directory
                && let Some((_, held)) = node.shared.links.lock().get_mut(&lower.inode.id())
            {
                *held = Some(node.clone());
            }
            let Some((dir, name)) = node.place.lock().take() else { return };
            if let Body::Directory(table) = &dir.body {
                table.lock().hold(name, &node);
            }
            at = Some(dir);
        }
    }

    /// The last name is gone: no other name will lead here.
    fn forget_links(&self) {
        if let Some(lower) = &self.lower
            && self.kind != FileKind::Directory
        {
            let gone = self.shared.links.lock().get_mut(&lower.inode.id()).and_then(|(_, held)| held.take());
            drop(gone);
        }
    }

    fn table(&self) -> Result<MutexGuard<'_, Table>> {
        match &self.body {
            Body::Directory(table) => Ok(table.lock()),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn data(&self) -> Result<&Turns<Data>> {
        match &self.body {
            Body::Regular(data) => Ok(data),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The directory below, when there is one.
    /// What it represents below.
    pub fn below(&self) -> Option<&HostInode> {
        self.lower.as_ref().map(|lower| &*lower.inode)
    }

    fn lower_dir(&self) -> Option<&Arc<HostInode>> {
        self.lower.as_ref().map(|lower| &lower.inode).filter(|_| self.kind == FileKind::Directory)
    }

    /// The node of that name, with the table locked. ENOENT.
    fn find(&self, table: &mut Table, name: &[u8]) -> Result<Arc<Node>> {
        match table.get(name) {
            Some(Entry::Held { node, .. }) => return Ok(node.clone()),
            Some(Entry::Whiteout) => return Err(Errno::ENOENT),
            Some(Entry::Below(weak)) => {
                if let Some(node) = weak.upgrade() {
                    return Ok(node);
                }
            }
            None => {}
        }
        let lower = self.lower_dir().ok_or(Errno::ENOENT)?.child(name)?;
        let node = self.adopt(lower, name)?;
        if node.kept.load(Ordering::Acquire) {
            // A file with several names that has changed already: this name must last too.
            table.reserve()?;
            table.hold(Arc::from(name), &node);
        } else {
            table.remember(name, &node)?;
        }
        Ok(node)
    }

    /// Whether a directory has no names.
    fn is_empty(&self) -> Result<bool> {
        let table = self.table()?;
        if table.held() > 0 {
            return Ok(false);
        }
        let Some(lower) = self.lower_dir() else { return Ok(true) };
        let mut empty = true;
        lower.list(&mut |_, _, name| {
            empty = matches!(table.get(name), Some(Entry::Whiteout));
            empty
        })?;
        Ok(empty)
    }

    /// A directory's names have changed.
    fn touched(&self, links: i32, now: i64) {
        let mut meta = self.meta.lock();
        meta.nlink = meta.nlink.saturating_add_signed(links);
        meta.mtime = now;
        meta.ctime = now;
    }

    fn linked(&self, links: i32, now: i64) {
        let mut meta = self.meta.lock();
        // A directory has one name: losing it is losing all, whatever count came from below.
        let dir_gone = links < 0 && self.kind == FileKind::Directory;
        meta.nlink = if dir_gone { 0 } else { meta.nlink.saturating_add_signed(links) };
        meta.ctime = now;
        let gone = meta.nlink == 0;
        drop(meta);
        if gone {
            self.forget_links();
        }
    }

    /// Enters a new node.
    fn enter(&self, name: &[u8], node: &Arc<Node>) -> Result<()> {
        // A name takes memory, whatever it leads to.
        if self.shared.space.machine.accounts().is_tight() {
            return Err(Errno::ENOSPC);
        }
        self.keep();
        let mut table = self.table()?;
        table.reserve()?;
        match table.get(name) {
            Some(Entry::Held { .. } | Entry::Below(_)) => return Err(Errno::EEXIST),
            Some(Entry::Whiteout) => table.put(Arc::from(name), node.clone(), true),
            // The caller has looked the name up, so the directory below has none either.
            None => table.put(Arc::from(name), node.clone(), false),
        }
        drop(table);
        self.touched(i32::from(node.kind == FileKind::Directory), self.shared.now());
        Ok(())
    }

    /// The size of a directory that is all in memory.
    fn size_of(table: &Table) -> u64 {
        table.held() as u64 * 20 + 40
    }

    #[inline]
    fn attr_with(&self, meta: &Meta, size: u64, blocks: u64) -> Attr {
        Attr {
            dev: self.shared.dev,
            ino: self.ino,
            mode: meta.mode,
            nlink: meta.nlink,
            uid: meta.uid,
            gid: meta.gid,
            rdev: self.rdev,
            size,
            blksize: PAGE as u32,
            blocks,
            atime: meta.atime,
            mtime: meta.mtime,
            ctime: meta.ctime,
            btime: meta.btime,
            flags: Some(meta.flags),
        }
    }

    fn perm_of(meta: &Meta) -> Perm {
        Perm { mode: meta.mode, uid: meta.uid, gid: meta.gid, flags: meta.flags }
    }

    fn born(&self, mode: u32, rdev: u64, cred: &Cred) -> Result<Arc<Node>> {
        let dir = Node::perm_of(&self.meta.lock());
        let (mode, gid) = inherit(&dir, mode, cred);
        let body = match FileKind::of_mode(mode).ok_or(Errno::EINVAL)? {
            FileKind::Directory => Body::Directory(Mutex::default()),
            FileKind::Regular => Body::Regular(Turns::new(Data::new())),
            FileKind::Symlink => return Err(Errno::EINVAL),
            _ => Body::Special { fifo: Slot::new(), socket: Slot::new() },
        };
        let node = Node::make(&self.shared, mode, rdev, cred.fsuid, gid, body);
        node.meta.lock().flags = dir.flags & FileFlags::INHERITED;
        node.no_exec.store(self.on_no_exec(), Ordering::Relaxed);
        Ok(node)
    }

    /// Whether it is, or was made, where the host runs nothing (noexec): what is written there stays in memory, and would not run on
    /// the host either.
    fn on_no_exec(&self) -> bool {
        match &self.lower {
            Some(lower) => lower.inode.on_no_exec(),
            None => self.no_exec.load(Ordering::Relaxed),
        }
    }
}

fn node_of(inode: &Arc<dyn Inode>) -> Result<&Node> {
    inode.as_any().downcast_ref::<Node>().ok_or(Errno::EXDEV)
}

/// Deep trees, and the chains of directories that unkept nodes hold, are let go node by node, not by recursion, and large directories
/// without a list of what was in them.
impl Drop for Node {
    fn drop(&mut self) {
        self.shared.nodes.fetch_sub(1, Ordering::Relaxed);
        if let Body::Regular(data) = &mut self.body {
            data.get_mut().release(&self.shared.space);
        }
        let mut pending = LinkedList::new();
        let take = |node: &mut Node, pending: &mut LinkedList<_>| {
            let above = node.place.get_mut().take().map(|(dir, _)| dir);
            let below = match &mut node.body {
                Body::Directory(table) => Some(table.get_mut().take_nodes()),
                _ => None,
            };
            if above.is_some() || below.is_some() {
                pending.push_back(above.into_iter().chain(below.into_iter().flatten()));
            }
        };
        take(self, &mut pending);
        while let Some(mut rest) = pending.pop_back() {
            let Some(node) = rest.next() else { continue };
            pending.push_back(rest);
            if let Some(mut node) = Arc::into_inner(node) {
                take(&mut node, &mut pending);
            }
        }
    }
}
