//! Open files.

use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bitflags::bitflags;
use janua_abi::linux::poll::event as ready;
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::Backing;
use janua_rt::{Mutex, Registration, WaitQueue};

use crate::caller::Caller;
use crate::lock::{FileLocks, Owner};
use crate::vfs::watch::event;
use crate::vfs::{Attr, Contents, FileFlags, Inode, Path, SetAttr};

bitflags! {
    /// Readiness, as in poll(2) and epoll(7).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Events: u32 {
        const IN = ready::IN;
        const PRI = ready::PRI;
        const OUT = ready::OUT;
        const ERR = ready::ERR;
        const HUP = ready::HUP;
        const NVAL = ready::NVAL;
        const RDNORM = ready::RDNORM;
        const RDBAND = ready::RDBAND;
        const WRNORM = ready::WRNORM;
        const WRBAND = ready::WRBAND;
        const RDHUP = ready::RDHUP;
        /// What a reader waits for, errors included.
        const READABLE = ready::IN | ready::RDNORM | ready::ERR | ready::HUP;
        /// What a writer waits for, errors included.
        const WRITABLE = ready::OUT | ready::WRNORM | ready::ERR | ready::HUP;
        /// Regular files: always ready.
        const ALWAYS = ready::IN | ready::OUT | ready::RDNORM | ready::WRNORM;
    }
}

pub use janua_abi::linux::fcntl::{open as flags, whence};

/// Offsets with a meaning of their own.
pub mod offset {
    /// For [`super::File::write`]: the end of the file, found and written to in one step.
    pub const END: u64 = u64::MAX;
    /// The position the file keeps itself ([`super::File::keeps_position`]); also what streams are given.
    pub const CURRENT: u64 = u64::MAX - 1;
}

/// ioctl(2) requests that more than one kind of file knows.
pub mod request {
    pub const FIONREAD: u32 = 0x541b;
    pub const FIONBIO: u32 = 0x5421;
    pub const FIONCLEX: u32 = 0x5450;
    pub const FIOCLEX: u32 = 0x5451;
    pub const FIOASYNC: u32 = 0x5452;
    pub const FIOQSIZE: u32 = 0x5460;
    pub const FIGETBSZ: u32 = 2;
    pub const FICLONE: u32 = 0x4004_9409;
    pub const FICLONERANGE: u32 = 0x4020_940d;
    pub const FS_IOC_GETFLAGS: u32 = 0x8008_6601;
    pub const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
    pub const FS_IOC_FSGETXATTR: u32 = 0x801c_581f;
    pub const FS_IOC_FSSETXATTR: u32 = 0x401c_5820;
    pub const FIOSETOWN: u32 = 0x8901;
    pub const SIOCSPGRP: u32 = 0x8902;
    pub const FIOGETOWN: u32 = 0x8903;
    pub const SIOCGPGRP: u32 = 0x8904;
}

/// Most bytes that one read of an endless file gives ([`File::endless`]), so that a signal need not wait for all of a long one.
pub const ENDLESS_PART: usize = 1 << 20;

