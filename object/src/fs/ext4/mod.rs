//! ext4 on a disk, by the crate `rsext4`: the disk's structures, their checksums and the journal are the crate's; inodes,
//! the pages of files and when things are written are decided here.
//!
//! What a power cut may cost: the crate journals metadata, and file data reaches the disk before the metadata that leads to it.
//! What fsync(2), sync(2) and their variants have returned for is there after the next mount. Everything else is written back after
//! [`INTERVAL`] at the latest; where the machine does not report which pages shared mappings have stored into, those only by
//! msync(2), fsync(2), sync(2) or when the mapping goes.
//!
//! Lock order: a file's turn to be changed ([`Node::turn`]), [`Shared::writing`] or [`Shared::reaping`], a file's data (let go of while its
//! pages are read from the disk or written to it), [`Shared::core`], a node's `meta`; [`Shared::nodes`], [`Shared::dirty`], [`Shared::dead`] are
//! last and held for a moment only. Two files' data are never locked by one thread, but for a try.

mod back;
mod data;
mod device;
mod file;
mod fill;
mod node;
mod ranges;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::hash::BuildHasherDefault;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_port::block::SECTOR;
use janua_port::{BlockDevice, Machine, Nanos};
use janua_rt::{AtomicU64, Mutex};
use rsext4::{
    Ext4, Ext4Error, Ext4ErrorKind, Ext4Result, InodeInfo, InodeNumber, MountOptions, MountServices, MountedServices,
};

use crate::vfs::{FileSystem, FsStat, Inode, NAME_MAX, NameHasher, now};

use device::{Device, Entropy, Stamp, Table, Times, Witness};
use node::Node;

/// Bytes of a page, and of the blocks this file system is made with.
const BLOCK: usize = 4096;
/// The magic number of statfs(2).
const MAGIC: u64 = 0xef53;
/// Longest time from a change to its being written back, nanoseconds.
const INTERVAL: Nanos = 5_000_000_000;
/// Dirty pages from which on a writer writes its file back itself.
const DIRTY_MOST: u64 = 4096;
/// Blocks kept for metadata when dirty pages are promised room.
const SLACK: u64 = 64;
/// Times of inodes remembered beyond what the crate reports.
const TIMES_MOST: usize = 16384;

/// The mounted file system, one user at a time.
pub(in crate::fs) struct Core {
    fs: Ext4<Device, MountedServices<Entropy, Witness>>,
    device: Device,
    /// Where inodes are, for the parts of a second in their times.
    table: Option<Table>,
    /// Times the journal may know and the inodes' places on the disk not yet.
    times: BTreeMap<u32, Times>,
    /// Files of whose data the crate may keep what the disk does not have until the next commit.
    held: BTreeSet<u32>,
}

impl Core {
    /// The times of an inode, as exactly as they are known.
    fn times_of(&self, info: &InodeInfo) -> Times {
        const SECOND: i64 = 1_000_000_000;
        let number = info.number.raw();
        let seconds = [info.atime, info.mtime, info.ctime, info.btime];
        let exact = self.times.get(&number).copied().or_else(|| self.table.as_ref()?.times(&self.device, number));
        let exact = exact.unwrap_or_default();
        core::array::from_fn(|which| {
            // The crate has the last word on seconds, whose upper bits it does not report.
            let same = exact[which].div_euclid(SECOND) as u32 == seconds[which];
            if same { exact[which] } else { i64::from(seconds[which] as i32) * SECOND }
        })
    }

    fn remember(&mut self, number: u32, times: Times) {
        if self.times.len() >= TIMES_MOST {
            self.times.pop_first();
        }
        self.times.insert(number, times);
    }
}

