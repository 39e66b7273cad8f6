//! The virtual file system: inodes, names, mounts, and what is done with them.
//!
//! [`Vfs`] is one value per kernel. Calls resolve names with a [`Walk`], act through [`Vfs`]'s methods (which check
//! permissions, keep the name cache in step and notify [`Watches`]), and file systems implement [`Inode`].

pub mod access;
mod busy;
mod cached;
mod dentry;
pub mod device;
pub mod directory;
pub mod inode;
mod mount;
mod names;
mod open;
pub mod path;
pub mod remembered;
pub mod slot;
pub mod walk;
pub mod watch;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_port::Machine;
use janua_rt::{AtomicU64, Mutex, MutexGuard, RwLock};

use crate::caller::Caller;
use crate::lease::Leases;

pub use busy::Busy;
pub use cached::{Cached, Trusted, Walked};
pub use dentry::{Dentry, NameHasher, NameMap};
pub use device::{Device, DeviceTable};
pub use inode::{Attr, Contents, FileFlags, FileKind, Inode, Perm, SetAttr};
pub use mount::{FileSystem, FsStat, FsType, Mount, MountFlags};
pub use names::{Make, may_link, rename};
pub use open::{OpenHow, drop_privileges, may_execute};
pub use path::{Path, Written};
pub use remembered::Remembered;
pub use slot::Slot;
pub use walk::{Last, NAME_MAX, Next, Parent, Resolve, Start, Stat, Walk};
pub use watch::Watches;

/// Dentries kept by the cache alone.
const CACHED_DENTRIES: usize = 32768;

/// The name space of a kernel and everything that hangs on it.
pub struct Vfs {
    pub machine: &'static dyn Machine,
    mounts: mount::Mounts,
    cache: dentry::Cache,
    /// Held while directories change their place, so that "is this below that" stays true.
    renames: Mutex<()>,
    /// Drivers by device number.
    pub devices: DeviceTable,
    /// File systems mount(2) knows by name.
    types: RwLock<BTreeMap<&'static str, Arc<dyn FsType>>>,
    /// Who wants to know of changes (inotify).
    pub watches: Arc<Watches>,
    pub leases: Arc<Leases>,
    next_dev: AtomicU64,
    /// [`Vfs::dev_of_host`]: the host's number, and ours.
    host_devs: Mutex<Vec<(u64, u64)>>,
    /// The buffer of the last listing, for the next.
    listing: Mutex<Vec<u8>>,
    /// Hashes of names whose attributes were lately fetched without a dentry ([`Vfs::stat_uncached`]).
    stat_once: Box<[AtomicU32]>,
}

/// How many such names are remembered. A tree that is walked has more of them, so that it leaves nothing behind.
const STAT_ONCE: usize = 4096;

impl Vfs {
    /// A name space without a root: [`Vfs::set_root`] comes next.
    pub fn new(machine: &'static dyn Machine) -> Vfs {
        Vfs {
            machine,
            mounts: mount::Mounts::new(),
            cache: dentry::Cache::new(CACHED_DENTRIES),
            renames: Mutex::new(()),
            devices: DeviceTable::default(),
            types: RwLock::new(BTreeMap::new()),
            watches: Arc::default(),
            leases: Arc::default(),
            next_dev: AtomicU64::new(20),
            host_devs: Mutex::default(),
            listing: Mutex::default(),
            stat_once: (0..STAT_ONCE).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// While the guard lives no directory moves.
    fn hold_renames(&self) -> MutexGuard<'_, ()> {
        self.renames.lock()
    }

    /// A device number without a device, for a file system's `st_dev`.
    pub fn new_dev(&self) -> u64 {
        device::number(0, self.next_dev.fetch_add(1, Ordering::Relaxed) as u32)
    }

    /// The `st_dev` of what is on that device of the host: the same wherever it is shown.
    pub fn dev_of_host(&self, device: u64) -> u64 {
        let mut known = self.host_devs.lock();
        if let Some(&(_, dev)) = known.iter().find(|(host, _)| *host == device) {
            return dev;
        }
        let dev = self.new_dev();
        known.push((device, dev));
        dev
    }

    /// Nanoseconds since 1970, for time stamps.
    pub fn now(&self) -> i64 {
        now(self.machine)
    }

    pub fn register_type(&self, name: &'static str, fs: Arc<dyn FsType>) {
        self.types.write().insert(name, fs);
    }

    /// The kind of file system of that name. ENODEV.
    pub fn fs_type(&self, name: &[u8]) -> Result<Arc<dyn FsType>> {
        let name = core::str::from_utf8(name).map_err(|_| Errno::ENODEV)?;
        self.types.read().get(name).cloned().ok_or(Errno::ENODEV)
    }

    /// The registered kinds, for /proc/filesystems.
    pub fn type_names(&self) -> Vec<&'static str> {
        self.types.read().keys().copied().collect()
    }