/// What kind of file this is to someone who looks through `dyn File`.
pub trait File: Send + Sync + Any {
    /// Reads at `offset` (ignored by streams): bytes read, 0 at the end. EAGAIN when nothing is there yet. What is read may depend on who reads.
    fn read(&self, file: &OpenFile, caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize>;
    /// Writes at `offset` (ignored by streams), which is [`offset::END`] for appending: bytes written. EAGAIN when full.
    fn write(&self, file: &OpenFile, caller: &dyn Caller, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize>;
    /// Writes behind the end in one step, and nothing from `most` on: bytes written, and where the end is then, which others may have
    /// moved before it is asked for. EFBIG when the end is at `most` or behind it.
    fn append(&self, file: &OpenFile, caller: &dyn Caller, buf: &mut WriteBuf<'_>, most: u64) -> Result<(usize, u64)> {
        if most != u64::MAX {
            cut_behind(buf, self.size()?, most)?;
        }
        let n = self.write(file, caller, buf, offset::END)?;
        Ok((n, self.size()?))
    }
    /// What is ready for the caller now. With a table, first registers with the queues that announce changes.
    fn poll(&self, file: &OpenFile, caller: &dyn Caller, table: Option<&mut PollTable>) -> Events;

    /// Whether the file has a position (lseek, pread); otherwise ESPIPE.
    fn seekable(&self) -> bool {
        false
    }
    /// The size lseek's SEEK_END and O_APPEND count from.
    fn size(&self) -> Result<u64> {
        Err(Errno::ESPIPE)
    }
    /// SEEK_DATA (3) and SEEK_HOLE (4).
    fn seek_data(&self, offset: u64, hole: bool) -> Result<u64> {
        let size = self.size()?;
        if offset >= size { Err(Errno::ENXIO) } else { Ok(if hole { size } else { offset }) }
    }
    /// Moves the position (lseek(2)): the new one. EINVAL for an unknown `whence` or a place before the start.
    fn seek(&self, file: &OpenFile, offset: i64, whence: u32) -> Result<u64> {
        if !self.seekable() {
            return Err(Errno::ESPIPE);
        }
        let mut pos = file.pos.lock();
        let start = match whence {
            whence::SEEK_SET => 0,
            whence::SEEK_CUR => *pos,
            whence::SEEK_END => self.size()?,
            whence::SEEK_DATA | whence::SEEK_HOLE => {
                let from = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
                *pos = self.seek_data(from, whence == whence::SEEK_HOLE)?;
                return Ok(*pos);
            }
            _ => return Err(Errno::EINVAL),
        };
        let new = i64::try_from(start).ok().and_then(|start| start.checked_add(offset)).ok_or(Errno::EINVAL)?;
        *pos = u64::try_from(new).map_err(|_| Errno::EINVAL)?;
        Ok(*pos)
    }
    /// Whether the position is kept by the file, not by its [`OpenFile`]: reads and writes without an offset are given
    /// [`offset::CURRENT`], and [`File::seek`] is the file's own. For descriptions shared with the outside.
    fn keeps_position(&self) -> bool {
        false
    }
    /// Whether a write that may wait goes on until everything is written (pipes, stream sockets, terminals).
    fn streams(&self) -> bool {
        false
    }
    /// Longest a read (or write) may wait, nanoseconds; `None` is for ever (SO_RCVTIMEO, SO_SNDTIMEO).
    fn wait_limit(&self, _write: bool) -> Option<u64> {
        None
    }
    /// Asked of a stream before it is read or written: terminals stop background jobs here (SIGTTIN, SIGTTOU). Returns how many bytes a
    /// read that waits goes on for, unless its buffer is full before (SO_RCVLOWAT).
    fn before_transfer(&self, _caller: &dyn Caller, _write: bool) -> Result<usize> {
        Ok(1)
    }
    /// What a wait that ran into [`File::wait_limit`] returns.
    fn timed_out(&self, _write: bool) -> Result<usize> {
        Err(Errno::EAGAIN)
    }
    /// Whether there is always more to read: then one read gives [`ENDLESS_PART`] at most, and who wants more asks again.
    fn endless(&self) -> bool {
        false
    }
    /// Whether splice(2) moves bytes out of the file, or into it; otherwise EINVAL.
    fn splices(&self, _write: bool) -> bool {
        true
    }
    /// What reads and polls at once: false for files that never make the caller wait (regular files).
    fn may_wait(&self) -> bool {
        !self.seekable()
    }
    /// ioctl(2). ENOTTY for a request the file does not know.
    fn ioctl(&self, _file: &OpenFile, _caller: &dyn Caller, _request: u32, _arg: usize) -> Result<usize> {
        Err(Errno::ENOTTY)
    }
    /// Directory entries from the file position on. `emit` returns false when its buffer is full.
    fn readdir(&self, _file: &OpenFile, _caller: &dyn Caller, _emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        Err(Errno::ENOTDIR)
    }
    /// What a mapping of the file is made of. ENODEV when it cannot be mapped.
    fn backing(&self, _file: &OpenFile, _offset: u64, _len: usize, _shared: bool) -> Result<Backing> {
        Err(Errno::ENODEV)
    }
    /// Where the object ends that [`File::backing`] gives for `offset`: what is behind is of another.
    fn end_of_object(&self, _offset: u64) -> u64 {
        u64::MAX
    }
    /// Whether every mapping is to be reported to [`File::mapping_made`], not only shared ones that may be written.
    fn counts_mappings(&self) -> bool {
        false
    }
    /// Whether each part of a mapping that is cut in several counts as a mapping then, for a file that counts them.
    fn counts_pieces(&self) -> bool {
        false
    }
    /// A mapping is about to be made; `writable` when it is shared and may be written: EPERM when a seal forbids that.
    fn mapping_made(&self, _writable: bool) -> Result<()> {
        Ok(())
    }
    /// It is gone: one call for each [`File::mapping_made`] that returned `Ok`.
    fn mapping_gone(&self, _writable: bool) {}
    /// msync(2): what was stored through shared mappings is written back, beyond what the machine does by itself.
    fn sync_mapping(&self) -> Result<()> {
        Ok(())
    }
    fn truncate(&self, _file: &OpenFile, _len: u64) -> Result<()> {
        Err(Errno::EINVAL)
    }
    /// fallocate(2) with its mode bits.
    fn allocate(&self, _file: &OpenFile, _mode: u32, _offset: u64, _len: u64) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }
    fn sync(&self, _data_only: bool) -> Result<()> {
        Err(Errno::EINVAL)
    }
    /// syncfs(2) of a file without a path: writes back all of the file system that it is on.
    fn sync_fs(&self) -> Result<()> {
        Ok(())
    }
    /// Whether [`File::sync`] may take as long as a disk does.
    fn sync_blocks(&self) -> bool {
        false
    }
    /// Attributes when there is no inode behind the file (pipes, sockets, anonymous inodes).
    fn attr(&self) -> Result<Attr> {
        Err(Errno::EBADF)
    }
    /// Changes mode and owners, for files that have them and no inode. EPERM.
    fn set_attr(&self, _change: &SetAttr) -> Result<()> {
        Err(Errno::EPERM)
    }
    /// F_GET_SEALS and F_ADD_SEALS (memfd_create(2)). EINVAL for a file that cannot be sealed, EPERM once sealed against it.
    fn seals(&self) -> Result<u32> {
        Err(Errno::EINVAL)
    }
    fn add_seals(&self, _seals: u32) -> Result<()> {
        Err(Errno::EINVAL)
    }
    /// Whether O_ASYNC works: somebody can be notified of readiness by a signal (pipes, sockets, terminals).
    fn announces(&self) -> bool {
        false
    }
    /// The queue that is woken when urgent data comes (MSG_OOB), for files that know such.
    fn urgency(&self) -> Option<WaitQueue> {
        None
    }
    /// F_SETFL has changed the status flags.
    fn flags_changed(&self, _file: &OpenFile, _flags: u32) {}
    /// A descriptor for this file was closed (there may be others); `caller` is who closed.
    fn flush(&self, _file: &OpenFile, _caller: &dyn Caller) {}
    /// Opens the same object once more, through a link that leads to it (/proc/self/fd/N). For files without a name.
    fn reopen(&self, _file: &OpenFile, _caller: &dyn Caller, _flags: u32) -> Result<Arc<dyn File>> {
        Err(Errno::ENXIO)
    }
    /// The last descriptor is gone.
    fn release(&self, _file: &OpenFile) {}
    /// What /proc/self/fd shows for a file without a path: `pipe:[42]`, `anon_inode:[eventfd]`.
    fn label(&self) -> alloc::string::String {
        alloc::string::String::from("anon_inode:[unknown]")
    }
    /// For downcasts by the calls of one kind of file.
    fn as_any(&self) -> &dyn Any;
}

/// Cuts a write at `at` to what is in front of `most` (RLIMIT_FSIZE). EFBIG when that is nothing.
#[inline]
pub fn cut_behind(buf: &mut WriteBuf<'_>, at: u64, most: u64) -> Result<()> {
    if most == u64::MAX || buf.left() == 0 {
        return Ok(());
    }
    let room = most.saturating_sub(at);
    if room == 0 {
        // The buffer stays as it is: it is asked whether there was anything to write.
        return Err(Errno::EFBIG);
    }
    buf.limit(usize::try_from(room).unwrap_or(usize::MAX));
    Ok(())
}

/// One entry of a directory listing.
pub struct DirEntry<'a> {
    pub ino: u64,
    /// The position after this entry: where reading goes on.
    pub next: u64,
    /// DT_* value.
    pub kind: u8,
    pub name: &'a [u8],
}

