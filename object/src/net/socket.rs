//! What a socket can do, and the file it is to everybody else.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_abi::linux::net::{Ucred, ioctl, sock};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::{Mutex, WaitQueue};
use zerocopy::IntoBytes;

use crate::caller::Caller;
use crate::file::{Events, File, OpenFile, flags};
use crate::net::addr::SockAddr;
use crate::net::common::Common;
use crate::net::iface;
use crate::net::unix::Rights;
use crate::vfs::{Attr, FileKind, Inode, SetAttr};

/// Who makes a socket call: a caller that can also find names in the file system.
pub trait NetCaller: Caller {
    /// Makes an inode of kind socket, with what the caller's umask leaves of the permissions. EADDRINUSE when the name exists.
    fn make_socket_node(&self, path: &[u8], mode: u32) -> Result<Arc<dyn Inode>>;
    /// The inode of that name; EACCES unless the caller may write to it.
    fn find_node(&self, path: &[u8]) -> Result<Arc<dyn Inode>>;
}

/// A control message in its raw form, for levels a socket interprets itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancillary {
    pub level: u32,
    pub kind: u32,
    pub data: Vec<u8>,
}

/// What a socket holds of the kernel's memory, bytes.
#[derive(Default)]
pub struct Held {
    pub received: usize,
    pub sent: usize,
    /// Messages that found no room.
    pub lost: u32,
}

/// The value of SO_MEMINFO (linux/sock_diag.h): memory received, its limit, memory sent, its limit, kept for later, queued, of options, in
/// the backlog, and messages lost.
pub fn memory_info(socket: &dyn Socket) -> Vec<u8> {
    let (common, held) = (socket.common(), socket.held());
    let limit = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    let sent = held.sent as u32;
    [held.received as u32, limit(&common.rcvbuf) as u32, sent, limit(&common.sndbuf) as u32, 0, sent, 0, 0, held.lost]
        .as_bytes()
        .to_vec()
}

/// What goes with the bytes of a send.
#[derive(Default)]
pub struct Outgoing {
    /// MSG_* flags.
    pub flags: u32,
    pub to: Option<SockAddr>,
    /// SCM_RIGHTS.
    pub rights: Option<Arc<Rights>>,
    /// Who is named as the sender: SCM_CREDENTIALS (checked); by itself the caller.
    pub cred: Option<Ucred>,
    pub ancillary: Vec<Ancillary>,
}

/// What came with the bytes of a receive.
#[derive(Default)]
pub struct Received {
    /// Bytes stored.
    pub len: usize,
    /// Bytes the message had (with MSG_TRUNC the result of the call).
    pub full: usize,
    pub from: Option<SockAddr>,
    /// MSG_* flags to report.
    pub flags: u32,
    pub rights: Option<Arc<Rights>>,
    pub cred: Option<Ucred>,
    pub ancillary: Vec<Ancillary>,
    /// When it arrived, nanoseconds since 1970; 0 where nobody has looked.
    pub stamp: u64,
}

impl Received {
    /// Bytes of a stream.
    pub fn bytes(len: usize) -> Received {
        Received { len, full: len, ..Received::default() }
    }
}

/// A socket of any family. Operations return EAGAIN where they would wait; `poll` reports when to try again.
pub trait Socket: Send + Sync + Any {
    fn common(&self) -> &Common;
    fn bind(&self, caller: &dyn NetCaller, addr: &SockAddr) -> Result<()>;
    fn listen(&self, _caller: &dyn NetCaller, _backlog: u32) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }
    /// The next connection.
    fn accept(&self) -> Result<Arc<dyn Socket>> {
        Err(Errno::EOPNOTSUPP)
    }
    /// Connects. EINPROGRESS when the connection is on its way; a later call reports its end, EALREADY until then. EAGAIN when
    /// it could not even be started.
    fn connect(&self, caller: &dyn NetCaller, addr: &SockAddr, nonblocking: bool) -> Result<()>;
    fn name(&self) -> Result<SockAddr>;
    fn peer_name(&self) -> Result<SockAddr>;
    /// Sends: bytes taken from `buf`. `names` finds who is addressed by a path; write(2) addresses nobody.
    fn send(
        &self,
        caller: &dyn Caller,
        names: Option<&dyn NetCaller>,
        buf: &mut WriteBuf<'_>,
        message: &Outgoing,
    ) -> Result<usize>;
    /// Receives with MSG_* `flags`; `want_from` asks for the sender's address where that costs something.
    fn receive(&self, buf: &mut ReadBuf<'_>, flags: u32, want_from: bool) -> Result<Received>;
    /// `directions`: [`crate::net::common::shut`].
    fn shutdown(&self, directions: u32) -> Result<()>;
    fn poll(&self, table: Option<&mut PollTable>) -> Events;
    fn is_listening(&self) -> bool {
        false
    }
    fn set_option(&self, caller: &dyn NetCaller, level: u32, name: u32, value: &[u8]) -> Result<()>;
    /// The value; the caller cuts it to `room` bytes, which the socket is given for options whose shape depends on it.
    fn get_option(&self, caller: &dyn NetCaller, level: u32, name: u32, room: usize) -> Result<Vec<u8>>;
    /// FIONREAD: bytes a read would get.
    fn readable_bytes(&self) -> usize;
    /// SIOCOUTQ: bytes sent and not yet taken by the other side.
    fn unsent_bytes(&self) -> usize {
        0
    }
    /// Bytes and messages that wait here, with what they cost beside (SO_MEMINFO).
    fn held(&self) -> Held {
        Held::default()
    }
    /// The control message after a read with TCP_INQ: bytes a read would get now.
    fn inquiry(&self) -> Option<Ancillary> {
        None
    }
    /// The queue that is woken when urgent data comes.
    fn urgency(&self) -> Option<WaitQueue> {
        None
    }
    /// Requests beyond those of every socket.
    fn ioctl(&self, _caller: &dyn Caller, _request: u32, _arg: usize) -> Result<usize> {
        Err(Errno::ENOTTY)
    }
    /// The last descriptor is gone.
    fn release(&self);
    fn as_any(&self) -> &dyn Any;
}

