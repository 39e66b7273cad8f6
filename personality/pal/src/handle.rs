//! Handles: descriptors, and what is behind them; handles that are passed on.
//!
//! A handle that has been sent and not received is in the stream's queue. So that no two streams hold each other there, and nobody could ever take
//! them out: a stream in which handles wait is not sent, and into one that is on its way itself none is put. Both are judged under
//! [`System::sending`](crate::System::sending).

use alloc::sync::Arc;

use janua_abi::linux::Errno;
use janua_abi::pal::{Error, Kind};
use janua_kernel::table::Fd;
use janua_object::file::flags::O_PATH;
use janua_object::net::socket;
use janua_object::vfs::FileKind;
use janua_object::{Events, File, OpenFile};
use janua_personality_linux::Thread;
use janua_personality_linux::fs::fd;
use janua_personality_linux::task::pidfd::PidFd;

use crate::answer::{Reply, Result, reply};
use crate::bulk::Channel;
use crate::signal::Signal;
use crate::state;
use crate::stream::device::Console;
use crate::stream::pipe::Stream;
use crate::stream::server::Server;

/// The file behind a handle. BADHANDLE.
pub fn get(thread: &Thread, fd: Fd) -> Result<Arc<OpenFile>> {
    let file = fd::get(thread, fd)?;
    if file.flags() & O_PATH != 0 { Err(Error::BadHandle.into()) } else { Ok(file) }
}

/// The object of a kind behind a handle, with what it does there. BADHANDLE for another kind.
pub fn with<T: File, R>(thread: &Thread, fd: Fd, act: impl FnOnce(&T) -> R) -> Result<R> {
    let file = get(thread, fd)?;
    Ok(act(file.downcast::<T>().ok_or(Errno::EBADF)?))
}

/// The kind of a file.
pub fn kind(file: &OpenFile) -> Kind {
    if let Some(stream) = file.downcast::<Stream>() {
        return stream.kind;
    }
    if let Some(signal) = file.downcast::<Signal>() {
        return signal.kind();
    }
    if file.downcast::<Server>().is_some() {
        return Kind::PipeServer;
    }
    if file.downcast::<Channel>().is_some() {
        return Kind::Gipc;
    }
    if file.downcast::<PidFd>().is_some() {
        return Kind::Thread;
    }
    if file.downcast::<Console>().is_some() {
        return Kind::Device;
    }
    if let Ok(socket) = socket::of_file(file) {
        return crate::stream::socket::kind(&*socket.socket);
    }
    match file.path.as_ref().map(|path| path.dentry.kind()) {
        Some(FileKind::Directory) => Kind::Directory,
        Some(FileKind::Regular) => Kind::File,
        _ => Kind::Device,
    }
}

/// A handle as calls return it: the number, with the kind above.
pub fn word(kind: Kind, Fd(number): Fd) -> u64 {
    (kind as u64) << 32 | u64::from(number.unsigned_abs())
}

/// Makes a file a handle of the caller's.
pub fn install(thread: &Thread, file: Arc<OpenFile>) -> Result {
    let kind = kind(&file);
    Ok(word(kind, fd::install(thread, file, false)?) as usize)
}

/// DkObjectClose.
pub fn close(thread: &Thread, handle: Fd) -> Reply {
    reply(|| {
        state::of(thread)?;
        fd::close(thread, handle)?;
        Ok(0)
    })
}

/// DkSendHandle.
pub fn send(thread: &Thread, stream: Fd, cargo: Fd) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        let (carrier, cargo) = (get(thread, stream)?, get(thread, cargo)?);
        let carrier = carrier.downcast::<Stream>().ok_or(Error::NotSupported)?;
        if cargo.downcast::<Server>().is_some() {
            // Who connects to it puts streams into it.
            return Err(Error::NotSupported.into());
        }
        let _sending = state.system.sending.lock();
        if let Some(sent) = cargo.downcast::<Stream>()
            && (sent.shares(carrier) || !sent.is_empty())
        {
            return Err(Error::Denied.into());
        }
        carrier.send(cargo)?;
        Ok(0)
    })
}

/// DkReceiveHandle.
pub async fn receive(thread: &Thread, stream: Fd) -> Reply {
    Reply::of(
        async {
            let state = state::of(thread)?;
            let file = get(thread, stream)?;
            let carrier = file.downcast::<Stream>().ok_or(Error::NotSupported)?;
            // Without a number for it the handle stays where it is.
            let reserved = fd::reserve(thread)?;
            let take = || {
                let _sending = state.system.sending.lock();
                carrier.receive()
            };
            let cargo = match take() {
                None if file.nonblocking() => return Err(Error::TryAgain.into()),
                None => thread.wait_on(carrier.arrivals(), None, take).await??,
                Some(taken) => taken?,
            };
            let kind = kind(&cargo);
            Ok(word(kind, reserved.install(cargo, false)?) as usize)
        }
        .await,
    )
}

/// What a handle is ready for is what a reader waits for.
pub const READABLE: Events = Events::READABLE;