/// Whom a [`SignalOwner`] names (fcntl(2), F_SETOWN_EX).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnerKind {
    #[default]
    None,
    Thread,
    Process,
    Group,
}

/// Who gets a signal when a file becomes ready, and which.
#[derive(Clone, Copy, Debug, Default)]
pub struct SignalOwner {
    pub kind: OwnerKind,
    /// Thread, process or group id.
    pub id: u32,
    /// The signal; 0 is SIGIO without details (F_SETSIG).
    pub signal: u32,
    /// Real and effective user of who set the owner: what its signals may reach.
    pub uid: u32,
    pub euid: u32,
}

/// An open file description: what dup(2) shares.
pub struct OpenFile {
    pub ops: Arc<dyn File>,
    /// Access mode and status flags (O_*), without the creation flags.
    flags: AtomicU32,
    /// The position; held while a read or write that uses it runs, as POSIX wants.
    pub pos: Mutex<u64>,
    /// Where it was opened, for files with a name.
    pub path: Option<Path>,
    /// Who is notified of readiness by a signal; made when first asked for ([`OpenFile::signal_owner`]).
    owner: Mutex<Option<Arc<Mutex<SignalOwner>>>>,
    /// With O_ASYNC: the registration that sends those signals.
    pub announce: Mutex<Option<PollTable>>,
    /// With an owner: the registration that sends SIGURG.
    pub announce_urgent: Mutex<Option<Registration>>,
    /// Counted among the writers of its inode ([`crate::vfs::Busy`]).
    writer: AtomicBool,
    /// Its file was made by the call that opened it.
    created: AtomicBool,
    /// The number of this description: the owner of its locks.
    pub id: u64,
    /// The locks of its file, once it has taken one, for the release at the last close.
    pub locks: Mutex<Option<Arc<FileLocks>>>,
    /// It has a lease of its file, or the directory's changes are announced by it; or it had, or they were.
    leased: AtomicBool,
    /// The epolls that watch it, if it is none itself.
    pub watchers: crate::epoll::Watchers,
}