/// What the files of one file system share.
pub(in crate::fs) struct Shared {
    machine: &'static dyn Machine,
    /// For data of files; everything else goes through [`Shared::core`].
    disk: &'static dyn BlockDevice,
    dev: u64,
    read_only: bool,
    core: Mutex<Core>,
    stamp: Stamp,
    /// Inodes in memory.
    nodes: Mutex<HashMap<u32, Weak<Node>, BuildHasherDefault<NameHasher>>>,
    /// Those with something to write back.
    dirty: Mutex<BTreeMap<u32, Arc<Node>>>,
    /// Held while dirty inodes are gone through, so that who wants all of them written waits for another who is at it.
    writing: Mutex<()>,
    /// The same for the room of deleted files.
    reaping: Mutex<()>,
    /// Files without a name whose last user has gone.
    dead: Mutex<Vec<InodeNumber>>,
    dirty_pages: AtomicU64,
    /// Pages of files in memory.
    cached: AtomicU64,
    /// As the crate last counted.
    free_blocks: AtomicU64,
    /// Something has changed that no commit holds yet.
    changed: AtomicBool,
    /// It was left, and nothing is written any more.
    closed: AtomicBool,
    /// What the thread that writes back sleeps on.
    bell: Arc<AtomicU32>,
}

/// An error of the crate in Linux' words.
fn errno(error: Ext4Error) -> Errno {
    match error.kind() {
        Ext4ErrorKind::Corrupted | Ext4ErrorKind::ChecksumMismatch => Errno::EUCLEAN,
        Ext4ErrorKind::UnsupportedFeature | Ext4ErrorKind::UnsupportedCapability | Ext4ErrorKind::Unsupported => {
            Errno::EOPNOTSUPP
        }
        Ext4ErrorKind::ReadOnly => Errno::EROFS,
        Ext4ErrorKind::NoSpace => Errno::ENOSPC,
        Ext4ErrorKind::NoMemory => Errno::ENOMEM,
        Ext4ErrorKind::QuotaExceeded => Errno::EDQUOT,
        Ext4ErrorKind::TooManyLinks => Errno::EMLINK,
        Ext4ErrorKind::PermissionDenied => Errno::EPERM,
        Ext4ErrorKind::NotFound => Errno::ENOENT,
        Ext4ErrorKind::AlreadyExists => Errno::EEXIST,
        Ext4ErrorKind::NotDirectory => Errno::ENOTDIR,
        Ext4ErrorKind::IsDirectory => Errno::EISDIR,
        Ext4ErrorKind::NotEmpty => Errno::ENOTEMPTY,
        Ext4ErrorKind::Busy => Errno::EBUSY,
        Ext4ErrorKind::BadFileDescriptor => Errno::EBADF,
        Ext4ErrorKind::Overflow => Errno::EOVERFLOW,
        Ext4ErrorKind::FileTooLarge => Errno::EFBIG,
        Ext4ErrorKind::InvalidInput | Ext4ErrorKind::BadSuperblock | Ext4ErrorKind::InvalidMagic => Errno::EINVAL,
        // The device's, and what follows from them.
        Ext4ErrorKind::Io | Ext4ErrorKind::JournalAborted | Ext4ErrorKind::Timeout => Errno::EIO,
    }
}

/// Why a disk cannot be mounted, for a person.
fn reason(error: Ext4Error) -> String {
    match error.kind() {
        Ext4ErrorKind::Corrupted | Ext4ErrorKind::ChecksumMismatch => {
            "its file system is damaged (e2fsck can repair an image)".into()
        }
        Ext4ErrorKind::Io => "it cannot be read where the file system wants to be read".into(),
        Ext4ErrorKind::InvalidMagic => "there is no ext4 file system on it".into(),
        Ext4ErrorKind::BadSuperblock => "its superblock describes no possible file system".into(),
        Ext4ErrorKind::UnsupportedFeature => format!("its file system has features this kernel does not know ({error})"),
        kind => format!("{kind}"),
    }
}

/// What is wrong with a superblock before anything else is looked at.
fn first_look(disk: &dyn BlockDevice) -> core::result::Result<(), String> {
    let described = || String::from("it is too small, or cannot be read");
    let mut bytes = vec![0; rsext4::SUPERBLOCK_SIZE];
    disk.read(rsext4::SUPERBLOCK_OFFSET / SECTOR as u64, &mut bytes).map_err(|_| described())?;
    let number = |at, len| device::number(&bytes, at, len).ok_or_else(described);
    if number(0x38, 2)? != u64::from(rsext4::EXT4_SUPER_MAGIC) {
        return Err(reason(Ext4Error::invalid_magic()));
    }
    let scale = number(0x18, 4)?;
    // Blocks of 1, 2 or 4 KiB.
    if scale > 2 {
        return Err(reason(Ext4Error::bad_superblock()));
    }
    let blocks = number(0x4, 4)?;
    if blocks.saturating_mul(1024 << scale) > disk.sectors().saturating_mul(SECTOR as u64) {
        return Err("it is smaller than its file system: the image is cut off".into());
    }
    Ok(())
}