/// The device number stat(2) shows for sockets.
const SOCKFS_DEV: u64 = 8;

/// A socket as an open file.
pub struct SocketFile {
    pub socket: Arc<dyn Socket>,
    attr: Mutex<Attr>,
}

impl SocketFile {
    /// `ino`: a number of its own for stat(2); `now`: nanoseconds since 1970.
    pub fn new(socket: Arc<dyn Socket>, ino: u64, uid: u32, gid: u32, now: i64) -> Arc<SocketFile> {
        let attr = Attr {
            dev: SOCKFS_DEV,
            ino,
            mode: FileKind::Socket as u32 | 0o777,
            nlink: 1,
            uid,
            gid,
            blksize: 4096,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            ..Attr::default()
        };
        socket.common().set_ino(ino);
        Arc::new(SocketFile { socket, attr: Mutex::new(attr) })
    }

    /// The number in `socket:[n]` and /proc/net.
    pub fn ino(&self) -> u64 {
        self.attr.lock().ino
    }
}

impl File for SocketFile {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        if buf.left() == 0 {
            return Ok(0);
        }
        self.socket.receive(buf, 0, false).map(|received| received.len)
    }

    fn write(&self, _file: &OpenFile, caller: &dyn Caller, buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        self.socket.send(caller, None, buf, &Outgoing::default())
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        self.socket.poll(table)
    }

    fn announces(&self) -> bool {
        true
    }

    fn urgency(&self) -> Option<WaitQueue> {
        self.socket.urgency()
    }

    fn streams(&self) -> bool {
        self.socket.common().kind == sock::STREAM
    }

    fn before_transfer(&self, _caller: &dyn Caller, _write: bool) -> Result<usize> {
        Ok(self.socket.common().rcvlowat.load(Ordering::Relaxed))
    }

    fn wait_limit(&self, write: bool) -> Option<u64> {
        self.socket.common().wait_limit(write)
    }

    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        let count = match request {
            ioctl::FIONREAD if self.socket.is_listening() => return Err(Errno::EINVAL),
            ioctl::FIONREAD => self.socket.readable_bytes(),
            ioctl::SIOCOUTQ if self.socket.is_listening() => return Err(Errno::EINVAL),
            ioctl::SIOCOUTQ => self.socket.unsent_bytes(),
            _ => {
                return match self.socket.ioctl(caller, request, arg) {
                    Err(Errno::ENOTTY) => iface::ioctl(caller, request, arg),
                    answer => answer,
                };
            }
        };
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        UserPtr::<i32>::new(arg).write(caller.user(), &count)?;
        Ok(0)
    }

    fn attr(&self) -> Result<Attr> {
        Ok(*self.attr.lock())
    }

    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        change.apply(&mut self.attr.lock());
        if let Some(mode) = change.mode {
            self.socket.common().mode.store(mode & 0o777, Ordering::Relaxed);
        }
        Ok(())
    }

    fn release(&self, _file: &OpenFile) {
        self.socket.release();
    }

    fn label(&self) -> String {
        format!("socket:[{}]", self.ino())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The socket behind a file. ENOTSOCK, EBADF for a mere place.
pub fn of_file(file: &OpenFile) -> Result<&SocketFile> {
    let other = || if file.flags() & flags::O_PATH != 0 { Errno::EBADF } else { Errno::ENOTSOCK };
    file.downcast::<SocketFile>().ok_or_else(other)
}
