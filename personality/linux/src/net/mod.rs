//! Calls on sockets.

pub mod args;
pub mod connect;
mod filter;
pub mod message;
pub mod names;
pub mod options;
pub mod transfer;

use alloc::sync::Arc;
use alloc::vec;

use janua_abi::linux::net::sock;
use janua_kernel::table::Fd;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::OpenFile;
use janua_object::file::flags::{O_NONBLOCK, O_RDWR};
use janua_object::net::addr::{STORAGE, SockAddr};
use janua_object::net::common::shut;
use janua_object::net::{NetMode, NetSystem, Socket, socket as object};
use janua_port::Machine;

use crate::Thread;
use crate::boot::BootNet;
use crate::fs::fd;
use crate::thread::ThreadExt;
use args::{Domain, Type};

/// The sockets of a new kernel.
pub(crate) fn system(machine: &'static dyn Machine, net: BootNet) -> NetSystem {
    let mut seed = [0; 8];
    machine.random(&mut seed);
    let mode = match net {
        BootNet::Loopback => NetMode::Loopback,
        BootNet::Host => NetMode::Host,
    };
    NetSystem::new(mode, machine.clock(), u64::from_ne_bytes(seed))
}

/// An open socket: the description, which is one.
pub(crate) struct Open {
    file: Arc<OpenFile>,
    /// It is waited for whatever its O_NONBLOCK is, as operations of rings do.
    waits: bool,
}

impl Open {
    /// EBADF, ENOTSOCK.
    pub(crate) fn get(thread: &Thread, fd: Fd) -> Result<Open> {
        let file = fd::get(thread, fd)?;
        object::of_file(&file)?;
        Ok(Open { file, waits: false })
    }

    /// Of an operation, which has had its file since it was submitted. ENOTSOCK.
    pub(crate) fn of_operation(file: Arc<OpenFile>) -> Result<Open> {
        object::of_file(&file)?;
        Ok(Open { file, waits: true })
    }

    /// Whether calls return EAGAIN where they would wait.
    fn nonblocking(&self) -> bool {
        self.file.nonblocking() && !self.waits
    }

    pub(crate) fn file(&self) -> &OpenFile {
        &self.file
    }

    pub(crate) fn socket(&self) -> Result<&dyn Socket> {
        object::of_file(&self.file).map(|file| &*file.socket)
    }
}

/// Makes a socket a descriptor of the calling process.
pub(crate) fn install(thread: &Thread, socket: Arc<dyn Socket>, kind: Type) -> Result<Fd> {
    fd::install(thread, described(thread, socket, kind), kind.0 & sock::CLOEXEC != 0)
}

/// The description of a socket.
fn described(thread: &Thread, socket: Arc<dyn Socket>, kind: Type) -> Arc<OpenFile> {
    let file = thread.kernel.net.file(&thread.caller(), socket);
    let status = if kind.0 & sock::NONBLOCK != 0 { O_RDWR | O_NONBLOCK } else { O_RDWR };
    OpenFile::new(file, status, None)
}

/// Copies an address in. EINVAL for a length no address has.
pub(crate) fn read_addr(thread: &Thread, addr: UserPtr<u8>, len: i32) -> Result<SockAddr> {
    let len = usize::try_from(len).ok().filter(|&len| len <= STORAGE).ok_or(Errno::EINVAL)?;
    let mut bytes = [0; STORAGE];
    thread.user().copy_in(&mut bytes[..len], addr.addr()).map_err(|_| Errno::EFAULT)?;
    SockAddr::decode(&bytes[..len])
}

/// Copies an address out, cut to the room the program gives; the whole length goes to `len`.
pub(crate) fn write_addr(thread: &Thread, addr: &SockAddr, to: UserPtr<u8>, len: UserPtr<i32>) -> Result<()> {
    let room = usize::try_from(len.read(thread.user())?).map_err(|_| Errno::EINVAL)?;
    let raw = addr.encode();
    let bytes = raw.as_bytes();
    thread.user().copy_out(to.addr(), &bytes[..room.min(bytes.len())]).map_err(|_| Errno::EFAULT)?;
    len.write(thread.user(), &(bytes.len() as i32))
}

/// socket(2)
pub fn socket(thread: &Thread, domain: Domain, kind: Type, protocol: u32) -> Result<Fd> {
    let kind = kind.check()?;
    let socket = thread.kernel.net.create(&thread.caller(), domain.0, kind.number(), protocol)?;
    install(thread, socket, kind)
}

/// socketpair(2)
pub fn socketpair(thread: &Thread, domain: Domain, kind: Type, protocol: u32, out: UserPtr<[i32; 2]>) -> Result<()> {
    let kind = kind.check()?;
    let [first, second] = thread.kernel.net.create_pair(&thread.caller(), domain.0, kind.number(), protocol)?;
    let files = [described(thread, first, kind), described(thread, second, kind)];
    fd::install_pair(thread, files, kind.0 & sock::CLOEXEC != 0, out)
}

/// bind(2)
pub fn bind(thread: &Thread, fd: Fd, addr: UserPtr<u8>, len: i32) -> Result<()> {
    let open = Open::get(thread, fd)?;
    let addr = read_addr(thread, addr, len)?;
    open.socket()?.bind(&thread.caller(), &addr)
}

/// listen(2). A negative backlog is the greatest one.
pub fn listen(thread: &Thread, fd: Fd, backlog: i32) -> Result<()> {
    let open = Open::get(thread, fd)?;
    open.socket()?.listen(&thread.caller(), backlog as u32)
}

/// getsockname(2)
pub fn getsockname(thread: &Thread, fd: Fd, addr: UserPtr<u8>, len: UserPtr<i32>) -> Result<()> {
    let name = Open::get(thread, fd)?.socket()?.name()?;
    write_addr(thread, &name, addr, len)
}

/// getpeername(2)
pub fn getpeername(thread: &Thread, fd: Fd, addr: UserPtr<u8>, len: UserPtr<i32>) -> Result<()> {
    let name = Open::get(thread, fd)?.socket()?.peer_name()?;
    write_addr(thread, &name, addr, len)
}

/// shutdown(2)
pub fn shutdown(thread: &Thread, fd: Fd, how: i32) -> Result<()> {
    let open = Open::get(thread, fd)?;
    let directions = match how {
        0 => shut::RECEIVE,
        1 => shut::SEND,
        2 => shut::BOTH,
        _ => return Err(Errno::EINVAL),
    };
    open.socket()?.shutdown(directions)
}

/// Reads `len` bytes of an option's value.
pub(crate) fn read_value(thread: &Thread, value: UserPtr<u8>, len: usize) -> Result<alloc::vec::Vec<u8>> {
    let mut bytes = vec![0; len];
    thread.user().copy_in(&mut bytes, value.addr()).map_err(|_| Errno::EFAULT)?;
    Ok(bytes)
}
