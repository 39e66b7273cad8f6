//! Calls on streams.

pub mod attr;
pub mod device;
mod file;
mod map;
pub mod pipe;
pub mod server;
pub mod socket;

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::Errno;
use janua_abi::linux::net::msg;
use janua_abi::pal::{Error, Kind, stream};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::table::Fd;
use janua_kernel::thread::work;
use janua_kernel::{UserPtr, UserStr};
use janua_object::OpenFile;
use janua_object::net::common::shut;
use janua_object::net::socket as object;
use janua_personality_linux::Thread;
use janua_personality_linux::fs::rw::{Place, RwFlags, read_file, write_file};
use janua_personality_linux::fs::{attr as file_attr, fd};

use self::device::Console;
use self::file::How;
use self::pipe::Stream;
use self::server::Server;
use crate::answer::{Reply, Result, reply};
use crate::bulk::Channel;
use crate::state::{self, State};
use crate::uri::{self, Uri};
use crate::{handle, memory};

pub use self::file::{open as open_file, read_whole};
pub use self::map::{map, unmap};

/// How a file is opened to be read by the kernel.
pub const TO_READ: How = How { access: 0, share: 0, create: 0, options: 0 };

/// How a file is opened that the library writes its reports to.
pub const TO_REPORT: How = How { access: 1, share: 0o600, create: stream::CREAT_TRY, options: 0 };

/// DkStreamOpen.
pub async fn open(thread: &Thread, uri: UserStr, access: u32, share: u32, create: u32, options: u32) -> Reply {
    Reply::of(
        async {
            let state = state::of(thread)?;
            let how = How { access, share, create, options }.check()?;
            let uri = Uri::of(thread, uri)?;
            let file = match &uri {
                Uri::File(path) => file::open(thread, &state, path, false, how)?,
                Uri::Dir(path) => file::open(thread, &state, path, true, how)?,
                Uri::Device(path) => device(thread, &state, path, how)?,
                Uri::Tty => Console::open(&state, how.access | how.status()),
                Uri::PipePrivate => Stream::private(thread).open(how.status()),
                Uri::PipeServer(number) => {
                    Server::open(&state.system, thread.machine().clock(), group(&state, *number), how.status())?
                }
                Uri::Pipe(number) => Server::connect(thread, &state.system, group(&state, *number))?.open(how.status()),
                Uri::Gipc(key) => Channel::open(&state.system, *key)?,
                _ => socket::open(thread, &state, &uri, how).await?,
            };
            handle::install(thread, file)
        }
        .await,
    )
}

/// A pipe's name in the caller's group.
fn group(state: &State, number: u64) -> state::PipeName {
    (state.group.load(core::sync::atomic::Ordering::Relaxed), number)
}

/// A device. INVAL for what is none.
fn device(thread: &Thread, state: &State, path: &[u8], how: How) -> Result<Arc<OpenFile>> {
    let opened = file::open(thread, state, path, false, How { create: 0, ..how })?;
    if handle::kind(&opened) == Kind::Device { Ok(opened) } else { Err(Error::Invalid.into()) }
}

/// DkStreamWaitForClient.
pub async fn wait_for_client(thread: &Thread, server: Fd) -> Reply {
    Reply::of(
        async {
            state::of(thread)?;
            let file = handle::get(thread, server)?;
            let reserved = fd::reserve(thread)?;
            let accepted = match file.downcast::<Server>() {
                Some(server) => {
                    let stream = match server.accept() {
                        None if file.nonblocking() => return Err(Error::TryAgain.into()),
                        None => thread.wait_on(server.arrivals(), None, || server.accept()).await?,
                        Some(stream) => stream,
                    };
                    stream.open(0)
                }
                None if handle::kind(&file) == Kind::TcpServer => socket::accept(thread, &file).await?,
                None => return Err(Error::NotServer.into()),
            };
            let kind = handle::kind(&accepted);
            Ok(handle::word(kind, reserved.install(accepted, false)?) as usize)
        }
        .await,
    )
}

