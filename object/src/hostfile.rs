//! Files over descriptors of the host that the sandbox inherited: standard streams, the trace file.
//!
//! The description behind such a descriptor is shared with programs outside, so its flags are left alone: in particular it is
//! never made non-blocking. Instead every transfer asks the host first whether it could go on at once, and a write into a
//! stream moves no more than a pipe takes when it calls itself ready. Two writers that see the same room can still meet; the
//! second then waits in the host until the outside reads.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::{AtomicU8, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::{EVENTS, PollTable};
use janua_port::host::{self, HostReady, HostStat};
use janua_port::{Backing, Host, HostFd, HostFiles, OwnedFd};
use janua_rt::WaitQueue;

use crate::caller::Caller;
use crate::file::{Events, File, OpenFile, flags, offset, request};
use crate::fs::hostfs::Change;
use crate::fs::hostfs::frozen;
use crate::fs::hostio::{self, CHUNK};
use crate::pipe::PIPE_BUF;
use crate::vfs::{Attr, FileKind};

/// Who waits for the host's descriptor to become ready.
#[derive(Default)]
struct Ready(WaitQueue);

impl HostReady for Ready {
    fn ready(&self, events: u32) {
        self.0.wake(events);
    }
}

/// Whether the host reports readiness.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Watch {
    Unknown,
    Watched,
    /// The host cannot watch it: it is always ready (regular files, /dev/null).
    Always,
}

/// An inherited host descriptor.
pub struct HostFile {
    host: &'static dyn Host,
    fd: HostFd,
    /// The same among the host's files, where it has some. Otherwise the descriptor is a line, whose host moves bytes of the kernel's.
    file: Option<Arc<OwnedFd>>,
    kind: FileKind,
    stat: HostStat,
    ready: Arc<Ready>,
    watch: AtomicU8,
    /// What the outside calls it, if that is known.
    name: Option<String>,
}

impl HostFile {
    /// A file over `fd`, which it closes when dropped; where there is none, `fd` is closed at once. Errors are fstat(2)'s, and EINVAL for what is of no
    /// kind that files have (an eventfd, say).
    pub fn new(host: &'static dyn Host, fd: HostFd) -> Result<HostFile> {
        HostFile::over(host, fd).inspect_err(|_| host.close(fd))
    }

    fn over(host: &'static dyn Host, fd: HostFd) -> Result<HostFile> {
        let stat = host.stat(fd)?;
        let kind = FileKind::of_mode(stat.mode).ok_or(Errno::EINVAL)?;
        if kind == FileKind::Regular && host.flags(fd)? & flags::O_ACCMODE != flags::O_RDONLY {
            frozen::note_writable(&stat);
        }
        let file = host.files().map(|files| {
            let file = OwnedFd::of_file(files, fd);
            file.set_copies(files.reads_copy(fd));
            file
        });
        Ok(HostFile {
            host,
            fd,
            file,
            kind,
            stat,
            ready: Arc::new(Ready::default()),
            watch: AtomicU8::new(Watch::Unknown as u8),
            name: None,
        })
    }

    /// An open file over the descriptor, with the access mode and O_APPEND of the description outside. `name`: what that is called there;
    /// empty when it is not known.
    pub fn open(host: &'static dyn Host, fd: HostFd, name: &[u8]) -> Result<Arc<OpenFile>> {
        let mut ops = HostFile::new(host, fd)?;
        let outside = host.flags(fd)?;
        ops.name = (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned());
        Ok(OpenFile::new(Arc::new(ops), outside & (flags::O_ACCMODE | flags::O_APPEND) | flags::O_LARGEFILE, None))
    }

    /// The host's descriptor; valid as long as this file.
    pub fn host_fd(&self) -> HostFd {
        self.fd
    }