impl OpenFile {
    /// A description with flags as given to open(2).
    pub fn new(ops: Arc<dyn File>, flags: u32, path: Option<Path>) -> Arc<OpenFile> {
        static NEXT: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(1);
        let keep = !(flags::O_CREAT | flags::O_EXCL | flags::O_NOCTTY | flags::O_TRUNC | flags::O_CLOEXEC);
        Arc::new(OpenFile {
            ops,
            flags: AtomicU32::new(flags & keep),
            pos: Mutex::new(0),
            path,
            owner: Mutex::new(None),
            announce: Mutex::new(None),
            announce_urgent: Mutex::new(None),
            writer: AtomicBool::new(false),
            created: AtomicBool::new(false),
            id: NEXT.fetch_add(1, Ordering::Relaxed) as u64,
            locks: Mutex::new(None),
            leased: AtomicBool::new(false),
            watchers: crate::epoll::Watchers::default(),
        })
    }

    /// Notes that it has a lease of its file, to be given up when it is closed.
    pub fn note_lease(&self) {
        self.leased.store(true, Ordering::Relaxed);
    }

    /// Whether it has a lease of its file, or had one.
    pub fn is_leased(&self) -> bool {
        self.leased.load(Ordering::Relaxed)
    }

    /// Notes that the inode counts this description as a writer, until it is closed.
    pub(crate) fn count_as_writer(&self) {
        self.writer.store(true, Ordering::Relaxed);
    }

    /// Notes that the file was made when it was opened.
    pub(crate) fn mark_created(&self) {
        self.created.store(true, Ordering::Relaxed);
    }