/// Where a transfer begins.
fn place(file: &OpenFile, offset: u64, len: usize) -> Result<Place> {
    let place = if file.ops.seekable() { Place::At(offset) } else { Place::Position };
    place.check(len)?;
    Ok(place)
}

/// DkStreamRead.
pub async fn read(
    thread: &Thread,
    fd: Fd,
    offset: u64,
    count: usize,
    buf: UserPtr<u8>,
    source: UserPtr<u8>,
    size: usize,
) -> Reply {
    Reply::of(
        async {
            let state = state::of(thread)?;
            let file = handle::get(thread, fd)?;
            file.check_read()?;
            if count == 0 {
                return Err(Error::ZeroSize.into());
            }
            let kind = handle::kind(&file);
            if kind == Kind::Directory {
                return names(thread, &file, buf, count);
            }
            if matches!(kind, Kind::Udp | Kind::UdpServer) {
                let source = (!source.is_null() && size > 0).then_some((source, size));
                return datagram(thread, &state, &file, (buf, count), source).await;
            }
            let mut buf = ReadBuf::user(thread.user(), buf.addr(), count)?.until(thread.work_word(), work::KILL);
            match read_file(thread, &file, &mut buf, place(&file, offset, count)?, false).await? {
                0 => Err(Error::EndOfStream.into()),
                n => Ok(n),
            }
        }
        .await,
    )
}

/// The next names of a directory. They are the next still when they cannot be given.
fn names(thread: &Thread, file: &OpenFile, buf: UserPtr<u8>, count: usize) -> Result {
    let before = *file.pos.lock();
    let names = file::list(thread, file, count)?;
    if thread.user().copy_out(buf.addr(), &names).is_err() {
        *file.pos.lock() = before;
        return Err(Errno::EFAULT.into());
    }
    Ok(names.len())
}

/// The next datagram. It and its sender are given before it is taken: it stays where that cannot be.
async fn datagram(
    thread: &Thread,
    state: &State,
    file: &OpenFile,
    (buf, count): (UserPtr<u8>, usize),
    source: Option<(UserPtr<u8>, usize)>,
) -> Result {
    let tell = |from: Option<core::net::SocketAddr>| {
        let Some((to, size)) = source else { return Ok(0) };
        put_text(thread, from.map(|from| socket::source(state, from).into_bytes()).unwrap_or_default(), to, size)
    };
    let room = || ReadBuf::user(thread.user(), buf.addr(), count).map(|buf| buf.until(thread.work_word(), work::KILL));
    let (_, first) = socket::receive(thread, file, &mut room()?, msg::PEEK).await?;
    tell(first)?;
    let (len, from) = socket::receive(thread, file, &mut room()?, 0).await?;
    // Another thread has taken the one before.
    if from != first {
        tell(from)?;
    }
    Ok(len)
}

/// Gives the program a text with its zero. OVERFLOW when it does not fit.
fn put_text(thread: &Thread, mut text: Vec<u8>, to: UserPtr<u8>, size: usize) -> Result {
    let len = text.len();
    text.push(0);
    if text.len() > size {
        return Err(Error::Overflow.into());
    }
    thread.user().copy_out(to.addr(), &text).map_err(|_| Errno::EFAULT)?;
    Ok(len)
}

/// DkStreamWrite.
pub async fn write(thread: &Thread, fd: Fd, offset: u64, count: usize, buf: UserPtr<u8>, dest: UserStr) -> Reply {
    Reply::of(
        async {
            let state = state::of(thread)?;
            let file = handle::get(thread, fd)?;
            file.check_write()?;
            if count == 0 {
                return Err(Error::ZeroSize.into());
            }
            let mut buf = WriteBuf::user(thread.user(), buf.addr(), count)?.until(thread.work_word(), work::KILL);
            if matches!(handle::kind(&file), Kind::Udp | Kind::UdpServer) {
                let to = if dest.is_null() { None } else { Some(uri::destination(thread, dest)?) };
                return socket::send(thread, &state, &file, &mut buf, to).await;
            }
            Ok(write_file(thread, &file, &mut buf, place(&file, offset, count)?, RwFlags(0)).await?)
        }
        .await,
    )
}