impl Shared {
    fn now(&self) -> i64 {
        now(self.machine)
    }

    /// Asks the file system something.
    fn look<T>(&self, ask: impl FnOnce(&mut Core) -> Ext4Result<T>) -> Result<T> {
        let mut core = self.core.lock();
        // Reading a file stamps its time of access.
        self.stamp.set(self.now());
        ask(&mut core).map_err(errno)
    }

    /// Changes the file system; the change is given its time. EROFS.
    fn change<T>(&self, change: impl FnOnce(&mut Core, i64) -> Ext4Result<T>) -> Result<T> {
        self.change_at(self.now(), change)
    }

    /// A change of a file's data.
    fn change_data<T>(&self, number: InodeNumber, change: impl FnOnce(&mut Core) -> Ext4Result<T>) -> Result<T> {
        self.change(|core, _| {
            core.held.insert(number.raw());
            change(core)
        })
    }

    /// A change that is to carry another time than now.
    fn change_at<T>(&self, now: i64, change: impl FnOnce(&mut Core, i64) -> Ext4Result<T>) -> Result<T> {
        if self.read_only {
            return Err(Errno::EROFS);
        }
        let mut core = self.core.lock();
        self.stamp.set(now);
        self.changed.store(true, Ordering::Release);
        let result = change(&mut core, now);
        self.free_blocks.store(core.fs.statfs().free_blocks, Ordering::Relaxed);
        result.map_err(errno)
    }

    /// The inode in memory that the information is about; made when there is none. Within the core's lock that the information
    /// was got in.
    fn node(self: &Arc<Shared>, core: &mut Core, info: &InodeInfo) -> Ext4Result<Arc<Node>> {
        let number = info.number.raw();
        if let Some(node) = self.nodes.lock().get(&number).and_then(Weak::upgrade) {
            return Ok(node);
        }
        if core.table.as_ref().is_some_and(|table| table.is_damaged(&core.device, info)) {
            return Err(Ext4Error::corrupted());
        }
        let node = Node::new(self, info, core.times_of(info))?;
        let mut nodes = self.nodes.lock();
        if nodes.len() >= 1024 && nodes.len().is_power_of_two() {
            nodes.retain(|_, node| node.strong_count() > 0);
        }
        nodes.insert(number, Arc::downgrade(&node));
        Ok(node)
    }

    /// The inode in memory, when there is one.
    fn known(&self, number: InodeNumber) -> Option<Arc<Node>> {
        self.nodes.lock().get(&number.raw()).and_then(Weak::upgrade)
    }

    /// Sees to it that there is room on the disk for that many pages more. `false`: so little that they must be written at once.
    fn make_room(&self, pages: u64) -> bool {
        let fits = || {
            let promised = self.dirty_pages.load(Ordering::Relaxed) + pages + SLACK;
            promised <= self.free_blocks.load(Ordering::Relaxed)
        };
        if fits() {
            return true;
        }
        // What was promised is taken up, and what nobody can reach any more given back.
        self.write_all_back(false);
        self.reap();
        fits()
    }

    /// Writes back what is dirty; with `mapped` also what shared mappings may have changed. The first error; what could not be
    /// written stays dirty.
    fn write_all_back(&self, mapped: bool) -> Option<Errno> {
        let _writing = self.writing.lock();
        let dirty = core::mem::take(&mut *self.dirty.lock());
        let mut first = None;
        for (number, node) in dirty {
            if node.is_gone() && Arc::strong_count(&node) == 1 {
                // Nobody will ever read it.
                node.discard();
                continue;
            }
            if let Err(errno) = node.write_back(mapped) {
                first = first.or(Some(errno));
                self.dirty.lock().entry(number).or_insert(node);
            } else if node.stays_dirty() {
                self.dirty.lock().entry(number).or_insert(node);
            }
        }
        first
    }

