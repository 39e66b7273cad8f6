//! devpts: the pseudoterminals of a kernel, their numbers, and the directory that shows them.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::{Arc, Weak};
use core::any::Any;

use janua_abi::linux::{Errno, Result};
use janua_rt::Mutex;

use super::GroupSignals;
use super::pty::{Master, Pty, SLAVE_MAJOR, Screen};
use crate::anon;
use crate::caller::Caller;
use crate::file::{DirEntry, File};
use crate::vfs::directory::Snapshot;
use crate::vfs::{Attr, Device, FileKind, FileSystem, FsStat, Inode, Path, SetAttr, Vfs, device};

/// Most pairs at a time (pty(7): /proc/sys/kernel/pty/max).
const MOST: u32 = 4096;
const DEVPTS_MAGIC: u64 = 0x1cd1;

/// The pairs of a kernel.
pub struct Pairs {
    dev: u64,
    signals: Arc<dyn GroupSignals>,
    pairs: Mutex<BTreeMap<u32, Arc<Pty>>>,
    me: Weak<Pairs>,
}

impl Pairs {
    /// No pairs yet; registers the drivers of /dev/ptmx and /dev/pts/*.
    pub fn new(vfs: &Vfs, signals: Arc<dyn GroupSignals>) -> Arc<Pairs> {
        let dev = vfs.new_dev();
        let pairs = Arc::new_cyclic(|me| Pairs { dev, signals, pairs: Mutex::default(), me: me.clone() });
        vfs.devices.register(FileKind::CharDevice, 5, Some(2), Arc::new(Ptmx(pairs.clone())));
        vfs.devices.register(FileKind::CharDevice, SLAVE_MAJOR, None, Arc::new(Slaves(pairs.clone())));
        pairs
    }

    fn open_master(&self, caller: &dyn Caller) -> Result<Arc<dyn File>> {
        let cred = caller.cred();
        let attr = Attr { dev: self.dev, uid: cred.fsuid, gid: 5, ..anon::attr(caller.machine().clock()) };
        let pty = {
            let mut pairs = self.pairs.lock();
            let number = (0..MOST).find(|number| !pairs.contains_key(number)).ok_or(Errno::ENOSPC)?;
            let pty = Pty::new(number, Attr { ino: u64::from(number) + 3, ..attr }, self.signals.clone());
            pairs.insert(number, pty.clone());
            pty
        };
        let me = self.me.clone();
        let gone = move |number| {
            if let Some(pairs) = me.upgrade() {
                pairs.free(number);
            }
        };
        Ok(Arc::new(Master::new(pty, Arc::new(gone))))
    }

    /// A terminal without a master's file, which belongs to the user of `attr`. ENOSPC. It has its number until [`Pairs::free`].
    pub fn at_screen(&self, screen: Arc<dyn Screen>, attr: Attr) -> Result<Arc<Pty>> {
        let mut pairs = self.pairs.lock();
        let number = (0..MOST).find(|number| !pairs.contains_key(number)).ok_or(Errno::ENOSPC)?;
        let attr = Attr { dev: self.dev, ino: u64::from(number) + 3, gid: 5, ..attr };
        let label = format!("/dev/pts/{number}");
        let pty = Pty::at_screen(Some(number), device::number(SLAVE_MAJOR, number), &label, screen, attr, self.signals.clone());
        pairs.insert(number, pty.clone());
        Ok(pty)
    }

    /// The number of a terminal is another's from now on.
    pub fn free(&self, number: u32) {
        let pty = self.pairs.lock().remove(&number);
        drop(pty);
    }

    fn pair(&self, number: u32) -> Option<Arc<Pty>> {
        self.pairs.lock().get(&number).cloned()
    }
}

struct Ptmx(Arc<Pairs>);

impl Device for Ptmx {
    fn open(&self, caller: &dyn Caller, _path: &Path, _minor: u32, _flags: u32) -> Result<Arc<dyn File>> {
        self.0.open_master(caller)
    }
}

struct Slaves(Arc<Pairs>);

impl Device for Slaves {
    fn open(&self, caller: &dyn Caller, _path: &Path, minor: u32, open: u32) -> Result<Arc<dyn File>> {
        self.0.pair(minor).ok_or(Errno::EIO)?.open_by(caller, open)
    }
}

