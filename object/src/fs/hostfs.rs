//! A directory of the host as a file system.
//!
//! Names are resolved by our own walker one component at a time; the host is asked for one component below an open directory,
//! or for a chain of real directories below the root with RESOLVE_BENEATH and without links, so nothing outside is reached
//! however the host's tree changes. Directories and files are opened when needed and their descriptors kept in a bounded
//! cache; one that was dropped is opened again by its place.
//!
//! Two modes: a *bind* asks the host every time (names and attributes are those of the moment but for [`lately`], one inode per host file); the
//! *snapshot* below an overlay remembers attributes from the first look. A walk through known directories of a bind asks once,
//! for all names together ([`HostInode::check_names`]): a link that somebody outside has put into the middle is then followed by the
//! host, and what is found counts only if it is the known file.
//!
//! Lock order: `place` of a file, then upwards; `fds`; the cache's queue.

mod file;
pub mod frozen;
mod inode;
mod lately;
mod open;
mod xattr;

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_kernel::wait::EVENTS;
use janua_port::host::HostStat;
use janua_port::{Host, HostFd, HostFiles, Machine, Nanos, OwnedFd};
use janua_rt::{AtomicU64, Mutex};

use crate::caller::Cred;
use crate::file::flags;
use crate::vfs::inode::{Attr, FileKind, Inode};
use crate::vfs::{Busy, FileSystem, FsStat, NameHasher, Resolve, Slot};

use lately::{Looks, Moment, Ways};

pub use lately::Change;

/// Inodes whose descriptors are kept open, and which part of the machine's descriptors they may have.
const CACHED_FDS: usize = 1024;
const CACHED_PART: usize = 16;

const COPIES: u8 = 1;

/// Of [`HostInode::no_exec`]: it is so.
const NO_EXEC: u8 = 1;

/// How the host walks for us: never out of the directory, never through a link.
const BENEATH: u64 = Resolve::BENEATH.bits() | Resolve::NO_SYMLINKS.bits() | Resolve::NO_MAGICLINKS.bits();

/// What the inodes of one host directory share.
struct Shared {
    host: &'static dyn HostFiles,
    machine: &'static dyn Machine,
    dev: u64,
    writable: bool,
    /// The root is the host's.
    top: bool,
    /// Ask the host every time.
    fresh: bool,
    /// A file has been found under another name than before (binds only).
    several_names: AtomicBool,
    ways: Ways,
    looks: Looks,
    /// The host has getxattrat(2), as far as is known.
    asks_by_name: AtomicBool,
    /// One inode per host file (binds only).
    known: Mutex<Known>,
    /// Inodes with open descriptors, oldest first, and how many there may be.
    open: Mutex<VecDeque<Weak<HostInode>>>,
    cached: usize,
    /// The host device of the root.
    root_dev: u64,
    /// Whether reads of a device's files copy ([`HostFiles::reads_copy`]); of the root's, 0 as long as it is not known, or [`COPIES`] or not.
    root_copies: AtomicU8,
    copies: Mutex<Vec<(u64, bool)>>,
    /// The buffer of the last listing, for the next.
    listing: Mutex<Vec<u8>>,
}

/// Host devices met below binds and overlays whose roots are on others.
static FURTHER: Mutex<Vec<u64>> = Mutex::new(Vec::new());

type Known = HashMap<(u64, u64), Weak<HostInode>, core::hash::BuildHasherDefault<NameHasher>>;

impl Shared {
    /// An inode number unique in this file system: files of further host devices differ in the upper bits.
    fn ino(&self, dev: u64, ino: u64) -> u64 {
        if dev == self.root_dev {
            return ino;
        }
        let mut devs = FURTHER.lock();
        let index = devs.iter().position(|known| *known == dev).unwrap_or_else(|| {
            devs.push(dev);
            devs.len() - 1
        });
        ino ^ (index as u64 + 1) << 48
    }

    /// Sets in a descriptor of a regular file of device `dev` whether reads of it copy.
    fn note_copies(&self, dev: u64, fd: &OwnedFd) {
        let ask = || self.host.reads_copy(fd.fd());
        if dev == self.root_dev {
            let known = match self.root_copies.load(Ordering::Relaxed) {
                0 => {
                    let copies = if ask() { COPIES } else { COPIES + 1 };
                    self.root_copies.store(copies, Ordering::Relaxed);
                    copies
                }
                known => known,
            };
            return fd.set_copies(known == COPIES);
        }
        let mut all = self.copies.lock();
        let copies = all.iter().find(|(known, _)| *known == dev).map(|(_, copies)| *copies).unwrap_or_else(|| {
            let copies = ask();
            all.push((dev, copies));
            copies
        });
        fd.set_copies(copies);
    }

