//! Making connections: connect(2), accept(2).

use alloc::sync::Arc;

use janua_abi::linux::net::sock;
use janua_kernel::table::Fd;
use janua_kernel::wait::{Cut, PollTable};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::Events;
use janua_object::net::Socket;
use janua_object::net::addr::SockAddr;

use super::args::Type;
use super::{Open, described, read_addr, write_addr};
use crate::Thread;
use crate::fs::fd;
use crate::thread::ThreadExt;

/// When a wait of a call on `socket` ends at the latest.
pub(super) fn deadline(thread: &Thread, socket: &dyn Socket, send: bool) -> Option<u64> {
    let limit = socket.common().wait_limit(send)?;
    Some(thread.machine().clock().monotonic().saturating_add(limit))
}

/// What a wait that a signal ends returns: a call with a timeout is not restarted, it would wait anew (signal(7)).
pub(super) fn interrupted(deadline: Option<u64>) -> Errno {
    if deadline.is_some() { Errno::EINTR } else { Errno::ERESTARTSYS }
}

/// connect(2)
pub async fn connect(thread: &Thread, fd: Fd, addr: UserPtr<u8>, len: i32) -> Result<()> {
    connect_open(thread, &Open::get(thread, fd)?, addr, len).await
}

/// connect(2) of an open socket.
pub(crate) async fn connect_open(thread: &Thread, open: &Open, addr: UserPtr<u8>, len: i32) -> Result<()> {
    let addr = read_addr(thread, addr, len)?;
    let socket = open.socket()?;
    let nonblocking = open.nonblocking();
    let first = socket.connect(&thread.caller(), &addr, nonblocking);
    // EINPROGRESS: it has been started. EAGAIN: there was no room even for that. EALREADY: an earlier call has started it.
    let started = match first {
        Err(Errno::EINPROGRESS | Errno::EALREADY) if !nonblocking => true,
        Err(Errno::EAGAIN) if !nonblocking => false,
        other => return other,
    };
    let deadline = deadline(thread, socket, true);
    let ready = |table: &mut PollTable| {
        socket.poll(Some(table));
    };
    let test = || match socket.connect(&thread.caller(), &addr, false) {
        Err(Errno::EALREADY | Errno::EAGAIN | Errno::EINPROGRESS) => None,
        // A host socket that is connected meanwhile.
        Err(Errno::EISCONN) if started => Some(Ok(())),
        other => Some(other),
    };
    match thread.wait_until(deadline, Events::WRITABLE.bits(), ready, test).await {
        Ok(result) => result,
        Err(Cut::TimedOut) if started => Err(Errno::EINPROGRESS),
        Err(Cut::TimedOut) => Err(Errno::EAGAIN),
        Err(Cut::Interrupted) => Err(interrupted(deadline)),
    }
}

/// The next connection, waiting for one unless the listener does not.
async fn next(thread: &Thread, open: &Open) -> Result<Arc<dyn Socket>> {
    let socket = open.socket()?;
    match socket.accept() {
        Err(Errno::EAGAIN) if !open.nonblocking() => {}
        other => return other,
    }
    let deadline = deadline(thread, socket, false);
    let ready = |table: &mut PollTable| {
        socket.poll(Some(table));
    };
    let test = || match socket.accept() {
        Err(Errno::EAGAIN) => None,
        other => Some(other),
    };
    match thread.wait_until(deadline, Events::READABLE.bits(), ready, test).await {
        Ok(result) => result,
        Err(Cut::TimedOut) => Err(Errno::EAGAIN),
        Err(Cut::Interrupted) => Err(interrupted(deadline)),
    }
}

/// accept4(2)
pub async fn accept4(thread: &Thread, fd: Fd, addr: UserPtr<u8>, len: UserPtr<i32>, flags: Type) -> Result<Fd> {
    if flags.check()?.number() != 0 {
        return Err(Errno::EINVAL);
    }
    accept_open(thread, &Open::get(thread, fd)?, addr, len, flags).await
}

/// accept4(2) of an open socket.
pub(crate) async fn accept_open(thread: &Thread, open: &Open, addr: UserPtr<u8>, len: UserPtr<i32>, flags: Type) -> Result<Fd> {
    if flags.check()?.number() != 0 {
        return Err(Errno::EINVAL);
    }
    // At the limit of descriptors the connection stays in the backlog.
    let reserved = fd::reserve(thread)?;
    let connection = next(thread, open).await?;
    if !addr.is_null() {
        // A peer without a name, or gone meanwhile, has the address of nobody.
        let peer = connection.peer_name().unwrap_or_else(|_| nobody(&*connection));
        if let Err(errno) = write_addr(thread, &peer, addr, len) {
            connection.release();
            return Err(errno);
        }
    }
    reserved.install(described(thread, connection, flags), flags.0 & sock::CLOEXEC != 0)
}

fn nobody(socket: &dyn Socket) -> SockAddr {
    SockAddr::Other(socket.common().family)
}

/// accept(2)
pub async fn accept(thread: &Thread, fd: Fd, addr: UserPtr<u8>, len: UserPtr<i32>) -> Result<Fd> {
    accept4(thread, fd, addr, len, Type(0)).await
}
