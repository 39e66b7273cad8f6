//! Files in memory without a name: memfd_create(2).
//!
//! The bytes are where those of the memory file system are ([`Data`]): a small one is no memory object until it is mapped. Mode, owners,
//! times and seals are kept here; an object has no seals.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::Ordering;

use janua_abi::linux::fcntl::falloc;
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::Backing;
use janua_rt::AtomicU64;

use crate::caller::{Caller, Cred};
use crate::coverage::PAGE;
use crate::file::{Events, File, OpenFile, cut_behind, flags, offset};
use crate::fs::memory::Space;
use crate::fs::memory::data::{Data, Source};
use crate::fs::memory::turns::Turns;
use crate::fs::tmpfs::TMPFS_MAGIC;
use crate::vfs::{Attr, Contents, Dentry, FileKind, FileSystem, FsStat, Inode, Mount, MountFlags, Path, SetAttr, Vfs};

/// Seals (F_ADD_SEALS).
pub mod seal {
    pub const SEAL: u32 = 1;
    pub const SHRINK: u32 = 2;
    pub const GROW: u32 = 4;
    pub const WRITE: u32 = 8;
    pub const FUTURE_WRITE: u32 = 0x10;
    pub const EXEC: u32 = 0x20;
    pub const ALL: u32 = 0x3f;
}

const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// The file system such files belong to; it is mounted nowhere.
pub struct MemFs {
    space: Space,
    dev: u64,
    next_ino: AtomicU64,
    root: Arc<dyn Inode>,
    /// Bytes of a page. Of pages larger than the machine's there are none: such a file has a size and holes, and nothing can be stored or mapped.
    page: u64,
}

struct NoRoot;

impl Inode for NoRoot {
    fn kind(&self) -> FileKind {
        FileKind::Directory
    }
    fn attr(&self) -> Result<Attr> {
        Ok(Attr { mode: FileKind::Directory as u32, nlink: 2, ..Attr::default() })
    }
    fn open(self: Arc<Self>, _caller: &dyn Caller, _flags: u32) -> Result<Arc<dyn File>> {
        Err(Errno::EACCES)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl MemFs {
    pub fn new(vfs: &Vfs) -> Arc<MemFs> {
        MemFs::of_pages(vfs, PAGE)
    }

    /// One of huge pages of so many bytes, as on a machine that has set none aside.
    pub fn huge(vfs: &Vfs, page: u64) -> Arc<MemFs> {
        MemFs::of_pages(vfs, page)
    }

    fn of_pages(vfs: &Vfs, page: u64) -> Arc<MemFs> {
        let space = Space::of_memory(vfs.machine);
        Arc::new(MemFs { space, dev: vfs.new_dev(), next_ino: AtomicU64::new(1), root: Arc::new(NoRoot), page })
    }

    fn is_huge(&self) -> bool {
        self.page != PAGE
    }

    /// A place of this file system for a file without a name, shown as `label`.
    pub fn place(self: &Arc<Self>, vfs: &Vfs, inode: Arc<dyn Inode>, label: &[u8]) -> Path {
        let dentry = Dentry::labelled(inode, label);
        let mount = Mount::detached(vfs, 0, self.clone(), dentry.clone(), b"tmpfs", MountFlags::empty());
        Path { mount, dentry }
    }

    /// An open file for memfd_create(2), empty, with the permission bits of `mode`.
    pub fn memfd(self: &Arc<Self>, vfs: &Vfs, name: &[u8], mode: u32, seals: u32, cred: &Cred) -> Arc<OpenFile> {
        let now = vfs.now();
        let state = State {
            mode,
            uid: cred.fsuid,
            gid: cred.fsgid,
            seals,
            writable: 0,
            atime: now,
            mtime: now,
            ctime: now,
            data: Data::new(),
        };
        let ino = self.next_ino.fetch_add(1, Ordering::Relaxed);
        let inode = Arc::new(MemInode { fs: self.clone(), ino, btime: now, state: Turns::new(state) });
        let path = self.place(vfs, inode.clone(), &[b"/memfd:", name, b" (deleted)"].concat());
        OpenFile::new(Arc::new(MemFile(inode)), flags::O_RDWR | flags::O_LARGEFILE, Some(path))
    }
}

impl FileSystem for MemFs {
    fn name(&self) -> &'static str {
        if self.is_huge() { "hugetlbfs" } else { "tmpfs" }
    }
    fn root(&self) -> Arc<dyn Inode> {
        self.root.clone()
    }
    fn stat(&self) -> Result<FsStat> {
        let magic = if self.is_huge() { HUGETLBFS_MAGIC } else { TMPFS_MAGIC };
        Ok(FsStat { magic, block_size: self.page, name_max: 255, ..FsStat::default() })
    }
    fn dev(&self) -> u64 {
        self.dev
    }
}

struct State {
    /// Permission bits.
    mode: u32,
    uid: u32,
    gid: u32,
    seals: u32,
    /// Shared mappings that may be written.
    writable: u32,
    atime: i64,
    mtime: i64,
    ctime: i64,
    data: Data,
}

impl State {
    fn write_sealed(&self) -> bool {
        self.seals & (seal::WRITE | seal::FUTURE_WRITE) != 0
    }

