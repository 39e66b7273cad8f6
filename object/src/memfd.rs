//! Files in memory without a name: memfd_create(2), and what System V shared memory is made of.
//!
//! The bytes are an anonymous file of the host, so mappings, reads and writes see the same pages. Mode, owners and seals are
//! kept here; the host's file has no seals of its own.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::{Backing, Host, Machine};
use janua_rt::Mutex;

use crate::caller::{Caller, Cred};
use crate::coverage::{Charge, Coverage, PAGE};
use crate::file::{Events, File, OpenFile, flags, offset};
use crate::fs::hostio::{self, OwnedFd};
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

const TMPFS_MAGIC: u64 = 0x0102_1994;

/// The file system such files belong to; it is mounted nowhere.
pub struct MemFs {
    host: &'static dyn Host,
    machine: &'static dyn Machine,
    dev: u64,
    next_ino: AtomicU64,
    root: Arc<dyn Inode>,
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
    /// ENODEV on a machine without a host.
    pub fn new(vfs: &Vfs) -> Result<Arc<MemFs>> {
        let host = vfs.machine.host().ok_or(Errno::ENODEV)?;
        Ok(Arc::new(MemFs { host, machine: vfs.machine, dev: vfs.new_dev(), next_ino: AtomicU64::new(1), root: Arc::new(NoRoot) }))
    }

    /// A new file of `size` bytes with the permission bits of `mode`, shown as `label`. Its bytes count as memory when they are written or
    /// mapped. ENFILE.
    pub fn create(
        self: &Arc<Self>,
        vfs: &Vfs,
        label: &[u8],
        mode: u32,
        size: u64,
        seals: u32,
        cred: &Cred,
    ) -> Result<(Arc<MemInode>, Path)> {
        let fd = OwnedFd::new(self.host, self.host.memfd(b"janua-memory")?);
        if size > 0 {
            self.host.truncate(fd.fd(), size)?;
        }
        let inode = Arc::new(MemInode {
            fd,
            dev: self.dev,
            ino: self.next_ino.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(State { mode, uid: cred.fsuid, gid: cred.fsgid, size, seals, writable: 0, ctime: vfs.now(), coverage: Coverage::default(), charge: Charge::none(self.machine) }),
        });
        let dentry = Dentry::labelled(inode.clone(), label);
        let mount = Mount::detached(vfs, 0, self.clone(), dentry.clone(), b"tmpfs", MountFlags::empty());
        Ok((inode, Path { mount, dentry }))
    }

    /// An open file for memfd_create(2).
    pub fn memfd(self: &Arc<Self>, vfs: &Vfs, name: &[u8], mode: u32, seals: u32, cred: &Cred) -> Result<Arc<OpenFile>> {
        let label = [b"/memfd:", name, b" (deleted)"].concat();
        let (inode, path) = self.create(vfs, &label, mode, 0, seals, cred)?;
        Ok(OpenFile::new(Arc::new(MemFile(inode)), flags::O_RDWR | flags::O_LARGEFILE, Some(path)))
    }
}

impl FileSystem for MemFs {
    fn name(&self) -> &'static str {
        "tmpfs"
    }
    fn root(&self) -> Arc<dyn Inode> {
        self.root.clone()
    }
    fn stat(&self) -> Result<FsStat> {
        Ok(FsStat { magic: TMPFS_MAGIC, block_size: PAGE, name_max: 255, ..FsStat::default() })
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
    /// Bytes. What the host's file has; kept here so that a seal and a size are looked at together.
    size: u64,
    seals: u32,
    /// Shared mappings that may be written.
    writable: u32,
    ctime: i64,
    /// The pages that are there or may come to be, and what they cost.
    coverage: Coverage,
    charge: Charge,
}

impl State {
    /// The bytes are about to be mapped. ENOMEM.
    fn map(&mut self, from: u64, to: u64) -> Result<()> {
        let more = self.coverage.to_map(from, to, self.size);
        self.charge.take(more * PAGE)?;
        self.coverage.map(from, to);
        Ok(())
    }
}

/// The file.
pub struct MemInode {
    fd: Arc<OwnedFd>,
    dev: u64,
    ino: u64,
    state: Mutex<State>,
}

impl MemInode {
    fn resize(&self, state: &mut State, size: u64) -> Result<()> {
        if size > i64::MAX as u64 {
            return Err(Errno::EFBIG);
        }
        if size < state.size && state.seals & seal::SHRINK != 0 || size > state.size && state.seals & seal::GROW != 0 {
            return Err(Errno::EPERM);
        }
        let more = state.coverage.to_grow(state.size, size);
        state.charge.take(more * PAGE)?;
        self.fd.host().truncate(self.fd.fd(), size)?;
        if size < state.size {
            let gone = state.coverage.cut(state.size, size);
            state.charge.give(gone * PAGE);
        }
        state.size = size;
        Ok(())
    }

    /// Bytes of it are about to be mapped: they count from now on. ENOMEM.
    pub fn map(&self, offset: u64, len: usize) -> Result<()> {
        self.state.lock().map(offset, offset.saturating_add(len as u64))
    }

    /// All of the file is about to be used: it counts from now on. ENOMEM.
    pub fn reserve(&self) -> Result<()> {
        let mut state = self.state.lock();
        let size = state.size;
        state.map(0, size)
    }

    fn write_sealed(state: &State) -> bool {
        state.seals & (seal::WRITE | seal::FUTURE_WRITE) != 0
    }

