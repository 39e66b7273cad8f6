//! Mounts: file systems attached to places, as a tree.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::hash::BuildHasherDefault;
use core::sync::atomic::{AtomicU32, Ordering};

use bitflags::bitflags;
use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_rt::{AtomicU64, RwLock, RwLockReadGuard, WaitQueue};

use crate::caller::Caller;
use crate::file::Events;
use crate::lease::Leases;
use crate::vfs::Vfs;
use crate::vfs::dentry::{Dentry, NameHasher, take_apart};
use crate::vfs::inode::Inode;
use crate::vfs::path::Path;
use crate::vfs::remembered::changing;
use crate::vfs::watch::Watches;

bitflags! {
    /// Flags of a mount, with the values statfs(2) reports (ST_*).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct MountFlags: u32 {
        const RDONLY = 1;
        const NOSUID = 2;
        const NODEV = 4;
        const NOEXEC = 8;
        const SYNCHRONOUS = 16;
        const NOATIME = 1024;
        const NODIRATIME = 2048;
        const RELATIME = 4096;
        const NOSYMFOLLOW = 8192;
    }
}

/// What statfs(2) reports of a file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FsStat {
    /// The magic number of statfs(2).
    pub magic: u64,
    pub block_size: u64,
    /// In blocks.
    pub blocks: u64,
    pub blocks_free: u64,
    pub blocks_available: u64,
    pub files: u64,
    pub files_free: u64,
    pub fsid: u64,
    pub name_max: u64,
}

/// A file system: a tree of inodes that can be mounted.
pub trait FileSystem: Send + Sync + Any {
    /// Its type, as /proc/mounts shows it.
    fn name(&self) -> &'static str;
    fn root(&self) -> Arc<dyn Inode>;
    fn stat(&self) -> Result<FsStat>;
    /// The same for one of its files, where others' file systems are within this one.
    fn stat_of(&self, _inode: &dyn Inode) -> Result<FsStat> {
        self.stat()
    }
    /// `st_dev` of its files.
    fn dev(&self) -> u64;
    /// Whether it refuses every change, however it is mounted.
    fn read_only(&self) -> bool {
        false
    }
    /// Its own options for /proc/mounts: "size=1024k,mode=755".
    fn options(&self) -> String {
        String::new()
    }
    /// New options by remount.
    fn reconfigure(&self, _options: &[u8]) -> Result<()> {
        Ok(())
    }
    /// Writes everything back (sync).
    fn sync(&self) -> Result<()> {
        Ok(())
    }
    /// The same for what one of its files is on (syncfs), where others' file systems are within this one.
    fn sync_of(&self, _inode: &dyn Inode) -> Result<()> {
        self.sync()
    }
    /// Whether [`FileSystem::sync`] may take as long as a disk does.
    fn sync_blocks(&self) -> bool {
        false
    }
    /// The machine is about to go off and nothing runs any more: the file system is left as it should be found.
    fn finish(&self) -> Result<()> {
        Ok(())
    }
}