    /// Notes that an inode has opened descriptors, and closes the oldest others when there are too many.
    fn opened(&self, inode: &Weak<HostInode>) {
        let mut queue = self.open.lock();
        queue.push_back(inode.clone());
        if queue.len() <= self.cached {
            return;
        }
        let oldest = queue.pop_front();
        drop(queue);
        if let Some(oldest) = oldest.and_then(|weak| weak.upgrade()) {
            self.forget(&oldest);
        }
    }

    /// Closes the descriptors an inode has kept, unless it must keep them.
    fn forget(&self, inode: &Arc<HostInode>) {
        let mut fds = inode.fds.lock();
        if fds.pinned {
            drop(fds);
            self.open.lock().push_back(Arc::downgrade(inode));
        } else {
            // Users in the middle of a call have their own handle.
            let kept = (fds.path.take(), fds.read.take(), fds.made.take());
            drop(fds);
            drop(kept);
        }
    }

    /// [`HostFiles::open`]. Where there is no descriptor left for the caller, those that are only kept for the next time go first.
    fn open(&self, dir: &OwnedFd, path: &[u8], open: u32, mode: u32, resolve: u64) -> Result<Arc<OwnedFd>> {
        let again = || self.host.open(dir.fd(), path, open, mode, resolve);
        let fd = again().or_else(|errno| {
            if errno != Errno::ENFILE {
                return Err(errno);
            }
            let kept = core::mem::take(&mut *self.open.lock());
            kept.iter().filter_map(Weak::upgrade).for_each(|inode| self.forget(&inode));
            again()
        });
        Ok(OwnedFd::of_file(self.host, fd?))
    }
}

#[derive(Default)]
struct Fds {
    /// Opened without rights to the contents (O_PATH), for directories that may be searched but not read.
    path: Option<Arc<OwnedFd>>,
    /// Opened for reading.
    read: Option<Arc<OwnedFd>>,
    /// What making the file left open, for reading and writing: for who opens it next.
    made: Option<Arc<OwnedFd>>,
    /// Used by an open file: as good as `read` for asking after the file.
    lent: Weak<OwnedFd>,
    /// `read` has not been listed from since it was opened, so its position is the start.
    at_start: bool,
    /// Never to be closed: the root, and files whose name is gone.
    pinned: bool,
}

impl Fds {
    fn any(&self) -> Option<Arc<OwnedFd>> {
        self.read.clone().or_else(|| self.path.clone()).or_else(|| self.lent.upgrade())
    }

    /// One that was opened for the contents, whatever for.
    fn of_contents(&self) -> Option<Arc<OwnedFd>> {
        self.read.clone().or_else(|| self.made.clone()).or_else(|| self.lent.upgrade())
    }
}

struct Place {
    /// `None` for the root.
    dir: Option<Arc<HostInode>>,
    name: Arc<[u8]>,
}

/// A file of the host.
pub struct HostInode {
    shared: Arc<Shared>,
    this: Weak<HostInode>,
    kind: FileKind,
    /// The host's names for the file: device and inode number, and when it was made, since numbers are given again.
    id: (u64, u64),
    born: i64,
    stat: Mutex<HostStat>,
    /// When `stat` was asked for, monotonic nanoseconds; 0 when it is known to be out of date.
    looked: AtomicU64,
    /// Before it was asked for ([`lately`]), written with `stat` locked.
    events: AtomicU64,
    changes: AtomicU64,
    place: Mutex<Place>,
    /// It has been found under another name than before: its place is to be the last name that was seen to be its own, for the others may
    /// be gone.
    several_names: AtomicBool,
    fds: Mutex<Fds>,
    /// Whether the host runs nothing that is there: 0 as long as nobody has asked, or [`NO_EXEC`] or not.
    no_exec: AtomicU8,
    /// The host's own /proc: shown empty, since it shows the processes that carry the sandbox and reaches into them.
    hidden: bool,
    /// Held while something is written behind the end.
    append: Mutex<()>,
    fifo: Slot,
    socket: Slot,
    busy: Busy,
}

/// A host directory as a file system.
pub struct HostFs {
    shared: Arc<Shared>,
    root: Arc<HostInode>,
}

