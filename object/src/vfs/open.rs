//! Opening files.

use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;

use crate::anon;
use crate::caller::{Caller, Cred};
use crate::file::{Events, File, OpenFile, flags};
use crate::pipe::Pipe;
use crate::vfs::Vfs;
use crate::vfs::access::{self, EXEC, READ, S_ISVTX, WRITE, Who};
use crate::vfs::cached::Trusted;
use crate::vfs::dentry::Dentry;
use crate::vfs::inode::{Attr, FileKind, Inode, SetAttr};
use crate::vfs::mount::{Mount, MountFlags};
use crate::vfs::names::Make;
use crate::vfs::path::Path;
use crate::vfs::walk::{Last, Next, Resolve, Start, Walk};
use crate::vfs::watch::event;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenHow {
    /// O_* flags, checked for sense by the call.
    pub flags: u32,
    /// Permission bits of a new file, and which of them it does not get.
    pub mode: u32,
    pub umask: u32,
    pub resolve: Resolve,
}

/// A directory and the names that lead from there to a file.
type Way<'a> = (&'a Arc<dyn Inode>, &'a [u8]);

impl Vfs {
    /// Opens a path. A fifo may still wait for its other side: the call's to do.
    pub fn open(&self, caller: &dyn Caller, start: &Start, path: &[u8], how: &OpenHow) -> Result<Arc<OpenFile>> {
        let mut walk = Walk::new(self, caller, start, how.resolve);
        let cred = walk.cred.clone();
        let open = how.flags;
        let follow = open & flags::O_NOFOLLOW == 0 && open & (flags::O_CREAT | flags::O_EXCL) != flags::O_CREAT | flags::O_EXCL;
        if open & flags::O_TMPFILE == flags::O_TMPFILE {
            let dir = walk.whole(path, follow)?;
            let mode = FileKind::Regular as u32 | access::new_mode(&**dir.inode(), how.mode, how.umask, &cred)?;
            let file = self.make_unnamed(walk.who(), &dir, mode, open & flags::O_EXCL == 0)?;
            return self.open_made(caller, file, open);
        }
        if open & flags::O_CREAT == 0 {
            walk.opens = true;
            let opened = walk.whole(path, follow).and_then(|found| self.open_found(caller, &cred, found, how));
            if !matches!(opened, Err(Errno::ESTALE)) {
                return opened;
            }
            // Another file has taken the name since it was seen: then that one is meant.
            walk.opens = false;
            let found = walk.whole(path, follow)?;
            return self.open_found(caller, &cred, found, how);
        }
        let mut parent = walk.parent(path)?;
        let mut made_at_once = false;
        loop {
            let name = match &parent.last {
                Last::Name(name) if !parent.slash => name,
                // A directory cannot be made by open, and what ends in a slash is one.
                _ => return Err(Errno::EISDIR),
            };
            // A name that only the file system can know is probably new: made first, found if that fails.
            let at_once = !made_at_once && parent.dir.inode().checks_names() && parent.dir.dentry.cached(name).is_none();
            made_at_once |= at_once;
            match if at_once { Err(Errno::ENOENT) } else { walk.last(&parent) } {
                Ok(found) if open & flags::O_EXCL != 0 => {
                    drop(found);
                    return Err(Errno::EEXIST);
                }
                Ok(found) if found.dentry.kind() == FileKind::Symlink && follow => match walk.follow(&parent, &found)? {
                    Next::At(found) => return self.open_found(caller, &cred, found, how),
                    Next::More(next) => parent = next,
                },
                Ok(found) => return self.open_found_in(caller, &cred, Some(&parent.dir), found, how, None),
                Err(Errno::ENOENT) => {
                    let mode = access::new_mode(&**parent.dir.inode(), how.mode, how.umask, &cred)?;
                    let make = Make::Node { mode: FileKind::Regular as u32 | mode, rdev: 0 };
                    match self.make(walk.who(), &parent.dir, name, &make) {
                        Ok(made) => {
                            let file = self.open_made(caller, made, open)?;
                            file.mark_created();
                            return Ok(file);
                        }
                        // Somebody was faster: open theirs.
                        Err(Errno::EEXIST) if open & flags::O_EXCL == 0 => {}
                        Err(errno) => return Err(errno),
                    }
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Opens a place found by a walk, after the checks open(2) makes.
    pub fn open_found(&self, caller: &dyn Caller, cred: &Cred, found: Path, how: &OpenHow) -> Result<Arc<OpenFile>> {
        self.open_found_in(caller, cred, None, found, how, None)
    }

    /// Opens a place that was reached by unchecked names of `path`, which are checked with it. On any error, ESTALE among them, the
    /// path is to be walked by [`Vfs::open`], which reports what is wrong.
    pub fn open_trusted(
        &self,
        caller: &dyn Caller,
        cred: &Cred,
        trusted: &Trusted,
        path: &[u8],
        how: &OpenHow,
    ) -> Result<Arc<OpenFile>> {
        let place = trusted.place.clone();
        let opened = matches!(place.dentry.kind(), FileKind::Regular | FileKind::Directory);
        if !opened || how.flags & (flags::O_PATH | flags::O_TRUNC) != 0 {
            return if trusted.check(path) { self.open_found(caller, cred, place, how) } else { Err(Errno::ESTALE) };
        }
        self.open_found_in(caller, cred, None, place, how, Some(trusted.way(path)))
    }

    fn open_found_in(
        &self,
        caller: &dyn Caller,
        cred: &Cred,
        created_in: Option<&Path>,
        found: Path,
        how: &OpenHow,
        way: Option<Way<'_>>,
    ) -> Result<Arc<OpenFile>> {
        let open = how.flags;
        let kind = found.dentry.kind();
        let want_dir = open & flags::O_DIRECTORY != 0;
        if want_dir && kind != FileKind::Directory {
            return Err(Errno::ENOTDIR);
        }
        if open & flags::O_PATH != 0 {
            let keep = flags::O_PATH | flags::O_DIRECTORY | flags::O_NOFOLLOW;
            return Ok(OpenFile::new(Arc::new(PathOnly), open & keep, Some(found)));
        }
        let (reads, writes) = match open & flags::O_ACCMODE {
            flags::O_RDONLY => (true, false),
            flags::O_WRONLY => (false, true),
            // 3: checked for both, opened for neither (open(2), "nonstandard").
            _ => (true, true),
        };
        let truncates = open & flags::O_TRUNC != 0;
        match kind {
            FileKind::Symlink => return Err(Errno::ELOOP),
            FileKind::Directory if writes || truncates || open & flags::O_CREAT != 0 => return Err(Errno::EISDIR),
            FileKind::CharDevice | FileKind::BlockDevice if found.mount.flags().contains(MountFlags::NODEV) => {
                return Err(Errno::EACCES);
            }
            _ => {}
        }
        let perm = found.inode().perm()?;
        if let Some(dir) = created_in
            && matches!(kind, FileKind::Regular | FileKind::Fifo)
        {
            sticky_create(dir, &perm, cred, kind)?;
        }
        let mut want = 0;
        if reads {
            want |= READ;
        }
        if writes || truncates {
            want |= WRITE;
            if matches!(kind, FileKind::Regular | FileKind::Directory) {
                found.mount.check_write()?;
            }
        }
        Who { caller, cred }.check_perm(&**found.inode(), &perm, want)?;
        if truncates || writes && open & flags::O_APPEND == 0 {
            perm.flags.check_append()?;
        }
        if open & flags::O_NOATIME != 0 && !access::owns(&perm, cred) {
            return Err(Errno::EPERM);
        }
        if open & flags::O_DIRECT != 0 && kind == FileKind::Directory {
            return Err(Errno::EINVAL);
        }
        if (writes || truncates)
            && let Some(busy) = found.inode().busy()
        {
            busy.check_write()?;
        }
        if self.leases.any()
            && let Some(key) = found.inode().id()
        {
            self.leases.open(key, writes, self.machine.clock().monotonic())?;
        }
        if !(truncates && kind == FileKind::Regular) {
            return self.open_by(caller, found, open, way);
        }
        self.open_and_truncate(caller, cred, found, open, way)
    }

    fn open_and_truncate(
        &self,
        caller: &dyn Caller,
        cred: &Cred,
        found: Path,
        open: u32,
        way: Option<Way<'_>>,
    ) -> Result<Arc<OpenFile>> {
        // No program may begin to run that is being cut.
        let inode = found.inode().clone();
        if let Some(busy) = inode.busy() {
            busy.begin_write()?;
        }
        let opened = self.truncate_at_open(&found, cred).and_then(|()| self.open_by(caller, found, open, way));
        if let Some(busy) = inode.busy() {
            busy.end_write();
        }
        let file = opened?;
        file.notify(event::MODIFY);
        Ok(file)
    }

    fn truncate_at_open(&self, found: &Path, cred: &Cred) -> Result<()> {
        let now = self.now();
        let change = SetAttr { size: Some(0), mtime: Some(now), ctime: Some(now), ..SetAttr::default() };
        found.inode().set_attr(&change)?;
        if cred.capable(access::CAP_FSETID) { Ok(()) } else { drop_privileges(&**found.inode()) }
    }

    fn open_made(&self, caller: &dyn Caller, made: Path, open: u32) -> Result<Arc<OpenFile>> {
        self.open_inode(caller, made, open)
    }

    /// Opens what is at a place, without any check of permissions: regular files and directories by their file system,
    /// devices by their driver, fifos by their buffer. ENXIO for a socket or a device without a driver.
    pub fn open_inode(&self, caller: &dyn Caller, path: Path, open: u32) -> Result<Arc<OpenFile>> {
        self.open_by(caller, path, open, None)
    }

    fn open_by(&self, caller: &dyn Caller, path: Path, open: u32, way: Option<Way<'_>>) -> Result<Arc<OpenFile>> {
        let inode = path.inode();
        let ops: Arc<dyn File> = match path.dentry.kind() {
            FileKind::Regular | FileKind::Directory => match way {
                Some((base, names)) => inode.clone().open_by_names(caller, open, base, names)?,
                None => inode.clone().open(caller, open)?,
            },
            FileKind::CharDevice | FileKind::BlockDevice => self.devices.open(caller, &path, inode.attr()?.rdev, open)?,
            FileKind::Fifo => match inode.fifo_slot() {
                Some(slot) => {
                    let pipe = slot.get_or_init(|| Pipe::new(Attr::default())).ok_or(Errno::ENXIO)?;
                    Arc::new(pipe.open(open)?)
                }
                None => inode.clone().open(caller, open)?,
            },
            FileKind::Socket => return Err(Errno::ENXIO),
            FileKind::Symlink => return Err(Errno::ELOOP),
        };
        let writes = open & flags::O_ACCMODE != flags::O_RDONLY;
        if writes && let Some(busy) = inode.busy() {
            busy.begin_write()?;
        }
        let counted = writes && inode.busy().is_some();
        self.watches.notify_file(&path, event::OPEN);
        let file = OpenFile::new(ops, open, Some(path));
        if counted {
            file.count_as_writer();
        }
        Ok(file)
    }

    /// A place that stands for an open file without a name, for links that lead to it (/proc/self/fd/N of a pipe). Opening it
    /// asks [`File::reopen`].
    pub fn place_of(&self, file: &Arc<OpenFile>) -> Result<Path> {
        if let Some(path) = &file.path {
            return Ok(path.clone());
        }
        let attr = file.ops.attr()?;
        // What has no type (eventfds, epolls) is to links as a socket is: it can be looked at, and not opened.
        let kind = attr.kind().unwrap_or(FileKind::Socket);
        let inode: Arc<dyn Inode> = Arc::new(Nameless { file: file.clone(), kind });
        let fs = match anon::file_system(&attr, &inode) {
            Some(fs) => fs,
            None => self.mounts().into_iter().next().ok_or(Errno::ENXIO)?.fs.clone(),
        };
        let dentry = Dentry::labelled(inode, file.ops.label().as_bytes());
        let mount = Mount::detached(self, 0, fs, dentry.clone(), b"none", MountFlags::default());
        Ok(Path { mount, dentry })
    }
}

/// Takes off the bits of a file that lend its owner's rights, since its contents were changed by somebody without CAP_FSETID.
pub fn drop_privileges(inode: &dyn Inode) -> Result<()> {
    if access::without_privileges(inode.perm()?.mode).is_none() {
        return Ok(());
    }
    let _held = inode.busy().map(|busy| busy.hold_rights());
    match access::without_privileges(inode.attr()?.mode) {
        Some(mode) => inode.set_attr(&SetAttr { mode: Some(mode & 0o7777), ..SetAttr::default() }),
        None => Ok(()),
    }
}

/// protected_regular and protected_fifos at 1, the default of distributions: in a sticky directory that the world may write
/// to, O_CREAT does not open somebody else's file unless the directory's owner owns it. EACCES.
fn sticky_create(dir: &Path, perm: &crate::vfs::Perm, cred: &Cred, kind: FileKind) -> Result<()> {
    debug_assert!(matches!(kind, FileKind::Regular | FileKind::Fifo));
    let dir = dir.inode().perm()?;
    let exposed = dir.mode & S_ISVTX != 0 && dir.mode & 0o002 != 0;
    if exposed && perm.uid != dir.uid && perm.uid != cred.fsuid { Err(Errno::EACCES) } else { Ok(()) }
}

/// Whether a file may be run: a regular file with an execute bit the caller has, on a mount that allows it. EACCES.
pub fn may_execute(path: &Path, cred: &Cred) -> Result<()> {
    if path.dentry.kind() != FileKind::Regular || path.mount_flags().contains(MountFlags::NOEXEC) {
        return Err(Errno::EACCES);
    }
    access::check(&path.inode().perm()?, cred, EXEC)
}

/// What O_PATH opens: a place and nothing else.
pub struct PathOnly;

impl File for PathOnly {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EBADF)
    }
    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EBADF)
    }
    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
        Events::NVAL
    }
    fn seek(&self, _file: &OpenFile, _offset: i64, _whence: u32) -> Result<u64> {
        Err(Errno::EBADF)
    }
    fn may_wait(&self) -> bool {
        false
    }
    fn ioctl(&self, _file: &OpenFile, _caller: &dyn Caller, _request: u32, _arg: usize) -> Result<usize> {
        Err(Errno::EBADF)
    }
    fn truncate(&self, _file: &OpenFile, _len: u64) -> Result<()> {
        Err(Errno::EBADF)
    }
    fn allocate(&self, _file: &OpenFile, _mode: u32, _offset: u64, _len: u64) -> Result<()> {
        Err(Errno::EBADF)
    }
    fn sync(&self, _data_only: bool) -> Result<()> {
        Err(Errno::EBADF)
    }
    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// The inode of an open file that has none.
struct Nameless {
    file: Arc<OpenFile>,
    kind: FileKind,
}

impl Inode for Nameless {
    fn kind(&self) -> FileKind {
        self.kind
    }
    fn attr(&self) -> Result<Attr> {
        self.file.ops.attr()
    }
    /// The size, as O_TRUNC asks: a file system that keeps the file's times keeps them here too.
    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        match change.size {
            Some(size) => self.file.ops.truncate(&self.file, size),
            // An anonymous inode, which is everybody's.
            None if self.attr()?.kind().is_none() => Err(Errno::EOPNOTSUPP),
            None => self.file.ops.set_attr(change),
        }
    }
    fn open(self: Arc<Self>, caller: &dyn Caller, flags: u32) -> Result<Arc<dyn File>> {
        self.file.ops.reopen(&self.file, caller, flags)
    }
    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