/// A kind of file system that mount(2) knows by name.
pub trait FsType: Send + Sync {
    /// A file system made from mount(2)'s source and options. EINVAL for options it does not know.
    fn mount(&self, vfs: &Vfs, caller: &dyn Caller, source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>>;
}

impl<F> FsType for F
where
    F: Fn(&Vfs, &dyn Caller, &[u8], &[u8]) -> Result<Arc<dyn FileSystem>> + Send + Sync,
{
    fn mount(&self, vfs: &Vfs, caller: &dyn Caller, source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>> {
        self(vfs, caller, source, options)
    }
}

/// A file system attached to a place.
pub struct Mount {
    pub id: u64,
    pub fs: Arc<dyn FileSystem>,
    /// What is seen at the place: the root of the file system, or any place in it (bind mounts).
    pub root: Arc<Dentry>,
    /// As given to mount(2).
    pub source: Box<[u8]>,
    flags: AtomicU32,
    parent: RwLock<Option<Path>>,
    /// The root has something above it in its file system, so that a directory can be moved out of what is seen here.
    pub(super) partial: bool,
    /// Where changes to files reached through here are reported.
    pub watches: Arc<Watches>,
    pub leases: Arc<Leases>,
}

impl Mount {
    /// A mount that is attached nowhere.
    pub fn detached(
        vfs: &Vfs,
        id: u64,
        fs: Arc<dyn FileSystem>,
        root: Arc<Dentry>,
        source: &[u8],
        flags: MountFlags,
    ) -> Arc<Mount> {
        Arc::new(Mount {
            id,
            fs,
            partial: root.parent().is_some(),
            root,
            source: source.into(),
            flags: AtomicU32::new(flags.bits()),
            parent: RwLock::new(None),
            watches: vfs.watches.clone(),
            leases: vfs.leases.clone(),
        })
    }

    pub fn flags(&self) -> MountFlags {
        MountFlags::from_bits_retain(self.flags.load(Ordering::Acquire))
    }

    fn set_flags(&self, flags: MountFlags) {
        self.flags.store(flags.bits(), Ordering::Release);
        // Links may no longer be followed here.
        changing();
    }

    /// EROFS unless names and files here may be changed.
    pub fn check_write(&self) -> Result<()> {
        if self.flags().contains(MountFlags::RDONLY) || self.fs.read_only() { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// Where it is attached; `None` for the first of all and for detached ones.
    pub fn parent(&self) -> Option<Path> {
        self.parent.read().clone()
    }

    /// "rw,nosuid,relatime": the mount's own options, as /proc/mounts shows them.
    pub fn options(&self) -> String {
        let flags = self.flags();
        let mut text = String::from(if self.check_write().is_err() { "ro" } else { "rw" });
        for (flag, name) in [
            (MountFlags::NOSUID, ",nosuid"),
            (MountFlags::NODEV, ",nodev"),
            (MountFlags::NOEXEC, ",noexec"),
            (MountFlags::NOATIME, ",noatime"),
            (MountFlags::NODIRATIME, ",nodiratime"),
            (MountFlags::RELATIME, ",relatime"),
            (MountFlags::NOSYMFOLLOW, ",nosymfollow"),
        ] {
            if flags.contains(flag) {
                text.push_str(name);
            }
        }
        text
    }
}

/// Most mounts there may be (Linux' fs.mount-max).
const MOST_MOUNTS: usize = 100_000;

type Point = (u64, usize);

#[derive(Default)]
struct Table {
    by_point: HashMap<Point, Arc<Mount>, BuildHasherDefault<NameHasher>>,
    by_id: BTreeMap<u64, Arc<Mount>>,
}

/// All mounts.
pub(super) struct Mounts {
    table: RwLock<Table>,
    /// Held by who has a list of them that is no use.
    listing: RwLock<()>,
    next_id: AtomicU64,
    changes: Changes,
}

/// How often mounts have come, gone, moved or changed their flags, and who waits for that (proc_pid_mounts(5)).
#[derive(Default)]
pub struct Changes {
    count: AtomicU64,
    queue: WaitQueue,
}

impl Changes {
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    pub fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.queue.wake((Events::ERR | Events::PRI).bits());
    }
}

fn point(path: &Path) -> Point {
    (path.mount.id, Arc::as_ptr(&path.dentry).addr())
}

/// The mounts, locked against changes.
pub(super) struct Known<'a>(RwLockReadGuard<'a, Table>);

impl Known<'_> {
    /// What is mounted right on a dentry of a mount.
    pub fn on(&self, mount: &Arc<Mount>, dentry: &Arc<Dentry>) -> Option<&Arc<Mount>> {
        self.0.by_point.get(&(mount.id, Arc::as_ptr(dentry).addr()))
    }
}

impl Table {
    /// Puts a mount that is attached nowhere on a place, above what is mounted there.
    fn put(&mut self, mount: &Arc<Mount>, at: &Path) {
        let mut at = at.clone();
        while let Some(over) = self.by_point.get(&point(&at)) {
            at = Path { mount: over.clone(), dentry: over.root.clone() };
        }
        at.dentry.mounted(true);
        self.by_point.insert(point(&at), mount.clone());
        self.by_id.insert(mount.id, mount.clone());
        changing();
        *mount.parent.write() = Some(at);
    }

    /// The mount and all that are mounted below it, each behind the one it is mounted on. A list, since a guest decides how deep they are.
    fn tree(&self, top: &Arc<Mount>) -> Vec<Arc<Mount>> {
        let mut on: BTreeMap<u64, Vec<&Arc<Mount>>> = BTreeMap::new();
        for mount in self.by_id.values() {
            if let Some(place) = mount.parent() {
                on.entry(place.mount.id).or_default().push(mount);
            }
        }
        let mut tree = alloc::vec![top.clone()];
        let mut next = 0;
        while let Some(mount) = tree.get(next) {
            let below = on.remove(&mount.id).unwrap_or_default();
            tree.extend(below.into_iter().cloned());
            next += 1;
        }
        tree
    }

