//! Inodes: what a file system is made of.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

use bitflags::bitflags;
use janua_abi::linux::stat::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK};
use janua_abi::linux::{Errno, Result};

use crate::caller::{Caller, Cred};
use crate::file::{DirEntry, File};
use crate::vfs::busy::Busy;
use crate::vfs::path::Path;
use crate::vfs::slot::Slot;

/// File types, as the upper bits of `st_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FileKind {
    Fifo = S_IFIFO,
    CharDevice = S_IFCHR,
    Directory = S_IFDIR,
    BlockDevice = S_IFBLK,
    Regular = S_IFREG,
    Symlink = S_IFLNK,
    Socket = S_IFSOCK,
}

impl FileKind {
    /// The kind in a mode word.
    pub fn of_mode(mode: u32) -> Option<FileKind> {
        Some(match mode & S_IFMT {
            S_IFIFO => FileKind::Fifo,
            S_IFCHR => FileKind::CharDevice,
            S_IFDIR => FileKind::Directory,
            S_IFBLK => FileKind::BlockDevice,
            S_IFREG => FileKind::Regular,
            S_IFLNK => FileKind::Symlink,
            S_IFSOCK => FileKind::Socket,
            _ => return None,
        })
    }

    /// The DT_* value of getdents64(2).
    pub fn dirent(self) -> u8 {
        (self as u32 >> 12) as u8
    }
}

bitflags! {
    /// What a file is besides its mode (ioctl_iflags(2)): the values are FS_*_FL.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FileFlags: u32 {
        /// Nobody changes it, nor its names.
        const IMMUTABLE = 0x10;
        /// What is there stays: a file only grows, a directory only gets names.
        const APPEND = 0x20;
        /// Backups leave it out; a mark for dump(8).
        const NODUMP = 0x40;
        /// Reading does not change its access time.
        const NOATIME = 0x80;
        /// New files have these from their directory.
        const INHERITED = 0xc0;
    }
}

/// Attributes of a file (inode(7)).
#[derive(Clone, Copy, Debug, Default)]
pub struct Attr {
    pub dev: u64,
    pub ino: u64,
    /// Type and permission bits.
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u64,
    /// Bytes.
    pub size: u64,
    pub blksize: u32,
    /// Units of 512 bytes.
    pub blocks: u64,
    /// Nanoseconds since 1970.
    pub atime: i64,
    pub mtime: i64,
    pub ctime: i64,
    pub btime: i64,
    /// `None` where the file system has none.
    pub flags: Option<FileFlags>,
}

impl Attr {
    pub fn kind(&self) -> Option<FileKind> {
        FileKind::of_mode(self.mode)
    }
}

/// What permission checks look at.
#[derive(Clone, Copy, Debug)]
pub struct Perm {
    /// Type and permission bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub flags: FileFlags,
}

impl From<&Attr> for Perm {
    fn from(attr: &Attr) -> Perm {
        Perm { mode: attr.mode, uid: attr.uid, gid: attr.gid, flags: attr.flags.unwrap_or_default() }
    }
}

impl FileFlags {
    /// Neither its attributes nor its name may change. EPERM.
    pub fn check_frozen(self) -> Result<()> {
        let frozen = self.intersects(FileFlags::IMMUTABLE.union(FileFlags::APPEND));
        if frozen { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// What is in it stays. EPERM.
    pub fn check_append(self) -> Result<()> {
        if self.contains(FileFlags::APPEND) { Err(Errno::EPERM) } else { Ok(()) }
    }
}

/// What distinguishes one state of a file's contents from another, and from other files'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    pub dev: u64,
    pub ino: u64,
    pub size: u64,
    pub mtime: i64,
    pub ctime: i64,
    /// Changes counted, where the file system sees all of them.
    pub changes: u64,
}

impl From<&Attr> for Contents {
    fn from(attr: &Attr) -> Contents {
        Contents { dev: attr.dev, ino: attr.ino, size: attr.size, mtime: attr.mtime, ctime: attr.ctime, changes: 0 }
    }
}

/// Attributes to change; `None` stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct SetAttr {
    /// Permission bits (07777).
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<i64>,
    pub mtime: Option<i64>,
    /// Set to now by the caller of `set_attr` when anything changes.
    pub ctime: Option<i64>,
}

impl SetAttr {
    /// What can be changed of a file that exists in memory only: mode, owners, times.
    pub fn apply(&self, attr: &mut Attr) {
        attr.mode = self.mode.map_or(attr.mode, |mode| attr.mode & !0o7777 | mode & 0o7777);
        attr.uid = self.uid.unwrap_or(attr.uid);
        attr.gid = self.gid.unwrap_or(attr.gid);
        attr.atime = self.atime.unwrap_or(attr.atime);
        attr.mtime = self.mtime.unwrap_or(attr.mtime);
        attr.ctime = self.ctime.unwrap_or(attr.ctime);
    }
}