/// DkStreamDelete.
pub fn delete(thread: &Thread, fd: Fd, access: u32) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        let file = handle::get(thread, fd)?;
        if access & !(stream::DELETE_RD | stream::DELETE_WR) != 0 {
            return Err(Error::Invalid.into());
        }
        let (read, write) = match access {
            0 => (true, true),
            access => (access & stream::DELETE_RD != 0, access & stream::DELETE_WR != 0),
        };
        if let Some(stream) = file.downcast::<Stream>() {
            stream.shut(read, write);
        } else if let Some(server) = file.downcast::<Server>() {
            server.remove_name();
        } else if let Ok(socket) = object::of_file(&file) {
            socket.socket.shutdown(if read { shut::RECEIVE } else { 0 } | if write { shut::SEND } else { 0 })?;
        } else if access != 0 {
            return Err(Error::Invalid.into());
        } else {
            file::remove(thread, &state, &file)?;
        }
        Ok(0)
    })
}

/// DkStreamSetLength.
pub fn set_length(thread: &Thread, fd: Fd, length: u64) -> Reply {
    reply(|| {
        state::of(thread)?;
        let file = handle::get(thread, fd)?;
        if handle::kind(&file) != Kind::File {
            return Err(Error::NotSupported.into());
        }
        let length = i64::try_from(length).map_err(|_| Error::Invalid)?;
        file_attr::ftruncate(thread, fd, length)?;
        Ok(length as usize)
    })
}

/// DkStreamFlush.
pub fn flush(thread: &Thread, fd: Fd) -> Reply {
    reply(|| {
        state::of(thread)?;
        let file = handle::get(thread, fd)?;
        match handle::kind(&file) {
            Kind::File | Kind::Directory => file.ops.sync(false)?,
            // What has been written is at the other end.
            Kind::Pipe | Kind::PipeClient | Kind::PipePrivate | Kind::Process | Kind::Tcp | Kind::Device => {}
            _ => return Err(Error::NotSupported.into()),
        }
        Ok(0)
    })
}

/// The URI of a handle.
fn named(thread: &Thread, state: &State, file: &OpenFile) -> Result<Vec<u8>> {
    if let Ok(socket) = object::of_file(file) {
        return Ok(socket::name(state, &*socket.socket).into_bytes());
    }
    let kind = handle::kind(file);
    let scheme: &[u8] = match kind {
        Kind::File => b"file:",
        Kind::Directory => b"dir:",
        Kind::Device if file.path.is_some() => b"dev:",
        Kind::Thread | Kind::Event | Kind::Semaphore => return Err(Error::NotSupported.into()),
        _ => return Ok(file.ops.label().into_bytes()),
    };
    let path = file.path.as_ref().ok_or(Error::NotSupported)?;
    Ok([scheme, &file::written(thread, path)].concat())
}

/// DkStreamGetName: the length without the zero.
pub fn get_name(thread: &Thread, fd: Fd, buf: UserPtr<u8>, size: usize) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        let file = handle::get(thread, fd)?;
        put_text(thread, named(thread, &state, &file)?, buf, size)
    })
}

/// DkStreamChangeName: of a file or a directory.
pub fn change_name(thread: &Thread, fd: Fd, uri: UserStr) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        let file = handle::get(thread, fd)?;
        let to = match (handle::kind(&file), Uri::of(thread, uri)?) {
            (Kind::File, Uri::File(to)) | (Kind::Directory, Uri::Dir(to)) => to,
            (Kind::File | Kind::Directory, _) => return Err(Error::Invalid.into()),
            _ => return Err(Error::NotSupported.into()),
        };
        file::rename(thread, &state, &file, &to)?;
        Ok(0)
    })
}

/// DkStreamUnmap is DkVirtualMemoryFree.
fn free(thread: &Thread, addr: usize, size: usize) -> Result {
    memory::unmap(thread, addr, size)
}