    /// Gives back the room of files nobody can reach any more.
    fn reap(&self) {
        let _reaping = self.reaping.lock();
        let dead = core::mem::take(&mut *self.dead.lock());
        for number in dead {
            let result = self.change(|core, _| {
                core.times.remove(&number.raw());
                core.fs.reap_unlinked_inode(number)
            });
            if let Err(errno) = result {
                // They stay on the disk's list of orphans, which the next mount goes through.
                self.say(&format!("the room of a deleted file is lost until the next mount: {errno:?}"));
            }
        }
    }

    /// Most pages of files in memory: a quarter of it.
    fn cache_most(&self) -> u64 {
        match self.machine.memory().total {
            0 => 1 << 16,
            total => total / BLOCK as u64 / 4,
        }
    }

    /// Whether files take more of the memory than they should.
    fn is_tight(&self) -> bool {
        self.cached.load(Ordering::Relaxed) > self.cache_most()
    }

    /// Whether the memory is short, too: then even pages that programs have mapped go. They would soon be brought again, so not before.
    fn is_short(&self) -> bool {
        let memory = self.machine.memory();
        memory.free < memory.total / 4
    }

    /// Whether so much is dirty that a writer has to write his file back himself.
    fn is_over_dirty_limit(&self) -> bool {
        self.dirty_pages.load(Ordering::Relaxed) > DIRTY_MOST.min(self.cache_most() / 4)
    }

    /// Lets pages go that the disk has, when files take too much of the memory: those of files that are mapped, or of the others.
    fn shrink(&self, mapped: bool) {
        if !self.is_tight() || mapped && !self.is_short() {
            return;
        }
        let enough = self.cache_most() / 4 * 3;
        let nodes: Vec<_> = self.nodes.lock().values().filter_map(Weak::upgrade).collect();
        for node in nodes {
            if self.cached.load(Ordering::Relaxed) <= enough {
                break;
            }
            node.let_go(mapped);
        }
    }

    /// Everything written so far is on stable storage when this returns.
    fn sync(&self) -> Result<()> {
        if self.is_still() {
            return Ok(());
        }
        let failed = self.write_all_back(true);
        self.reap();
        self.commit()?;
        failed.map_or(Ok(()), Err)
    }

    /// Commits what the journal holds.
    fn commit(&self) -> Result<()> {
        if self.is_still() {
            return Ok(());
        }
        let mut core = self.core.lock();
        self.stamp.set(self.now());
        self.changed.store(false, Ordering::Release);
        core.fs.sync().map_err(|error| {
            self.changed.store(true, Ordering::Release);
            errno(error)
        })?;
        core.held.clear();
        Ok(())
    }