impl HostFs {
    /// The host directory or file `fd` (which is then owned by the result) as it is at every moment. `top`: it is the host's root
    /// directory, so that nothing in the sandbox can be above it.
    pub fn bind(machine: &'static dyn Machine, dev: u64, fd: HostFd, writable: bool, top: bool) -> Result<Arc<HostFs>> {
        HostFs::new(machine, dev, fd, writable, true, top)
    }

    /// The host directory `fd` as it is at the first look, read-only.
    pub fn snapshot(machine: &'static dyn Machine, dev: u64, fd: HostFd, top: bool) -> Result<Arc<HostFs>> {
        HostFs::new(machine, dev, fd, false, false, top)
    }

    fn new(machine: &'static dyn Machine, dev: u64, fd: HostFd, writable: bool, fresh: bool, top: bool) -> Result<Arc<HostFs>> {
        let host = machine.host().and_then(Host::files).ok_or(Errno::ENODEV)?;
        let owned = OwnedFd::of_file(host, fd);
        let stat = host.stat(fd)?;
        if writable {
            frozen::note_writable(&stat);
            frozen::note_begin(machine.clock().realtime());
        }
        let shared = Arc::new(Shared {
            host,
            machine,
            dev,
            writable,
            top,
            fresh,
            several_names: AtomicBool::new(false),
            asks_by_name: AtomicBool::new(true),
            ways: Ways::default(),
            looks: Looks::default(),
            known: Mutex::default(),
            open: Mutex::default(),
            cached: CACHED_FDS.min(machine.accounts().descriptors.all.limit() / CACHED_PART),
            root_dev: stat.dev,
            root_copies: AtomicU8::new(0),
            copies: Mutex::default(),
            listing: Mutex::default(),
        });
        let root = HostInode::make(&shared, stat, None, Arc::from(&b""[..]), false)?;
        {
            let mut fds = root.fds.lock();
            fds.path = Some(owned);
            fds.pinned = true;
        }
        Ok(Arc::new(HostFs { shared, root }))
    }

    pub fn root_inode(&self) -> Arc<HostInode> {
        self.root.clone()
    }
}

impl FileSystem for HostFs {
    fn name(&self) -> &'static str {
        "host"
    }
    fn root(&self) -> Arc<dyn Inode> {
        self.root.clone()
    }
    fn stat(&self) -> Result<FsStat> {
        self.root.file_system()
    }
    fn stat_of(&self, inode: &dyn Inode) -> Result<FsStat> {
        of_host(inode).unwrap_or(&self.root).file_system()
    }
    fn dev(&self) -> u64 {
        self.shared.dev
    }
    fn read_only(&self) -> bool {
        !self.shared.writable
    }
    fn sync(&self) -> Result<()> {
        self.root.sync_all()
    }
    fn sync_of(&self, inode: &dyn Inode) -> Result<()> {
        of_host(inode).unwrap_or(&self.root).sync_all()
    }
    fn sync_blocks(&self) -> bool {
        self.shared.writable
    }
}

/// Bytes of entries the host is asked for at once.
const LISTING: usize = 32 * 1024;
/// How old the mode and owner of a file of a bind may be when permissions are checked, nanoseconds.
const PERM_AGE: u64 = 1_000_000_000;

/// The longest time between two ticks of a host, by which it stamps files. Nanoseconds.
const TICK: i64 = 10_000_000;

impl HostInode {
    fn make(
        shared: &Arc<Shared>,
        stat: HostStat,
        dir: Option<Arc<HostInode>>,
        name: Arc<[u8]>,
        hidden: bool,
    ) -> Result<Arc<HostInode>> {
        let kind = FileKind::of_mode(stat.mode).ok_or(Errno::EIO)?;
        Ok(Arc::new_cyclic(|this| HostInode {
            shared: shared.clone(),
            this: this.clone(),
            kind,
            id: (stat.dev, stat.ino),
            born: stat.btime,
            stat: Mutex::new(stat),
            looked: AtomicU64::new(shared.machine.clock().monotonic()),
            events: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            place: Mutex::new(Place { dir, name }),
            several_names: AtomicBool::new(false),
            fds: Mutex::default(),
            no_exec: AtomicU8::new(0),
            hidden,
            append: Mutex::new(()),
            fifo: Slot::new(),
            socket: Slot::new(),
            busy: Busy::new(),
        }))
    }