    /// Takes a mount off its place: which. EINVAL for what is attached nowhere.
    fn take_off(&mut self, mount: &Mount) -> Result<Path> {
        let from = mount.parent.write().take().ok_or(Errno::EINVAL)?;
        changing();
        from.dentry.mounted(false);
        self.by_point.remove(&point(&from));
        Ok(from)
    }
}

/// Whether a mount can be attached to a place. ENOTDIR, ENOENT.
fn check_place(mount: &Mount, at: &Path) -> Result<()> {
    if mount.root.is_dir() != at.dentry.is_dir() {
        return Err(Errno::ENOTDIR);
    }
    if at.dentry.is_deleted() { Err(Errno::ENOENT) } else { Ok(()) }
}

impl Mounts {
    pub fn new() -> Mounts {
        Mounts {
            table: RwLock::new(Table::default()),
            listing: RwLock::new(()),
            next_id: AtomicU64::new(1),
            changes: Changes::default(),
        }
    }

    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The table, if nobody changes it just now.
    pub fn known(&self) -> Option<Known<'_>> {
        self.table.try_read().map(Known)
    }

    /// What is mounted right on a place.
    pub fn on(&self, path: &Path) -> Option<Arc<Mount>> {
        self.table.read().by_point.get(&point(path)).cloned()
    }
}

impl Vfs {
    /// A mount of `fs` that is attached nowhere yet.
    pub fn new_mount(&self, fs: Arc<dyn FileSystem>, source: &[u8], flags: MountFlags) -> Arc<Mount> {
        let root = Dentry::root(fs.root());
        Mount::detached(self, self.mounts.id(), fs, root, source, flags)
    }

    /// Makes `mount` the first of all: where "/" leads.
    pub fn set_root(&self, mount: &Arc<Mount>) {
        self.mounts.table.write().by_id.insert(mount.id, mount.clone());
    }

    /// Attaches a mount to a place (which is then hidden). EBUSY when it is attached already, ENOTDIR when a directory would
    /// hide another kind of file or the reverse, EINVAL for a place in a mount that has been taken off, ENOSPC beyond [`MOST_MOUNTS`].
    pub fn attach(&self, mount: &Arc<Mount>, at: &Path) -> Result<()> {
        let mut table = self.mounts.table.write();
        check_place(mount, at)?;
        if !table.by_id.contains_key(&at.mount.id) {
            return Err(Errno::EINVAL);
        }
        if table.by_id.len() >= MOST_MOUNTS {
            return Err(Errno::ENOSPC);
        }
        if mount.parent.read().is_some() {
            return Err(Errno::EBUSY);
        }
        table.put(mount, at);
        drop(table);
        self.mounts.changes.add();
        Ok(())
    }

    /// Mounts a file system on a place.
    pub fn mount(&self, fs: Arc<dyn FileSystem>, source: &[u8], flags: MountFlags, at: &Path) -> Result<Arc<Mount>> {
        let mount = self.new_mount(fs, source, flags);
        self.attach(&mount, at)?;
        Ok(mount)
    }

    /// Shows `from` at `at` as well (MS_BIND); with `recursive` the mounts below it too (MS_REC).
    pub fn bind(&self, from: &Path, at: &Path, recursive: bool) -> Result<Arc<Mount>> {
        let copy = |of: &Arc<Mount>, root: &Arc<Dentry>| {
            Mount::detached(self, self.mounts.id(), of.fs.clone(), root.clone(), &of.source, of.flags())
        };
        let top = copy(&from.mount, &from.dentry);
        // The mounts below are found before the new one is attached, so that binding "/" into itself ends.
        let below = if recursive { self.mounts.table.read().tree(&from.mount) } else { Vec::new() };
        if below.len() > MOST_MOUNTS / 2 {
            return Err(Errno::ENOSPC);
        }
        let mut copies = BTreeMap::from([(from.mount.id, top.clone())]);
        let mut attach: Vec<(Arc<Mount>, Path)> = Vec::new();
        for old in below.iter().skip(1) {
            let Some(place) = old.parent() else { continue };
            let Some(new) = copies.get(&place.mount.id).filter(|new| place.dentry.is_below(&new.root)) else { continue };
            let made = copy(old, &old.root);
            attach.push((made.clone(), Path { mount: new.clone(), dentry: place.dentry }));
            copies.insert(old.id, made);
        }
        self.attach(&top, at)?;
        for (mount, place) in attach {
            if let Err(errno) = self.attach(&mount, &place) {
                // All of the tree or nothing.
                self.detach(&top, true)?;
                return Err(errno);
            }
        }
        Ok(top)
    }