/// A file in a file system. Permission checks are the caller's; names are single components, never empty, "." or "..".
pub trait Inode: Send + Sync + Any {
    fn kind(&self) -> FileKind;
    fn attr(&self) -> Result<Attr>;
    /// The number alone.
    fn ino(&self) -> Result<u64> {
        Ok(self.attr()?.ino)
    }
    /// The attributes as they were when [`Inode::lookup`] found the file or [`Inode::check_names`] checked it.
    fn last_attr(&self) -> Result<Attr> {
        self.attr()
    }
    /// The attributes, if they are in memory and need no wait: it is asked with directories locked.
    fn known_attr(&self) -> Option<Attr> {
        None
    }
    /// Device and inode number. They stay as they are, so that nobody is asked who need not be.
    fn id(&self) -> Option<(u64, u64)> {
        let attr = self.attr().ok()?;
        Some((attr.dev, attr.ino))
    }
    /// What the file holds, for those who remember something about it; `None` while it may be changed without being noticed.
    fn contents(&self) -> Option<Contents> {
        Some(Contents::from(&self.attr().ok()?))
    }
    /// Where the link leads, on the same terms.
    fn known_target(&self) -> Option<Arc<[u8]>> {
        None
    }
    /// Mode and owners; may be a little older than [`Inode::attr`]'s where those have to be fetched.
    fn perm(&self) -> Result<Perm> {
        Ok(Perm::from(&self.attr()?))
    }
    /// Whether the caller has every right to the file whatever [`Inode::perm`] grants. Asked once that has refused.
    fn grants(&self, _caller: &dyn Caller) -> bool {
        false
    }
    /// True only for a directory that owner, group and others may all search: spares most walks the look at [`Inode::perm`].
    fn searchable_by_all(&self) -> bool {
        false
    }
    /// A regular file is about to get this size, by [`Inode::set_attr`]: what takes long is done now, and the caller's end cuts it short
    /// (EINTR).
    fn before_size(&self, _caller: &dyn Caller, _size: u64) -> Result<()> {
        Ok(())
    }
    fn set_attr(&self, _change: &SetAttr) -> Result<()> {
        Err(Errno::EPERM)
    }
    /// Its flags; `None` where the file system has none.
    fn flags(&self) -> Option<FileFlags> {
        None
    }
    /// Sets them. ENOTTY where there are none.
    fn set_flags(&self, _flags: FileFlags) -> Result<()> {
        Err(Errno::ENOTTY)
    }
    /// Whether the file system that it comes from is mounted to run nothing, whatever the mount says by which it is reached here: below
    /// an overlay or a bind there may be several of the host's.
    fn no_exec(&self) -> bool {
        false
    }
    /// It has been read: where access times are kept here, that of the file is now; if `relative`, only when the one before is no
    /// later than the last change, or a day old.
    fn accessed(&self, _relative: bool) {}