    /// Sealed against writing, growing and shrinking there is no way left to change it but a mapping from before.
    fn is_frozen(&self) -> bool {
        const FROZEN: u32 = seal::WRITE | seal::GROW | seal::SHRINK;
        self.seals & FROZEN == FROZEN && self.writable == 0
    }

    fn changed(&mut self, now: i64) {
        self.mtime = now;
        self.ctime = now;
    }
}

/// The file.
pub struct MemInode {
    fs: Arc<MemFs>,
    ino: u64,
    btime: i64,
    state: Turns<State>,
}

impl MemInode {
    fn now(&self) -> i64 {
        crate::vfs::now(self.fs.space.machine)
    }

    /// Writes what is in front of `most`: bytes written, and the offset behind them.
    fn write(&self, state: &mut State, buf: &mut WriteBuf<'_>, at: u64, most: u64) -> Result<(usize, u64)> {
        if state.write_sealed() {
            return Err(Errno::EPERM);
        }
        let size = state.data.size();
        let at = if at == offset::END { size } else { at };
        cut_behind(buf, at, most)?;
        if state.seals & seal::GROW != 0 && at.saturating_add(buf.left() as u64) > size {
            // Whole pages go through one after the other, up to the one that would grow the file.
            let room = (size & !(PAGE - 1)).saturating_sub(at);
            if room == 0 {
                return Err(Errno::EPERM);
            }
            buf.limit(usize::try_from(room).unwrap_or(usize::MAX));
        }
        let n = state.data.write(&self.fs.space, buf, at)?;
        state.changed(self.now());
        Ok((n, at + n as u64))
    }

    fn resize(&self, state: &mut State, size: u64) -> Result<()> {
        let old = state.data.size();
        if size > i64::MAX as u64 {
            return Err(Errno::EFBIG);
        }
        if self.fs.is_huge() && !size.is_multiple_of(self.fs.page) {
            return Err(Errno::EINVAL);
        }
        if size < old && state.seals & seal::SHRINK != 0 || size > old && state.seals & seal::GROW != 0 {
            return Err(Errno::EPERM);
        }
        state.data.truncate(&self.fs.space, size)?;
        state.changed(self.now());
        Ok(())
    }
}

impl Drop for MemInode {
    fn drop(&mut self) {
        self.state.get_mut().data.release(&self.fs.space);
    }
}

impl Inode for MemInode {
    fn kind(&self) -> FileKind {
        FileKind::Regular
    }

    fn attr(&self) -> Result<Attr> {
        let state = self.state.lock();
        Ok(Attr {
            dev: self.fs.dev,
            ino: self.ino,
            mode: FileKind::Regular as u32 | state.mode,
            nlink: 0,
            uid: state.uid,
            gid: state.gid,
            rdev: 0,
            size: state.data.size(),
            blksize: self.fs.page as u32,
            blocks: state.data.blocks(0),
            atime: state.atime,
            mtime: state.mtime,
            ctime: state.ctime,
            btime: self.btime,
            flags: None,
        })
    }

    fn id(&self) -> Option<(u64, u64)> {
        Some((self.fs.dev, self.ino))
    }

    fn contents(&self) -> Option<Contents> {
        // Mappings may change it, unless it is sealed.
        if !self.state.lock().is_frozen() {
            return None;
        }
        Some(Contents::from(&self.attr().ok()?))
    }

    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        let mut state = self.state.change();
        if let Some(mode) = change.mode {
            if state.seals & seal::EXEC != 0 && (mode ^ state.mode) & 0o111 != 0 {
                return Err(Errno::EPERM);
            }
            state.mode = mode & 0o7777;
        }
        if let Some(size) = change.size {
            self.resize(&mut state, size)?;
        }
        state.uid = change.uid.unwrap_or(state.uid);
        state.gid = change.gid.unwrap_or(state.gid);
        state.atime = change.atime.unwrap_or(state.atime);
        state.mtime = change.mtime.unwrap_or(state.mtime);
        state.ctime = change.ctime.unwrap_or(state.ctime);
        Ok(())
    }