    /// The name in a directory, from the cache or the file system; `None` when there is none. Mounts are not crossed. `opens`: what is found
    /// is opened next ([`Inode::lookup_to_open`]).
    fn lookup(&self, caller: &dyn Caller, dir: &Arc<Dentry>, name: &[u8], opens: bool) -> Result<Option<Arc<Dentry>>> {
        let cached = dir.inode.cache_names();
        if cached && let Some(found) = dir.cached(name) {
            return Ok(found);
        }
        let mut fresh = None;
        let found = {
            let mut children = dir.children.write();
            let ask = || if opens { dir.inode.lookup_to_open(caller, name) } else { dir.inode.lookup(caller, name) };
            self.lookup_by(dir, &mut children, name, &mut fresh, ask)
        };
        if let Some(fresh) = fresh {
            self.cache.add(&fresh);
        }
        found
    }

    /// An empty buffer with room for so many bytes, for a moment's use ([`Vfs::give_back`]).
    pub fn buffer(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = core::mem::take(&mut *self.listing.lock());
        buffer.clear();
        buffer.reserve(bytes);
        buffer
    }

    /// Keeps a buffer for the next who needs one.
    pub fn give_back(&self, buffer: Vec<u8>) {
        *self.listing.lock() = buffer;
    }

    /// Stores the attributes of a file that is not in the cache, if it is the first time lately that somebody asks: for those who look
    /// at each file of a tree once. The second time it is worth a dentry: `false`. But a dentry in a directory that others change too
    /// would save no question.
    pub fn stat_uncached(&self, dir: &Arc<Dentry>, name: &[u8], attr: &mut Attr) -> Result<bool> {
        if dir.inode.checks_names() {
            return if dir.is_deleted() { Ok(false) } else { dir.inode.stat_uncached(name, attr) };
        }
        let mut hasher = NameHasher::default();
        hasher.write_usize(Arc::as_ptr(dir).addr());
        hasher.write(name);
        let hash = hasher.finish();
        let (place, mark) = (&self.stat_once[hash as usize % STAT_ONCE], (hash >> 32) as u32);
        if place.load(Ordering::Relaxed) == mark || dir.is_deleted() {
            return Ok(false);
        }
        let reported = dir.inode.stat_uncached(name, attr);
        if !matches!(reported, Ok(false)) {
            place.store(mark, Ordering::Relaxed);
        }
        reported
    }

    /// [`Vfs::lookup`] with the directory locked. A dentry made on the way is left in `fresh`, to be entered in the cache once
    /// the lock is gone.
    fn lookup_locked(
        &self,
        caller: &dyn Caller,
        dir: &Arc<Dentry>,
        children: &mut dentry::Children,
        name: &[u8],
        fresh: &mut Option<Arc<Dentry>>,
    ) -> Result<Option<Arc<Dentry>>> {
        self.lookup_by(dir, children, name, fresh, || dir.inode.lookup(caller, name))
    }

    fn lookup_by(
        &self,
        dir: &Arc<Dentry>,
        children: &mut dentry::Children,
        name: &[u8],
        fresh: &mut Option<Arc<Dentry>>,
        ask: impl FnOnce() -> Result<Arc<dyn Inode>>,
    ) -> Result<Option<Arc<Dentry>>> {
        let cached = dir.inode.cache_names();
        let known = children.map.get(name).cloned();
        match &known {
            Some(found) if cached => return Ok(found.clone()),
            // What something is mounted on stays, whatever becomes of the file beneath.
            Some(Some(found)) if found.is_mounted_on() => return Ok(Some(found.clone())),
            _ => {}
        }
        if dir.is_deleted() {
            return Ok(None);
        }
        match ask() {
            Ok(inode) => {
                if let Some(Some(found)) = known {
                    if Arc::ptr_eq(&found.inode, &inode) {
                        return Ok(Some(found));
                    }
                    // Another file has taken the name; who holds the old one keeps a place with that name.
                    children.remove(name);
                }
                let name: Arc<[u8]> = Arc::from(name);
                let dentry = Dentry::child(inode, dir, name.clone());
                children.insert(name, dentry.clone());
                *fresh = Some(dentry.clone());
                Ok(Some(dentry))
            }
            Err(Errno::ENOENT) => {
                if cached {
                    children.insert_negative(name);
                } else if let Some(Some(found)) = known {
                    found.set_deleted();
                    children.remove(name);
                }
                Ok(None)
            }
            Err(errno) => Err(errno),
        }
    }
}

/// Nanoseconds since 1970 by the machine's clock.
pub fn now(machine: &dyn Machine) -> i64 {
    i64::try_from(machine.clock().realtime()).unwrap_or(i64::MAX)
}