    /// Whether the file was made when it was opened.
    pub fn has_created(&self) -> bool {
        self.created.load(Ordering::Relaxed)
    }

    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Replaces the status flags that F_SETFL may change.
    pub fn set_flags(&self, flags: u32) {
        let may = flags::O_APPEND | flags::O_ASYNC | flags::O_DIRECT | flags::O_NOATIME | flags::O_NONBLOCK;
        let new = self.flags() & !may | flags & may;
        self.flags.store(new, Ordering::Relaxed);
        self.ops.flags_changed(self, new);
    }

    pub fn nonblocking(&self) -> bool {
        self.flags() & flags::O_NONBLOCK != 0
    }

    pub fn appends(&self) -> bool {
        self.flags() & flags::O_APPEND != 0
    }

    /// Who is notified of readiness by a signal (F_SETOWN, F_SETSIG).
    pub fn signal_owner(&self) -> Arc<Mutex<SignalOwner>> {
        self.owner.lock().get_or_insert_default().clone()
    }

    /// EBADF unless opened for reading.
    pub fn check_read(&self) -> Result<()> {
        let mode = self.flags();
        // Neither for writing alone nor for nothing (3).
        if mode & (flags::O_PATH | flags::O_WRONLY) != 0 { Err(Errno::EBADF) } else { Ok(()) }
    }

    /// EBADF unless opened for writing.
    pub fn check_write(&self) -> Result<()> {
        let mode = self.flags();
        if mode & flags::O_PATH != 0 || mode.wrapping_add(1) & flags::O_RDWR == 0 { Err(Errno::EBADF) } else { Ok(()) }
    }

    /// What its file is besides its mode; nothing where there are no such flags.
    pub fn file_flags(&self) -> FileFlags {
        self.inode().and_then(|inode| inode.flags()).unwrap_or_default()
    }

    pub fn inode(&self) -> Option<&Arc<dyn Inode>> {
        self.path.as_ref().map(Path::inode)
    }

    /// Announces what was done with the file to those who watch it (inotify); bits of [`event`].
    #[inline]
    pub fn notify(&self, event: u32) {
        if let Some(path) = &self.path {
            path.mount.watches.notify_file(path, event);
        }
    }

    /// stat(2) of what is open.
    pub fn attr(&self) -> Result<Attr> {
        match self.inode() {
            Some(inode) => inode.attr(),
            None => self.ops.attr(),
        }
    }

    /// Device and inode number; zeroes for what has none.
    pub fn id(&self) -> (u64, u64) {
        let id = match self.inode() {
            Some(inode) => inode.id(),
            None => self.ops.attr().ok().map(|attr| (attr.dev, attr.ino)),
        };
        id.unwrap_or_default()
    }

    /// What it holds ([`Inode::contents`]).
    pub fn contents(&self) -> Option<Contents> {
        match self.inode() {
            Some(inode) => inode.contents(),
            None => Some(Contents::from(&self.ops.attr().ok()?)),
        }
    }

    pub fn poll(&self, caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        self.ops.poll(self, caller, table)
    }

    /// The file as a concrete kind.
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        self.ops.as_any().downcast_ref()
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if let Some(locks) = self.locks.get_mut().take() {
            locks.release(Owner::Description(self.id));
        }
        if *self.leased.get_mut()
            && let Some(path) = &self.path
        {
            path.mount.watches.closed(path.inode(), self.id);
            if let Some(key) = path.inode().id() {
                // It may have been given up already.
                let _ = path.mount.leases.clear(key, self.id, 0);
            }
        }
        if *self.writer.get_mut()
            && let Some(busy) = self.inode().and_then(|inode| inode.busy())
        {
            busy.end_write();
        }
        let mode = self.flags();
        if mode & flags::O_PATH == 0 {
            self.notify(if mode & flags::O_ACCMODE == flags::O_RDONLY { event::CLOSE_NOWRITE } else { event::CLOSE_WRITE });
        }
        let ops = self.ops.clone();
        ops.release(self);
        if self.path.as_ref().is_some_and(|path| path.mount.watches.awaits_end())
            && let Some(Path { mount, dentry }) = self.path.take()
        {
            let chain = mount.watches.chain(&dentry);
            drop(dentry);
            mount.watches.released_of(&chain);
        }
    }
}