    /// Shows `at` there again by itself, as the file system `fs`, whose files those are.
    pub fn show_as(&self, fs: Arc<dyn FileSystem>, source: &[u8], flags: MountFlags, at: &Path) -> Result<()> {
        self.attach(&Mount::detached(self, self.mounts.id(), fs, at.dentry.clone(), source, flags), at)
    }

    /// Takes a mount off its place. EBUSY while others are mounted below it, unless `lazy`, which takes those along; EINVAL
    /// for what is attached nowhere. Whether files of it are in use is the caller's to judge.
    pub fn detach(&self, mount: &Arc<Mount>, lazy: bool) -> Result<()> {
        let mut table = self.mounts.table.write();
        let tree = table.tree(mount);
        if tree.len() > 1 && !lazy {
            return Err(Errno::EBUSY);
        }
        for mount in tree.iter().rev() {
            table.take_off(mount)?;
            table.by_id.remove(&mount.id);
        }
        let last = !table.by_id.values().any(|other| Arc::ptr_eq(&other.fs, &mount.fs));
        drop(table);
        self.mounts.changes.add();
        if last && !lazy {
            take_apart(&mount.root);
        }
        Ok(())
    }

    /// Moves an attached mount to another place (MS_MOVE). ELOOP when that is below it; what fails changes nothing.
    pub fn move_mount(&self, mount: &Arc<Mount>, to: &Path) -> Result<()> {
        let mut table = self.mounts.table.write();
        check_place(mount, to)?;
        let mut above = Some(to.clone());
        while let Some(path) = above {
            if path.mount.id == mount.id {
                return Err(Errno::ELOOP);
            }
            above = path.mount.parent();
        }
        table.take_off(mount)?;
        table.put(mount, to);
        drop(table);
        self.mounts.changes.add();
        Ok(())
    }

    /// pivot_root(2) on mounts: `new` becomes the first of all and the old first is attached to `put_old`. EINVAL when that is not at or
    /// below the root of `new`.
    pub fn pivot(&self, new: &Arc<Mount>, old: &Arc<Mount>, put_old: &Path) -> Result<()> {
        let mut table = self.mounts.table.write();
        check_place(old, put_old)?;
        // Looked at where no mount can be moved meanwhile: a place below the old root would make a ring of the two.
        if !put_old.is_below(&Path::of_mount(new)) {
            return Err(Errno::EINVAL);
        }
        table.take_off(new)?;
        let place = old.parent.write().take();
        if let Some(from) = place {
            // The old root was itself mounted somewhere: the new one takes its place.
            table.by_point.insert(point(&from), new.clone());
            *new.parent.write() = Some(from);
        }
        table.put(old, put_old);
        drop(table);
        self.mounts.changes.add();
        Ok(())
    }

    /// Gives a mount other flags (MS_REMOUNT).
    pub fn set_mount_flags(&self, mount: &Mount, flags: MountFlags) {
        mount.set_flags(flags);
        self.mounts.changes.add();
    }

    /// Changes of the mounts.
    pub fn mount_changes(&self) -> &Changes {
        &self.mounts.changes
    }

    /// Does something with a list of all mounts that counts as no use of them: [`Vfs::detach_unused`] waits for its end.
    pub fn list_mounts<T>(&self, act: impl FnOnce(Vec<Arc<Mount>>) -> T) -> T {
        let _listing = self.mounts.listing.read();
        act(self.mounts())
    }

    /// Takes a mount off its place, unless it is held by more than the table and `own` others. EBUSY.
    pub fn detach_unused(&self, mount: &Arc<Mount>, own: usize) -> Result<()> {
        /// What the table has of it: its two indices.
        const TABLE: usize = 2;
        let listing = self.mounts.listing.write();
        let unused = Arc::strong_count(mount) <= TABLE + own;
        drop(listing);
        if unused { self.detach(mount, false) } else { Err(Errno::EBUSY) }
    }

    /// All mounts, oldest first.
    pub fn mounts(&self) -> Vec<Arc<Mount>> {
        self.mounts.table.read().by_id.values().cloned().collect()
    }

    /// Follows what is mounted on a place, to the uppermost.
    #[inline]
    pub fn cross(&self, path: &mut Path) -> bool {
        let mut crossed = false;
        while path.dentry.is_mounted_on() {
            let Some(mount) = self.mounts.on(path) else { break };
            path.dentry = mount.root.clone();
            path.mount = mount;
            crossed = true;
        }
        crossed
    }
}