    pub fn host(&self) -> &'static dyn Host {
        self.host
    }

    fn files(&self) -> Option<&'static dyn HostFiles> {
        self.file.as_ref().map(|file| file.host())
    }

    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// What was handed in for reading gives no right to write, whatever the host would allow its user. EACCES.
    fn may(&self, access: u32) -> Result<()> {
        let outside = self.host.flags(self.fd)? & flags::O_ACCMODE;
        if outside == flags::O_RDWR || outside == access { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Woken when the host reports that the descriptor has become ready; [`HostFile::watched`] arms it.
    pub fn readiness(&self) -> &WaitQueue {
        &self.ready.0
    }

    /// Whether the descriptor can be waited for; asks the host to report changes, the first time.
    pub fn watched(&self) -> bool {
        if self.watch.load(Ordering::Acquire) == Watch::Unknown as u8 {
            // Two callers may both ask: the host refuses the second (EEXIST), which is as good.
            let watch = match self.host.watch(self.fd, self.ready.clone()) {
                Err(Errno::EPERM) => Watch::Always,
                _ => Watch::Watched,
            };
            self.watch.store(watch as u8, Ordering::Release);
        }
        self.watch.load(Ordering::Acquire) == Watch::Watched as u8
    }

    /// What of `interest` the host reports as ready now.
    pub fn host_events(&self, interest: Events) -> Events {
        let events = Events::from_bits_truncate(self.host.poll(self.fd, interest.bits()));
        EVENTS.advance();
        events
    }

    /// What the host reports now.
    fn fetch(&self) -> Result<HostStat> {
        let stat = self.host.stat(self.fd);
        EVENTS.advance();
        stat
    }

    fn has_position(&self) -> bool {
        matches!(self.kind, FileKind::Regular | FileKind::BlockDevice)
    }

    /// EAGAIN unless a transfer can go on at once.
    fn ask(&self, interest: Events) -> Result<()> {
        if self.has_position() || !self.host_events(interest).is_empty() { Ok(()) } else { Err(Errno::EAGAIN) }
    }

    fn host_offset(&self, at: u64) -> Option<u64> {
        match at {
            offset::END if self.has_position() => Some(host::END),
            offset::CURRENT | offset::END => None,
            at => Some(at),
        }
    }
}

impl Drop for HostFile {
    fn drop(&mut self) {
        if *self.watch.get_mut() == Watch::Watched as u8 {
            self.host.unwatch(self.fd);
        }
        if self.file.is_none() {
            self.host.close(self.fd);
        }
    }
}

impl File for HostFile {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, at: u64) -> Result<usize> {
        let mut at = self.host_offset(at);
        let mut moved = 0;
        while buf.left() > 0 {
            let step = self.ask(Events::READABLE).and_then(|()| match (buf.host_range(), &self.file) {
                (Some(((addr, len), true)), Some(file)) if file.copies() => {
                    let n = file.host().read_user(self.fd, addr, len, at)?;
                    buf.advance(n);
                    Ok((n, len))
                }
                (Some(((_, 0), _)), _) => Ok((0, 0)),
                (Some(((addr, len), _)), _) => {
                    // What a stream has given it does not give again, and a position has moved on.
                    let want = if at.is_some() { len.min(CHUNK) } else { buf.storable(CHUNK) };
                    if want == 0 {
                        return Err(Errno::EFAULT);
                    }
                    Ok((hostio::read_through(self.host, self.fd, buf, addr, want, at)?, want))
                }
                (None, _) => match buf.kernel_range() {
                    Some(room) => {
                        let asked = room.len();
                        let n = self.host.read(self.fd, room, at)?;
                        buf.advance(n);
                        Ok((n, asked))
                    }
                    None => Ok((0, 0)),
                },
            });
            match step {
                Ok((n, asked)) => {
                    moved += n;
                    at = at.map(|at| at + n as u64);
                    // A stream returns what one piece brought.
                    if n < asked || n == 0 || !self.has_position() {
                        break;
                    }
                }
                Err(_) if moved > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        EVENTS.advance();
        Ok(moved)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, at: u64) -> Result<usize> {
        let _change = Change::begin();
        let mut at = self.host_offset(at);
        let most = if self.has_position() || !self.watched() { usize::MAX } else { PIPE_BUF };
        let mut moved = 0;
        while buf.left() > 0 {
            let step = self.ask(Events::WRITABLE).and_then(|()| match (buf.host_range(), &self.file) {
                (Some(((addr, len), true)), Some(file)) => {
                    let len = len.min(most);
                    Ok((file.host().write_user(self.fd, addr, len, at)?, len))
                }
                (Some(((_, len), _)), _) => {
                    let len = len.min(most).min(CHUNK);
                    Ok((hostio::write_through(self.host, self.fd, buf, len, at)?, len))
                }
                (None, _) => match buf.kernel_range() {
                    Some(bytes) => {
                        let len = bytes.len().min(most);
                        Ok((self.host.write(self.fd, &bytes[..len], at)?, len))
                    }
                    None => Ok((0, 0)),
                },
            });
            match step {
                Ok((n, asked)) => {
                    buf.advance(n);
                    moved += n;
                    at = at.map(|at| if at == host::END { at } else { at + n as u64 });
                    if n < asked || n == 0 {
                        break;
                    }
                }
                Err(_) if moved > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok(moved)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if self.has_position() {
            return Events::ALWAYS;
        }
        if let Some(table) = table {
            table.add(&self.ready.0);
            self.watched();
        }
        self.host_events(Events::all() - Events::NVAL)
    }

    fn seekable(&self) -> bool {
        self.has_position()
    }

    fn keeps_position(&self) -> bool {
        true
    }

    fn streams(&self) -> bool {
        !self.has_position()
    }

    fn size(&self) -> Result<u64> {
        if self.has_position() { Ok(self.fetch()?.size) } else { Err(Errno::ESPIPE) }
    }

    fn seek(&self, _file: &OpenFile, offset: i64, whence: u32) -> Result<u64> {
        self.files().ok_or(Errno::ESPIPE)?.lseek(self.fd, offset, whence)
    }

    fn announces(&self) -> bool {
        !self.has_position()
    }

    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        match request {
            request::FIONREAD => {
                let mut held = [0; 4];
                self.host.ioctl(self.fd, request, &mut held)?;
                UserPtr::<i32>::new(arg).write(caller.user(), &i32::from_ne_bytes(held))?;
                Ok(0)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn backing(&self, _file: &OpenFile, offset: u64, _len: usize, shared: bool) -> Result<Backing> {
        match &self.file {
            Some(file) if self.kind == FileKind::Regular => {
                Ok(Backing::Object { object: file.clone(), offset, shared, frozen: false })
            }
            _ => Err(Errno::ENODEV),
        }
    }

    fn truncate(&self, _file: &OpenFile, len: u64) -> Result<()> {
        self.may(flags::O_WRONLY)?;
        let _change = Change::begin();
        self.files().ok_or(Errno::EINVAL)?.truncate(self.fd, len)
    }

    fn allocate(&self, _file: &OpenFile, mode: u32, offset: u64, len: u64) -> Result<()> {
        let _change = Change::begin();
        self.files().ok_or(Errno::ENODEV)?.fallocate(self.fd, mode, offset, len)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        self.files().ok_or(Errno::EINVAL)?.fsync(self.fd, data_only)
    }

    fn sync_fs(&self) -> Result<()> {
        self.files().map_or(Ok(()), |files| files.sync_fs(self.fd))
    }

    fn sync_blocks(&self) -> bool {
        true
    }

    fn reopen(&self, _file: &OpenFile, _caller: &dyn Caller, open_flags: u32) -> Result<Arc<dyn File>> {
        self.may(open_flags & flags::O_ACCMODE)?;
        let keep = flags::O_ACCMODE | flags::O_APPEND;
        // The new description is the sandbox's own. Without O_NONBLOCK the host would wait for a fifo's other side.
        let wait = if self.has_position() { 0 } else { flags::O_NONBLOCK };
        let files = self.files().ok_or(Errno::ENXIO)?;
        let fd = files.open(self.fd, b"", open_flags & keep | wait, 0, 0)?;
        Ok(Arc::new(HostFile::new(self.host, fd)?))
    }

    fn attr(&self) -> Result<Attr> {
        let stat = if self.has_position() { self.fetch()? } else { self.stat };
        Ok(Attr {
            dev: stat.dev,
            ino: stat.ino,
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
        })
    }

    fn label(&self) -> String {
        let ino = self.stat.ino;
        match self.kind {
            FileKind::Fifo => format!("pipe:[{ino}]"),
            FileKind::Socket => format!("socket:[{ino}]"),
            _ => self.name.clone().unwrap_or_else(|| format!("/dev/host/{ino}")),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