    /// Leaves the disk as after a proper unmount, when nobody uses files any more.
    fn close(&self) -> Result<()> {
        if self.is_still() {
            return Ok(());
        }
        self.sync()?;
        let nodes: Vec<_> = self.nodes.lock().values().filter_map(Weak::upgrade).collect();
        for node in nodes.iter().filter(|node| node.is_gone()) {
            node.discard();
            self.dead.lock().push(node.number());
            node.forget();
        }
        drop(nodes);
        self.reap();
        self.core.lock().fs.unmount().map_err(errno)?;
        self.closed.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether nothing can have changed.
    fn is_still(&self) -> bool {
        self.read_only || self.closed.load(Ordering::Acquire)
    }

    fn ring(&self) {
        self.bell.store(1, Ordering::SeqCst);
        self.machine.park().unpark(&self.bell, 1);
    }

    fn say(&self, what: &str) {
        self.machine.console().write(format!("janua: ext4: {what}\n").as_bytes());
    }
}

/// The thread that writes back: at intervals, and at the bell.
fn serve(machine: &'static dyn Machine, bell: &AtomicU32, shared: &Weak<Shared>) {
    let mut reported = false;
    let mut next = machine.clock().monotonic() + INTERVAL;
    loop {
        bell.store(0, Ordering::SeqCst);
        {
            let Some(shared) = shared.upgrade() else { return };
            if machine.clock().monotonic() >= next {
                let failed = shared.write_all_back(false);
                shared.reap();
                let changed = shared.changed.load(Ordering::Acquire);
                let failed = failed.or_else(|| changed.then(|| shared.commit().err()).flatten());
                if let Some(errno) = failed.filter(|_| !reported) {
                    reported = true;
                    shared.say(&format!("cannot write to the disk: {errno:?}"));
                }
                next = machine.clock().monotonic() + INTERVAL;
            } else {
                shared.reap();
            }
        }
        machine.park().park(bell, 0, Some(next));
    }
}

/// An ext4 file system.
pub struct Ext4Fs {
    shared: Arc<Shared>,
    root: Arc<Node>,
}

/// Mounts the file system on a disk. Reports on the console when there was something to recover. The error is the end of a
/// sentence for a person.
pub fn mount(
    machine: &'static dyn Machine,
    disk: &'static dyn BlockDevice,
    dev: u64,
) -> core::result::Result<Arc<dyn FileSystem>, String> {
    first_look(disk)?;
    let read_only = disk.read_only();
    let options = if read_only { MountOptions::read_only_no_journal_replay() } else { MountOptions::read_write() };
    let stamp = Stamp::default();
    stamp.set(now(machine));
    let device = Device::new(disk);
    let witness = Witness::default();
    let services = MountServices::new(stamp.clone(), Entropy(machine), witness.clone());
    let fs = Ext4::mount(device.clone(), services, options).map_err(reason)?;
    let table = Table::read(&device);
    let free_blocks = fs.statfs().free_blocks;
    let shared = Arc::new(Shared {
        machine,
        disk,
        dev,
        read_only,
        core: Mutex::new(Core { fs, device, table, times: BTreeMap::new(), held: BTreeSet::new() }),
        stamp,
        nodes: Mutex::default(),
        dirty: Mutex::default(),
        writing: Mutex::default(),
        reaping: Mutex::default(),
        dead: Mutex::default(),
        dirty_pages: AtomicU64::new(0),
        cached: AtomicU64::new(0),
        free_blocks: AtomicU64::new(free_blocks),
        changed: AtomicBool::new(false),
        closed: AtomicBool::new(false),
        bell: Arc::default(),
    });
    let root = {
        let mut core = shared.core.lock();
        let number = core.fs.root_inode();
        core.fs.inode(number).and_then(|info| shared.node(&mut core, &info)).map_err(reason)?
    };
    if witness.recovered() {
        shared.say(&format!("{} was not left properly: its journal has been replayed", disk.name()));
    }
    let (weak, bell) = (Arc::downgrade(&shared), shared.bell.clone());
    let body = alloc::boxed::Box::new(move || serve(machine, &bell, &weak));
    // Where there are no such threads, sync(2) and the end of the machine write back.
    let _ = machine.spawn_kernel("ext4", body);
    Ok(Arc::new(Ext4Fs { shared, root }))
}

impl FileSystem for Ext4Fs {
    fn name(&self) -> &'static str {
        "ext4"
    }

    fn root(&self) -> Arc<dyn Inode> {
        self.root.clone()
    }

    fn stat(&self) -> Result<FsStat> {
        self.shared.reap();
        let stats = self.shared.core.lock().fs.statfs();
        let free = stats.free_blocks.saturating_sub(self.shared.dirty_pages.load(Ordering::Relaxed));
        Ok(FsStat {
            magic: MAGIC,
            block_size: stats.block_size,
            blocks: stats.total_blocks,
            blocks_free: free,
            blocks_available: free,
            files: stats.total_inodes.into(),
            files_free: stats.free_inodes.into(),
            fsid: self.shared.dev,
            name_max: NAME_MAX as u64,
        })
    }

    fn dev(&self) -> u64 {
        self.shared.dev
    }

    fn read_only(&self) -> bool {
        self.shared.read_only
    }

    fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    fn sync_blocks(&self) -> bool {
        true
    }

    fn finish(&self) -> Result<()> {
        self.shared.close()
    }
}

impl Drop for Ext4Fs {
    fn drop(&mut self) {
        // Files may still be open after a lazy unmount: then the journal keeps what it needs for the next mount.
        let closed = if Arc::strong_count(&self.root) == 1 { self.shared.close() } else { self.shared.sync() };
        if let Err(errno) = closed {
            self.shared.say(&format!("not everything could be written back: {errno:?}"));
        }
    }
}