    fn host(&self) -> &'static dyn HostFiles {
        self.shared.host
    }

    /// What statfs(2) reports of what the file is on, which may be another file system of the host's than the root.
    pub fn file_system(&self) -> Result<FsStat> {
        let words = self.host().statfs(self.any_fd()?.fd())?;
        Ok(FsStat {
            magic: words[0],
            block_size: words[1],
            blocks: words[2],
            blocks_free: words[3],
            blocks_available: words[4],
            files: words[5],
            files_free: words[6],
            fsid: words[7],
            name_max: words[8],
        })
    }

    /// Writes all back that is on the file system of the host's that the file is on. Nothing that was not written here has to be.
    fn sync_all(&self) -> Result<()> {
        if !self.shared.writable {
            return Ok(());
        }
        let open = self.fds.lock().of_contents();
        let fd = match (self.kind, open) {
            (FileKind::Directory | FileKind::Regular, Some(fd)) => fd,
            (FileKind::Directory | FileKind::Regular, None) => self.reader()?,
            // These have nothing that could be opened; the directory they are in is on the same file system.
            _ => {
                let dir = self.place.lock().dir.clone();
                dir.ok_or(Errno::ESTALE)?.reader()?
            }
        };
        self.host().sync_fs(fd.fd())
    }

    /// Takes over what the host reports of the file.
    fn saw(&self, stat: HostStat) {
        self.saw_at(stat, Moment::default());
    }

    /// Whether `stat` is of this file.
    fn is(&self, stat: &HostStat) -> bool {
        (self.id, self.born) == ((stat.dev, stat.ino), stat.btime) && Some(self.kind) == FileKind::of_mode(stat.mode)
    }

    /// The host's name for the file: device and inode number.
    pub fn id(&self) -> (u64, u64) {
        self.id
    }

    /// The file of that name. ENOENT.
    pub fn child(&self, name: &[u8]) -> Result<Arc<HostInode>> {
        if self.hidden {
            return Err(Errno::ENOENT);
        }
        let dir = self.any_fd()?;
        let stat = self.host().stat_at(dir.fd(), name)?;
        self.adopt(stat, name)
    }

    /// After a rename: whatever file is `name` here by now, if it is known at all, has its place here.
    fn settle_in(&self, name: &[u8]) {
        let Ok(stat) = self.any_fd().and_then(|dir| self.host().stat_at(dir.fd(), name)) else { return };
        let known = self.shared.known.lock().get(&(stat.dev, stat.ino)).and_then(Weak::upgrade);
        if let Some(inode) = known.filter(|inode| inode.is(&stat)) {
            inode.saw(stat);
            let place = Place { dir: self.this.upgrade(), name: Arc::from(name) };
            let old = core::mem::replace(&mut *inode.place.lock(), place);
            drop(old);
        }
    }

    /// The file is `name` in that directory: its place from now on. The root has none.
    fn found_in(&self, dir: Arc<HostInode>, name: &[u8]) {
        let mut place = self.place.lock();
        let Some(known) = &place.dir else { return };
        if Arc::ptr_eq(known, &dir) && place.name[..] == *name {
            return;
        }
        let old = core::mem::replace(&mut *place, Place { dir: Some(dir), name: Arc::from(name) });
        drop(place);
        drop(old);
        self.note_several_names();
    }

    fn note_several_names(&self) {
        self.several_names.store(true, Ordering::Relaxed);
        self.shared.several_names.store(true, Ordering::Relaxed);
    }

    /// These names, which begin here, lead to `file`, which has several: its place is where the last of them is.
    fn found_below(&self, names: &[u8], file: &HostInode) {
        let name = names.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let dir = match &names[..name] {
            b"" => self.this.upgrade(),
            way => {
                let stat = self.any_fd().and_then(|dir| self.host().stat_at(dir.fd(), way));
                let known = |stat: HostStat| {
                    let dir = self.shared.known.lock().get(&(stat.dev, stat.ino)).and_then(Weak::upgrade);
                    // The number may have been another file's.
                    dir.filter(|dir| dir.is(&stat) && dir.kind == FileKind::Directory)
                };
                stat.ok().and_then(known)
            }
        };
        if let Some(dir) = dir {
            file.found_in(dir, &names[name..]);
        }
    }

    /// Whether the file `name` here is the root of a proc file system.
    fn is_proc(&self, stat: &HostStat, name: &[u8]) -> Result<bool> {
        const PROC_SUPER_MAGIC: u64 = 0x9fa0;
        if stat.dev == self.id().0 || FileKind::of_mode(stat.mode) != Some(FileKind::Directory) {
            return Ok(false);
        }
        let dir = self.any_fd()?;
        let fd = self.shared.open(&dir, name, flags::O_PATH | flags::O_NOFOLLOW, 0, BENEATH)?;
        Ok(self.host().statfs(fd.fd())?[0] == PROC_SUPER_MAGIC)
    }

    /// The inode for a file found in this directory.
    fn adopt(&self, stat: HostStat, name: &[u8]) -> Result<Arc<HostInode>> {
        let dir = self.this.upgrade();
        let hidden = self.is_proc(&stat, name)?;
        if !self.shared.fresh {
            return HostInode::make(&self.shared, stat, dir, Arc::from(name), hidden);
        }
        let mut known = self.shared.known.lock();
        if let Some(inode) = known.get(&(stat.dev, stat.ino)).and_then(Weak::upgrade)
            && inode.is(&stat)
        {
            drop(known);
            inode.saw(stat);
            if let Some(dir) = dir {
                inode.found_in(dir, name);
            }
            return Ok(inode);
        }
        if known.len() >= 1024 && known.len().is_power_of_two() {
            known.retain(|_, weak| weak.strong_count() > 0);
        }
        known.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        let inode = HostInode::make(&self.shared, stat, dir, Arc::from(name), hidden)?;
        known.insert((stat.dev, stat.ino), Arc::downgrade(&inode));
        Ok(inode)
    }

    /// Whether the mount of the host's that the file is on runs nothing (noexec), asked for once. A file that cannot be reached any
    /// more runs nothing either.
    pub fn on_no_exec(&self) -> bool {
        // Of the words of `struct statfs`, and in that.
        const FLAGS: usize = 10;
        const ST_NOEXEC: u64 = 8;
        match self.no_exec.load(Ordering::Relaxed) {
            0 => {
                let Ok(words) = self.any_fd().and_then(|fd| self.host().statfs(fd.fd())) else { return true };
                let no_exec = words[FLAGS] & ST_NOEXEC != 0;
                self.no_exec.store(if no_exec { NO_EXEC } else { NO_EXEC + 1 }, Ordering::Relaxed);
                no_exec
            }
            known => known == NO_EXEC,
        }
    }

    /// Calls `emit` with inode number, DT_* kind and name of each entry, "." and ".." left out, until it returns false.
    pub fn list(&self, emit: &mut dyn FnMut(u64, u8, &[u8]) -> bool) -> Result<()> {
        if self.hidden {
            return Ok(());
        }
        // What distinguishes this device's inode numbers, asked for once.
        let device = self.shared.ino(self.id().0, 0);
        // A position of its own: listings of one directory may run side by side.
        let cached = self.reader()?;
        let fd = if Arc::strong_count(&cached) > 2 {
            self.open_again(&cached, flags::O_RDONLY | flags::O_DIRECTORY)?
        } else {
            // Taken out of the cache while its position is in use.
            let at_start = {
                let mut fds = self.fds.lock();
                fds.read = None;
                core::mem::take(&mut fds.at_start)
            };
            if !at_start {
                self.host().lseek(cached.fd(), 0, 0)?;
            }
            cached
        };
        let mut raw = core::mem::take(&mut *self.shared.listing.lock());
        raw.resize(LISTING, 0);
        let result = 'all: loop {
            let n = match self.host().getdents(fd.fd(), &mut raw) {
                Ok(0) => break Ok(()),
                Ok(n) => n.min(raw.len()),
                Err(errno) => break Err(errno),
            };
            let mut rest = &raw[..n];
            // struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name.
            while rest.len() > 19 {
                let len = usize::from(u16::from_le_bytes([rest[16], rest[17]]));
                if len < 20 || len > rest.len() {
                    break;
                }
                let (entry, after) = rest.split_at(len);
                rest = after;
                let mut ino = [0; 8];
                ino.copy_from_slice(&entry[..8]);
                let name = &entry[19..];
                let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())];
                if name == b"." || name == b".." {
                    continue;
                }
                if !emit(u64::from_le_bytes(ino) ^ device, entry[18], name) {
                    break 'all Ok(());
                }
            }
        };
        EVENTS.advance();
        *self.shared.listing.lock() = raw;
        let mut fds = self.fds.lock();
        if fds.read.is_none() {
            fds.read = Some(fd);
            fds.at_start = false;
        }
        drop(fds);
        result
    }

    /// Where a symbolic link leads.
    pub fn target(&self) -> Result<Vec<u8>> {
        // Most are short, and large buffers come from the slow part of the heap.
        let mut short = [0; 256];
        let open = self.fds.lock().any();
        let (dir, name) = open.map_or_else(|| self.dir_and_name(), |fd| Ok((fd, Arc::from(&b""[..]))))?;
        let n = self.host().readlink(dir.fd(), &name, &mut short)?;
        if n < short.len() {
            return Ok(short[..n].to_vec());
        }
        let mut long = vec![0; 4096];
        let n = self.host().readlink(dir.fd(), &name, &mut long)?;
        long.truncate(n);
        Ok(long)
    }

    fn convert(&self, stat: &HostStat) -> Attr {
        Attr {
            dev: self.shared.dev,
            ino: self.shared.ino(stat.dev, stat.ino),
            mode: stat.mode,
            nlink: u32::try_from(stat.nlink).unwrap_or(u32::MAX),
            uid: stat.uid,
            gid: stat.gid,
            rdev: stat.rdev,
            size: stat.size,
            blksize: stat.blksize,
            blocks: stat.blocks,
            atime: stat.atime,
            mtime: stat.mtime,
            ctime: stat.ctime,
            btime: stat.btime,
            flags: None,
        }
    }

    /// What the host reports now.
    fn fetch(&self) -> Result<HostStat> {
        let open = self.fds.lock().any();
        let stat = match open {
            Some(fd) => self.host().stat(fd.fd())?,
            None => {
                let (dir, name) = self.dir_and_name()?;
                let stat = self.host().stat_at(dir.fd(), &name)?;
                if (stat.dev, stat.ino) != self.id() {
                    return Err(Errno::ESTALE);
                }
                stat
            }
        };
        self.saw(stat);
        Ok(stat)
    }

    /// After a name has been made on the host at `since` or later: its inode, as [`HostInode::made`]. Somebody else who can write to the
    /// directory may have given the name to another file meanwhile: that one stays as it is.
    fn made_here(&self, name: &[u8], mode: u32, gid: u32, cred: &Cred, since: Nanos) -> Result<Arc<HostInode>> {
        let dir = self.any_fd()?;
        let file = self.shared.open(&dir, name, flags::O_PATH | flags::O_NOFOLLOW, 0, BENEATH)?;
        let stat = self.host().stat(file.fd())?;
        // Files carry the time of the host's last tick. Where the host does not report when they were made, that is 0.
        let older = stat.btime != 0 && stat.btime.saturating_add(TICK) < since as i64;
        if older || FileKind::of_mode(stat.mode) != FileKind::of_mode(mode) {
            return self.adopt(stat, name);
        }
        self.made(&file, name, mode, gid, cred)
    }

    /// The inode of a file just made, with the owner and mode the guest's rules give it. `file` is a descriptor of it.
    fn made(&self, file: &OwnedFd, name: &[u8], mode: u32, gid: u32, cred: &Cred) -> Result<Arc<HostInode>> {
        let mut stat = self.host().stat(file.fd())?;
        let mut changed = false;
        if stat.uid != cred.fsuid || stat.gid != gid {
            // The host gives files to its own user; where it does not let them go, they stay that user's.
            changed |= self.host().chown(file.fd(), b"", cred.fsuid, gid).is_ok();
        }
        if FileKind::of_mode(mode) != Some(FileKind::Symlink) && stat.mode & 0o7777 != mode & 0o7777 {
            changed |= self.host().chmod(file.fd(), mode & 0o7777).is_ok();
        }
        if changed {
            stat = self.host().stat(file.fd())?;
        }
        self.adopt(stat, name)
    }

    /// Before a change of anything on the host, which lasts as long as what this returns. EROFS.
    fn change(&self) -> Result<Change> {
        if self.shared.writable { Ok(Change::begin()) } else { Err(Errno::EROFS) }
    }
}

fn of_host(inode: &dyn Inode) -> Option<&HostInode> {
    inode.as_any().downcast_ref()
}

fn host_inode(inode: &Arc<dyn Inode>) -> Result<&HostInode> {
    inode.as_any().downcast_ref::<HostInode>().ok_or(Errno::EXDEV)
}

/// A chain of directories held by its deepest alone is let go link by link.
impl Drop for HostInode {
    fn drop(&mut self) {
        let mut dir = self.place.get_mut().dir.take();
        while let Some(mut inode) = dir.and_then(Arc::into_inner) {
            dir = inode.place.get_mut().dir.take();
        }
    }
}