    // Directories.
    /// The entry of that name, as the caller finds it. ENOENT.
    fn lookup(&self, _caller: &dyn Caller, _name: &[u8]) -> Result<Arc<dyn Inode>> {
        Err(Errno::ENOTDIR)
    }
    /// [`Inode::lookup`] for who opens the file next, which is checked to be the one found: what was seen of the name a moment ago will do.
    fn lookup_to_open(&self, caller: &dyn Caller, name: &[u8]) -> Result<Arc<dyn Inode>> {
        self.lookup(caller, name)
    }
    /// Whether a name found (or not found) here may be remembered by the name cache.
    fn cache_names(&self) -> bool {
        false
    }
    /// Whether [`Inode::check_names`] works: for a directory whose names others change too, so that they may not be cached.
    fn checks_names(&self) -> bool {
        false
    }
    /// Whether `names`, joined by slashes and beginning in this directory, lead to `file` now, and then its attributes become those
    /// of now ([`Inode::last_attr`]).
    fn check_names(&self, _names: &[u8], _file: &Arc<dyn Inode>) -> bool {
        false
    }
    /// Whether [`Inode::check_names`] has confirmed these names and this directory a moment ago, so that it need not be asked again by who
    /// is only on the way through.
    fn checked_lately(&self, _names: &[u8], _dir: &Arc<dyn Inode>) -> bool {
        false
    }
    /// Stores the attributes of the file of that name, where they can be had without making an inode; `false` where not. ENOENT.
    fn stat_uncached(&self, _name: &[u8], _attr: &mut Attr) -> Result<bool> {
        Ok(false)
    }
    /// Somebody goes on using the file after the name by which it was found is gone.
    fn outlives_name(&self) -> Result<()> {
        Ok(())
    }
    /// Whether a name that is not in this directory fails with ENOENT before any permission is looked at, also where it is to be made: proc's
    /// lookup returns that error, where others return an empty entry.
    fn fixed_names(&self) -> bool {
        false
    }
    /// A new file, directory, device, fifo or socket; `mode` has the type bits. EEXIST. Linux has another error for a regular file
    /// (`fs/namei.c:vfs_create`) than for the others where none can be made.
    fn create(&self, _name: &[u8], mode: u32, _rdev: u64, _cred: &Cred) -> Result<Arc<dyn Inode>> {
        Err(if FileKind::of_mode(mode) == Some(FileKind::Regular) { Errno::EACCES } else { Errno::EPERM })
    }
    fn symlink(&self, _name: &[u8], _target: &[u8], _cred: &Cred) -> Result<Arc<dyn Inode>> {
        Err(Errno::EPERM)
    }
    fn link(&self, _name: &[u8], _target: &Arc<dyn Inode>) -> Result<()> {
        Err(Errno::EPERM)
    }
    /// Removes a name: of an empty directory when `dir`, of anything else otherwise.
    fn unlink(&self, _name: &[u8], _dir: bool) -> Result<()> {
        Err(Errno::EPERM)
    }
    /// Removes a name that is not in the name cache, of anything but a directory, without a look at what it leads to. `None` where
    /// that has to be looked at.
    fn unlink_unseen(&self, _name: &[u8]) -> Option<Result<()>> {
        None
    }
    /// rename(2) within one file system; `flags` as renameat2(2).
    fn rename(&self, _old: &[u8], _new_dir: &Arc<dyn Inode>, _new: &[u8], _flags: u32) -> Result<()> {
        Err(Errno::EPERM)
    }
    /// An unnamed file in this directory (O_TMPFILE); unless `linkable` it can never get a name.
    fn tmpfile(&self, _mode: u32, _cred: &Cred, _linkable: bool) -> Result<Arc<dyn Inode>> {
        Err(Errno::EOPNOTSUPP)
    }
    /// Entries from `from` on, "." and ".." not among them (the caller adds them). `from` is 0 or an earlier entry's `next`.
    fn readdir(&self, _caller: &dyn Caller, _from: u64, _emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        Err(Errno::ENOTDIR)
    }

    // Symbolic links.
    /// Where the link leads. EINVAL when this is none.
    fn readlink(&self, _caller: &dyn Caller) -> Result<Vec<u8>> {
        Err(Errno::EINVAL)
    }
    /// A link that leads to a place rather than to a name (/proc/self/fd/3, /proc/self/exe).
    fn jump(&self, _caller: &dyn Caller) -> Option<Result<Path>> {
        None
    }

    /// Opens a regular file or a directory; `flags` as open(2), creation and truncation already done. Devices, fifos and
    /// sockets never get here: what they open is found in [`crate::vfs::Vfs::open_inode`].
    fn open(self: Arc<Self>, caller: &dyn Caller, flags: u32) -> Result<Arc<dyn File>>;

    /// Opens a file of a directory for which [`Inode::checks_names`] holds, reached by `names`, which begin in `base` and have not been
    /// checked: the same request checks whether they lead here. ESTALE if not.
    fn open_by_names(
        self: Arc<Self>,
        _caller: &dyn Caller,
        _flags: u32,
        _base: &Arc<dyn Inode>,
        _names: &[u8],
    ) -> Result<Arc<dyn File>> {
        Err(Errno::ESTALE)
    }

    /// fsync(2) of a directory: its names, and what else has changed, are on stable storage.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Whether [`Inode::sync`] may take as long as a disk does.
    fn sync_blocks(&self) -> bool {
        false
    }

    // What other layers keep here.
    /// The count of writers and running programs, where the file system keeps one.
    fn busy(&self) -> Option<&Busy> {
        None
    }
    /// The place for a fifo's buffer.
    fn fifo_slot(&self) -> Option<&Slot> {
        None
    }
    /// The place for the socket bound to this file.
    fn socket_slot(&self) -> Option<&Slot> {
        None
    }

    // Extended attributes.
    fn get_xattr(&self, _name: &[u8]) -> Result<Vec<u8>> {
        Err(Errno::EOPNOTSUPP)
    }
    /// `flags`: XATTR_CREATE 1, XATTR_REPLACE 2.
    fn set_xattr(&self, _name: &[u8], _value: &[u8], _flags: u32) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }
    fn list_xattr(&self) -> Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }
    fn remove_xattr(&self, _name: &[u8]) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }
    fn as_any(&self) -> &dyn Any;
}