    /// What a mapping of the file is made of.
    pub fn backing(&self, offset: u64, shared: bool) -> Backing {
        // Sealed against writing, growing and shrinking there is no way left to change it but a mapping from before.
        const FROZEN: u32 = seal::WRITE | seal::GROW | seal::SHRINK;
        let state = self.state.lock();
        let frozen = state.seals & FROZEN == FROZEN && state.writable == 0;
        Backing::Host { fd: self.fd.fd(), offset, shared, frozen }
    }

    pub fn size(&self) -> u64 {
        self.state.lock().size
    }
}

impl Inode for MemInode {
    fn kind(&self) -> FileKind {
        FileKind::Regular
    }

    fn attr(&self) -> Result<Attr> {
        let host = self.fd.host().stat(self.fd.fd(), b"")?;
        let state = self.state.lock();
        Ok(Attr {
            dev: self.dev,
            ino: self.ino,
            mode: FileKind::Regular as u32 | state.mode,
            nlink: 0,
            uid: state.uid,
            gid: state.gid,
            rdev: 0,
            size: state.size,
            blksize: PAGE as u32,
            blocks: host.blocks,
            atime: host.atime,
            mtime: host.mtime,
            ctime: host.ctime.max(state.ctime),
            btime: host.btime,
        })
    }

    fn id(&self) -> Option<(u64, u64)> {
        Some((self.dev, self.ino))
    }

    fn contents(&self) -> Option<Contents> {
        // Mappings may change it, unless it is sealed.
        match self.backing(0, false) {
            Backing::Host { frozen: true, .. } => Some(Contents::from(&self.attr().ok()?)),
            _ => None,
        }
    }

    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        let mut state = self.state.lock();
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
        state.ctime = change.ctime.unwrap_or(state.ctime);
        if change.size.is_none() && (change.atime.is_some() || change.mtime.is_some()) {
            self.fd.host().utimens(self.fd.fd(), b"", change.atime, change.mtime)?;
        }
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

impl File for MemFile {
    fn read(&self, _file: &OpenFile, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        hostio::read_at(&self.0.fd, buf, offset)
    }

    fn write(&self, _file: &OpenFile, buf: &mut WriteBuf<'_>, at: u64) -> Result<usize> {
        if buf.left() == 0 {
            return Ok(0);
        }
        let mut state = self.0.state.lock();
        if MemInode::write_sealed(&state) {
            return Err(Errno::EPERM);
        }
        let at = if at == offset::END { state.size } else { at };
        if state.seals & seal::GROW != 0 && at.saturating_add(buf.left() as u64) > state.size {
            // Whole pages go through one after the other, up to the one that would grow the file.
            let room = (state.size & !(PAGE - 1)).saturating_sub(at);
            if room == 0 {
                return Err(Errno::EPERM);
            }
            buf.limit(usize::try_from(room).unwrap_or(usize::MAX));
        }
        let most = at.saturating_add(buf.left() as u64).min(i64::MAX as u64);
        let size = state.size;
        let more = state.coverage.to_write(at, most.max(at), size);
        state.charge.take(more * PAGE)?;
        let result = hostio::write_at(&self.0.fd, buf, at);
        let end = at.saturating_add(*result.as_ref().unwrap_or(&0) as u64);
        // What was not written after all goes back.
        let used = if end > at { state.coverage.to_write(at, end, size) } else { 0 };
        state.coverage.write(at, end);
        state.charge.give((more - used) * PAGE);
        state.size = size.max(if end > at { end } else { 0 });
        result
    }

    fn poll(&self, _file: &OpenFile, _table: Option<&mut PollTable>) -> Events {
        Events::ALWAYS
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> Result<u64> {
        Ok(self.0.size())
    }

    fn seek_data(&self, offset: u64, hole: bool) -> Result<u64> {
        let offset = i64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        self.0.fd.host().lseek(self.0.fd.fd(), offset, if hole { 4 } else { 3 })
    }

    fn backing(&self, _file: &OpenFile, offset: u64, len: usize, shared: bool) -> Result<Backing> {
        self.0.state.lock().map(offset, offset.saturating_add(len as u64))?;
        Ok(self.0.backing(offset, shared))
    }

    fn mapping_made(&self, _writable: bool) -> Result<()> {
        let mut state = self.0.state.lock();
        if MemInode::write_sealed(&state) {
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
        self.0.resize(&mut self.0.state.lock(), len)
    }

    fn allocate(&self, _file: &OpenFile, mode: u32, offset: u64, len: u64) -> Result<()> {
        const KEEP_SIZE: u32 = 1;
        const PUNCH_HOLE: u32 = 2;
        if mode & !(KEEP_SIZE | PUNCH_HOLE) != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let end = offset.checked_add(len).filter(|&end| end <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        let mut state = self.0.state.lock();
        if mode & PUNCH_HOLE != 0 && MemInode::write_sealed(&state) {
            return Err(Errno::EPERM);
        }
        let grows = mode & KEEP_SIZE == 0 && end > state.size;
        if grows && state.seals & seal::GROW != 0 {
            return Err(Errno::EPERM);
        }
        let size = state.size;
        let more = if mode & PUNCH_HOLE == 0 { state.coverage.to_write(offset, end, size) } else { 0 };
        state.charge.take(more * PAGE)?;
        if let Err(errno) = self.0.fd.host().fallocate(self.0.fd.fd(), mode, offset, len) {
            state.charge.give(more * PAGE);
            return Err(errno);
        }
        if mode & PUNCH_HOLE != 0 {
            let gone = state.coverage.punch(offset, end, size);
            state.charge.give(gone * PAGE);
        } else {
            state.coverage.write(offset, end);
        }
        if grows {
            state.size = end;
        }
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
        let mut state = self.0.state.lock();
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