/// The file system at /dev/pts.
pub struct DevPts {
    root: Arc<Root>,
}

impl DevPts {
    pub fn new(pairs: Arc<Pairs>) -> Arc<DevPts> {
        Arc::new(DevPts { root: Arc::new(Root { pairs }) })
    }
}

impl FileSystem for DevPts {
    fn name(&self) -> &'static str {
        "devpts"
    }
    fn root(&self) -> Arc<dyn Inode> {
        self.root.clone()
    }
    fn stat(&self) -> Result<FsStat> {
        Ok(FsStat { magic: DEVPTS_MAGIC, block_size: 4096, name_max: 255, ..FsStat::default() })
    }
    fn dev(&self) -> u64 {
        self.root.pairs.dev
    }
}

struct Root {
    pairs: Arc<Pairs>,
}

/// The multiplexer's name among the slaves.
const PTMX: &[u8] = b"ptmx";

impl Inode for Root {
    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn attr(&self) -> Result<Attr> {
        Ok(Attr {
            dev: self.pairs.dev,
            ino: 1,
            mode: FileKind::Directory as u32 | 0o755,
            nlink: 2,
            blksize: 4096,
            ..Attr::default()
        })
    }

    fn lookup(&self, _caller: &dyn Caller, name: &[u8]) -> Result<Arc<dyn Inode>> {
        if name == PTMX {
            let attr = Attr {
                dev: self.pairs.dev,
                ino: 2,
                mode: FileKind::CharDevice as u32 | 0o666,
                nlink: 1,
                rdev: device::number(5, 2),
                blksize: 4096,
                ..Attr::default()
            };
            return Ok(Arc::new(Node { attr: Mutex::new(attr), pty: None }));
        }
        let number: u32 = core::str::from_utf8(name).ok().and_then(|name| name.parse().ok()).ok_or(Errno::ENOENT)?;
        if format!("{number}").as_bytes() != name {
            return Err(Errno::ENOENT);
        }
        let pty = self.pairs.pair(number).ok_or(Errno::ENOENT)?;
        let attr = *pty.attr.lock();
        Ok(Arc::new(Node { attr: Mutex::new(attr), pty: Some(pty) }))
    }

    fn readdir(&self, _caller: &dyn Caller, _from: u64, emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        let kind = FileKind::CharDevice.dirent();
        if !emit(&DirEntry { ino: 2, next: 1, kind, name: PTMX }) {
            return Ok(());
        }
        for (number, next) in self.pairs.pairs.lock().keys().zip(2..) {
            let name = format!("{number}");
            if !emit(&DirEntry { ino: u64::from(*number) + 3, next, kind, name: name.as_bytes() }) {
                break;
            }
        }
        Ok(())
    }

    fn open(self: Arc<Self>, _caller: &dyn Caller, _flags: u32) -> Result<Arc<dyn File>> {
        Ok(Arc::new(Snapshot::new(self)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Node {
    attr: Mutex<Attr>,
    pty: Option<Arc<Pty>>,
}

impl Inode for Node {
    fn kind(&self) -> FileKind {
        FileKind::CharDevice
    }

    fn attr(&self) -> Result<Attr> {
        Ok(match &self.pty {
            Some(pty) => *pty.attr.lock(),
            None => *self.attr.lock(),
        })
    }

    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        let mut attr = match &self.pty {
            Some(pty) => pty.attr.lock(),
            None => self.attr.lock(),
        };
        if let Some(mode) = change.mode {
            attr.mode = attr.mode & !0o7777 | mode & 0o7777;
        }
        attr.uid = change.uid.unwrap_or(attr.uid);
        attr.gid = change.gid.unwrap_or(attr.gid);
        attr.atime = change.atime.unwrap_or(attr.atime);
        attr.mtime = change.mtime.unwrap_or(attr.mtime);
        attr.ctime = change.ctime.unwrap_or(attr.ctime);
        Ok(())
    }

    fn open(self: Arc<Self>, _caller: &dyn Caller, _flags: u32) -> Result<Arc<dyn File>> {
        // Devices are opened by their driver.
        Err(Errno::ENXIO)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