    fn open(self: Arc<Self>, _caller: &dyn Caller, _flags: u32) -> Result<Arc<dyn File>> {
        Ok(Arc::new(MemFile(self)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An opened one.
pub struct MemFile(pub Arc<MemInode>);

impl MemFile {
    /// Writes what is in front of `most`: bytes written, and the offset behind them.
    fn write_at(&self, buf: &mut WriteBuf<'_>, at: u64, most: u64) -> Result<(usize, u64)> {
        if self.0.fs.is_huge() {
            return Err(Errno::EINVAL);
        }
        self.0.state.write(buf, at, |state, part, at| self.0.write(state, part, at, most))
    }
}

impl File for MemFile {
    fn read(&self, file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        if buf.left() == 0 {
            return Ok(0);
        }
        let source = self.0.state.lock().data.read(buf, offset)?;
        let n = match source {
            Source::Done(n) => n,
            Source::Object(object) => object.read_at(buf, offset)?,
        };
        if file.flags() & flags::O_NOATIME == 0 {
            let now = self.0.now();
            self.0.state.lock().atime = now;
        }
        Ok(n)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, at: u64) -> Result<usize> {
        if buf.left() == 0 && !self.0.fs.is_huge() { Ok(0) } else { Ok(self.write_at(buf, at, u64::MAX)?.0) }
    }

    fn append(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, most: u64) -> Result<(usize, u64)> {
        self.write_at(buf, offset::END, most)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
        Events::ALWAYS
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> Result<u64> {
        Ok(self.0.state.lock().data.size())
    }

    fn seek_data(&self, offset: u64, hole: bool) -> Result<u64> {
        let offset = i64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        self.0.state.lock().data.seek(offset as u64, hole)
    }

    fn backing(&self, _file: &OpenFile, offset: u64, len: usize, shared: bool) -> Result<Backing> {
        if self.0.fs.is_huge() {
            return Err(Errno::ENOMEM);
        }
        let mut state = self.0.state.lock();
        let object = state.data.map(&self.0.fs.space, true, offset, offset.saturating_add(len as u64))?;
        Ok(Backing::Object { object, offset, shared, frozen: state.is_frozen() })
    }

    fn mapping_made(&self, _writable: bool) -> Result<()> {
        let mut state = self.0.state.lock();
        if state.write_sealed() {
            return Err(Errno::EPERM);
        }
        state.writable = state.writable.checked_add(1).ok_or(Errno::ENOMEM)?;
        Ok(())
    }

    fn mapping_gone(&self, _writable: bool) {
        let mut state = self.0.state.lock();
        state.writable = state.writable.saturating_sub(1);
    }

    fn truncate(&self, _file: &OpenFile, len: u64) -> Result<()> {
        self.0.resize(&mut self.0.state.change(), len)
    }

    fn allocate(&self, _file: &OpenFile, mode: u32, offset: u64, len: u64) -> Result<()> {
        if mode & !(falloc::KEEP_SIZE | falloc::PUNCH_HOLE) != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let end = offset.checked_add(len).filter(|&end| end <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        let mut state = self.0.state.change();
        if mode & falloc::PUNCH_HOLE != 0 && state.write_sealed() {
            return Err(Errno::EPERM);
        }
        let grows = mode & falloc::KEEP_SIZE == 0 && end > state.data.size();
        if grows && state.seals & seal::GROW != 0 {
            return Err(Errno::EPERM);
        }
        if self.0.fs.is_huge() && mode & falloc::PUNCH_HOLE == 0 {
            return Err(Errno::ENOSPC);
        }
        state.data.allocate(&self.0.fs.space, mode, offset, len)?;
        state.changed(self.0.now());
        Ok(())
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }

    fn attr(&self) -> Result<Attr> {
        self.0.attr()
    }

    fn seals(&self) -> Result<u32> {
        Ok(self.0.state.lock().seals)
    }

    fn add_seals(&self, seals: u32) -> Result<()> {
        if seals & !seal::ALL != 0 {
            return Err(Errno::EINVAL);
        }
        let mut state = self.0.state.change();
        if state.seals & seal::SEAL != 0 {
            return Err(Errno::EPERM);
        }
        let mut seals = seals;
        if seals & seal::EXEC != 0 && state.mode & 0o111 != 0 {
            // A program that can no longer be made another one must not change under its name either.
            seals |= seal::SHRINK | seal::GROW | seal::WRITE | seal::FUTURE_WRITE;
        }
        // Asked of the seals that are implied as well: a mapping that is there goes on writing.
        if seals & seal::WRITE != 0 && state.seals & seal::WRITE == 0 && state.writable > 0 {
            return Err(Errno::EBUSY);
        }
        state.seals |= seals;
        Ok(())
    }

    fn label(&self) -> String {
        String::from("/memfd (deleted)")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
