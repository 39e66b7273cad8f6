//! Sending and receiving: send(2), recv(2) and their variants.
//!
//! Sockets never wait; this is where their calls do. What can go on at once allocates nothing.

use core::sync::atomic::Ordering;

use janua_abi::linux::i386::net::{MmsgHdr32, MsgHdr32};
use janua_abi::linux::layout::Layout;
use janua_abi::linux::net::{MmsgHdr, MsgHdr, af, msg};
use janua_abi::linux::signal::SIGPIPE;
use janua_abi::linux::time::TimeSpec;
use janua_abi::linux::uring::RecvMsgOut;
use janua_kernel::iobuf::{IoVec, ReadBuf, WriteBuf};
use janua_kernel::table::Fd;
use janua_kernel::wait::{Cut, PollTable};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::Events;
use janua_object::net::addr::STORAGE;
use janua_object::net::control::Words;
use janua_object::net::socket::{Outgoing, Received};

use super::args::MsgFlags;
use super::connect::{deadline, interrupted};
use super::{Open, message, read_addr, write_addr};
use crate::Thread;
use crate::signal;
use crate::thread::ThreadExt;

/// Most messages of sendmmsg(2) and recvmmsg(2) (UIO_MAXIOV).
const MOST_MESSAGES: usize = 1024;

/// A `struct msghdr` as a program lays it out.
pub trait Message: Layout<MsgHdr> {
    /// Its `struct iovec`.
    type Vector: Layout<[usize; 2]>;
    /// Its control messages.
    const CONTROL: Words;
}

impl Message for MsgHdr {
    type Vector = [usize; 2];
    const CONTROL: Words = Words::Wide;
}

impl Message for MsgHdr32 {
    type Vector = [u32; 2];
    const CONTROL: Words = Words::Narrow;
}

/// A `struct mmsghdr`, which begins with its message.
pub trait Messages {
    type One: Message;
    /// Where the count of bytes is.
    const LEN: usize;
}

impl Messages for MmsgHdr {
    type One = MsgHdr;
    const LEN: usize = core::mem::offset_of!(MmsgHdr, len);
}

impl Messages for MmsgHdr32 {
    type One = MsgHdr32;
    const LEN: usize = core::mem::offset_of!(MmsgHdr32, len);
}

/// Sends, waiting for room unless the flags forbid it. A stream's blocking send goes on until everything is sent; what has been sent
/// counts, whatever ends it.
async fn send(thread: &Thread, open: &Open, buf: &mut WriteBuf<'_>, mut out: Outgoing) -> Result<usize> {
    let socket = open.socket()?;
    let wait = out.flags & msg::DONTWAIT == 0 && !open.nonblocking();
    let stream = !socket.common().is_records();
    let mut error = None;
    let mut limit = None;
    loop {
        let mut result = socket.send(&thread.caller(), Some(&thread.caller()), buf, &out);
        // A ring's send is over with what there was room for, unless it asks for all.
        let is_over = || open.waits && stream && buf.done() > 0 && out.flags & msg::WAITALL == 0;
        if wait && result == Err(Errno::EAGAIN) && !is_over() {
            // Of one call it is one time, however many parts it sends; a stream of AF_UNIX counts it for each, as on Linux.
            if socket.common().family == af::UNIX {
                limit = None;
            }
            let deadline = *limit.get_or_insert_with(|| deadline(thread, socket, true));
            let ready = |table: &mut PollTable| {
                socket.poll(Some(table));
            };
            let test = || match socket.send(&thread.caller(), Some(&thread.caller()), buf, &out) {
                Err(Errno::EAGAIN) => None,
                result => Some(result),
            };
            result = match thread.wait_until(deadline, Events::WRITABLE.bits(), ready, test).await {
                Ok(result) => result,
                Err(Cut::TimedOut) => Err(Errno::EAGAIN),
                Err(Cut::Interrupted) => Err(interrupted(deadline)),
            };
        }
        match result {
            Ok(n) if n > 0 && stream && buf.left() > 0 && thread.goes_on() => {
                // Descriptors go with the first bytes.
                out.rights = None;
            }
            Ok(n) if !stream => return Ok(n),
            Ok(_) => break,
            Err(errno) => {
                error = Some(errno);
                break;
            }
        }
    }
    if error == Some(Errno::EPIPE) && stream && out.flags & msg::NOSIGNAL == 0 {
        signal::send_self(thread, SIGPIPE);
    }
    match error {
        // A message goes whole or not at all, even when some of it has been looked at.
        Some(errno) if !stream || buf.done() == 0 => Err(errno),
        _ => Ok(buf.done()),
    }
}

/// Receives, waiting for the first bytes (with MSG_WAITALL for all) unless the flags forbid it.
async fn receive(thread: &Thread, open: &Open, buf: &mut ReadBuf<'_>, flags: u32, want_from: bool) -> Result<Received> {
    let socket = open.socket()?;
    let wait = flags & (msg::DONTWAIT | msg::ERRQUEUE) == 0 && !open.nonblocking();
    let counts = || flags & (msg::PEEK | msg::OOB) == 0 && !socket.common().is_records();
    let all = flags & msg::WAITALL != 0 && counts();
    // A ring's receive is over with what there is.
    let below_mark = |done: usize| !open.waits && done < socket.common().rcvlowat.load(Ordering::Relaxed) && counts();
    let mut sum: Option<Received> = None;
    let mut limit = None;
    loop {
        let mut result = socket.receive(buf, flags, want_from);
        if wait && matches!(result, Err(Errno::EAGAIN)) {
            let deadline = *limit.get_or_insert_with(|| deadline(thread, socket, false));
            let ready = |table: &mut PollTable| {
                socket.poll(Some(table));
            };
            let test = || match socket.receive(buf, flags, want_from) {
                Err(Errno::EAGAIN) => None,
                result => Some(result),
            };
            result = match thread.wait_until(deadline, Events::READABLE.bits(), ready, test).await {
                Ok(result) => result,
                Err(Cut::TimedOut) => Err(Errno::EAGAIN),
                Err(Cut::Interrupted) => Err(interrupted(deadline)),
            };
        }
        let more = wait && buf.left() > 0 && (all || below_mark(buf.done()));
        match (result, &mut sum) {
            (Ok(received), None) if !more || received.len == 0 || received.rights.is_some() => return Ok(received),
            (Ok(received), None) => sum = Some(received),
            (Ok(received), Some(sum)) => {
                sum.len += received.len;
                sum.full += received.full;
                let last = received.len == 0 || !more || received.rights.is_some();
                if received.rights.is_some() {
                    sum.rights = received.rights;
                }
                if last {
                    break;
                }
            }
            (Err(errno), None) => return Err(errno),
            (Err(errno), Some(_)) => {
                // The end of a connection is returned by the next call: here some has come.
                if matches!(errno, Errno::ECONNRESET | Errno::EPIPE | Errno::ETIMEDOUT | Errno::ECONNREFUSED) {
                    socket.common().set_error(errno);
                }
                break;
            }
        }
    }
    Ok(sum.unwrap_or_default())
}

/// The result of a receive: with MSG_TRUNC the length the message had.
fn answer(received: &Received, flags: u32) -> usize {
    if flags & msg::TRUNC != 0 { received.full } else { received.len }
}

/// sendto(2)
pub async fn sendto(
    thread: &Thread,
    fd: Fd,
    buf: UserPtr<u8>,
    len: usize,
    flags: MsgFlags,
    addr: UserPtr<u8>,
    addr_len: i32,
) -> Result<usize> {
    sendto_open(thread, &Open::get(thread, fd)?, (buf, len), flags, addr, addr_len).await
}

/// sendto(2) of an open socket.
pub(crate) async fn sendto_open(
    thread: &Thread,
    open: &Open,
    (buf, len): (UserPtr<u8>, usize),
    flags: MsgFlags,
    addr: UserPtr<u8>,
    addr_len: i32,
) -> Result<usize> {
    let mut buf = WriteBuf::user(thread.user(), buf.addr(), len)?;
    let to = if addr.is_null() { None } else { Some(read_addr(thread, addr, addr_len)?) };
    let out = Outgoing { flags: flags.0, to, ..Outgoing::default() };
    send(thread, open, &mut buf, out).await
}

/// recvfrom(2)
pub async fn recvfrom(
    thread: &Thread,
    fd: Fd,
    buf: UserPtr<u8>,
    len: usize,
    flags: MsgFlags,
    addr: UserPtr<u8>,
    addr_len: UserPtr<i32>,
) -> Result<usize> {
    let open = Open::get(thread, fd)?;
    let mut buf = ReadBuf::user(thread.user(), buf.addr(), len)?;
    let received = receive(thread, &open, &mut buf, flags.0, !addr.is_null()).await?;
    if !addr.is_null() {
        match &received.from {
            Some(from) => write_addr(thread, from, addr, addr_len)?,
            None if addr_len.read(thread.user())? < 0 => return Err(Errno::EINVAL),
            None => addr_len.write(thread.user(), &0)?,
        }
    }
    Ok(answer(&received, flags.0))
}

/// recv(2) of an open socket.
pub(crate) async fn recv_open(thread: &Thread, open: &Open, (addr, len): (usize, usize), flags: MsgFlags) -> Result<usize> {
    let mut buf = ReadBuf::user(thread.user(), addr, len)?;
    Ok(answer(&receive(thread, open, &mut buf, flags.0, false).await?, flags.0))
}

async fn send_one<M: Message>(thread: &Thread, open: &Open, hdr: &MsgHdr, flags: u32) -> Result<usize> {
    let list = vector::<M>(thread, hdr)?;
    open.socket()?;
    let mut out = Outgoing { flags, ..Outgoing::default() };
    if hdr.name != 0 && hdr.name_len != 0 {
        // A length beyond the storage is cut to it, unlike sendto(2)'s.
        let len = if hdr.name_len < 0 { return Err(Errno::EINVAL) } else { hdr.name_len.min(STORAGE as i32) };
        out.to = Some(read_addr(thread, UserPtr::new(word(hdr.name)?), len)?);
    }
    message::read_control(thread, open, hdr, &mut out, M::CONTROL)?;
    send(thread, open, &mut WriteBuf::user_vec(thread.user(), &list), out).await
}

/// recvmsg(2) of an open socket.
pub(crate) async fn receive_one<M: Message>(thread: &Thread, open: &Open, at: UserPtr<M>, flags: u32) -> Result<usize> {
    let mut hdr = at.load(thread.user())?;
    let list = vector::<M>(thread, &hdr)?;
    if hdr.name != 0 && hdr.name_len < 0 {
        return Err(Errno::EINVAL);
    }
    let mut buf = ReadBuf::user_vec(thread.user(), &list);
    let received = receive(thread, open, &mut buf, flags, hdr.name != 0).await?;
    let count = answer(&received, flags);
    message::write_received(thread, open, &mut hdr, received, flags, M::CONTROL)?;
    at.store(thread.user(), &hdr)?;
    Ok(count)
}

fn word(value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Errno::EFAULT)
}

fn vector<M: Message>(thread: &Thread, hdr: &MsgHdr) -> Result<IoVec> {
    let count = usize::try_from(hdr.iov_len).map_err(|_| Errno::EMSGSIZE)?;
    if count > janua_kernel::iobuf::IOV_MAX {
        return Err(Errno::EMSGSIZE);
    }
    IoVec::read(thread.user(), UserPtr::<M::Vector>::new(word(hdr.iov)?), count)
}

/// sendmsg(2)
pub async fn sendmsg<M: Message>(thread: &Thread, fd: Fd, hdr: UserPtr<M>, flags: MsgFlags) -> Result<usize> {
    sendmsg_open(thread, &Open::get(thread, fd)?, hdr, flags).await
}

/// sendmsg(2) of an open socket.
pub(crate) async fn sendmsg_open<M: Message>(thread: &Thread, open: &Open, hdr: UserPtr<M>, flags: MsgFlags) -> Result<usize> {
    let hdr = hdr.load(thread.user())?;
    send_one::<M>(thread, open, &hdr, flags.0).await
}

/// recvmsg(2)
pub async fn recvmsg<M: Message>(thread: &Thread, fd: Fd, hdr: UserPtr<M>, flags: MsgFlags) -> Result<usize> {
    let open = Open::get(thread, fd)?;
    receive_one(thread, &open, hdr, flags.0).await
}

/// How many bytes a message is to have for which the kernel chooses the memory (0: as many as that has). EINVAL for more than one piece.
pub fn wanted<M: Message>(thread: &Thread, at: UserPtr<M>) -> Result<usize> {
    let hdr = at.load(thread.user())?;
    if hdr.iov_len > 1 { Err(Errno::EINVAL) } else { Ok(vector::<M>(thread, &hdr)?.total()) }
}

/// recvmsg(2) into this memory, whatever the header names. With `whole` all is there, in the form of [`RecvMsgOut`], and the header stays as it is. How many
/// bytes have been filled, and whether there was a message with something in it; EFAULT when the memory is too small.
pub(crate) async fn recvmsg_into<M: Message>(
    thread: &Thread,
    open: &Open,
    at: UserPtr<M>,
    (addr, len): (usize, usize),
    flags: MsgFlags,
    whole: bool,
) -> Result<(usize, bool)> {
    let mut hdr = at.load(thread.user())?;
    if hdr.name_len < 0 && (whole || hdr.name != 0) {
        return Err(Errno::EINVAL);
    }
    if !whole {
        let mut buf = ReadBuf::user(thread.user(), addr, len)?;
        let received = receive(thread, open, &mut buf, flags.0, hdr.name != 0).await?;
        let count = answer(&received, flags.0);
        message::write_received(thread, open, &mut hdr, received, flags.0, M::CONTROL)?;
        at.store(thread.user(), &hdr)?;
        return Ok((count, count > 0));
    }
    let (name, control) = (hdr.name_len as usize, usize::try_from(hdr.control_len).map_err(|_| Errno::EFAULT)?);
    let head = size_of::<RecvMsgOut>() + name;
    let before = head.checked_add(control).filter(|before| *before <= len).ok_or(Errno::EFAULT)?;
    let mut inner = MsgHdr {
        name: if name == 0 { 0 } else { (addr + size_of::<RecvMsgOut>()) as u64 },
        name_len: hdr.name_len,
        control: if control == 0 { 0 } else { (addr + head) as u64 },
        control_len: control as u64,
        ..MsgHdr::default()
    };
    let mut buf = ReadBuf::user(thread.user(), addr + before, len - before)?;
    let received = receive(thread, open, &mut buf, flags.0, name != 0).await?;
    let stored = received.len;
    let count = answer(&received, flags.0);
    message::write_received(thread, open, &mut inner, received, flags.0, M::CONTROL)?;
    let out = RecvMsgOut {
        name_len: inner.name_len as u32,
        control_len: inner.control_len as u32,
        payload_len: count as u32,
        flags: inner.flags,
    };
    UserPtr::<RecvMsgOut>::new(addr).write(thread.user(), &out)?;
    Ok((before + stored, count > 0))
}

/// sendmmsg(2): how many messages were sent.
pub async fn sendmmsg<L: Messages>(thread: &Thread, fd: Fd, list: UserPtr<L>, count: u32, flags: MsgFlags) -> Result<usize> {
    let open = Open::get(thread, fd)?;
    let count = (count as usize).min(MOST_MESSAGES);
    for turn in 0..count {
        let at = list.at(turn);
        let sent = match at.cast::<L::One>().load(thread.user()) {
            Ok(hdr) => send_one::<L::One>(thread, &open, &hdr, flags.0).await,
            Err(errno) => Err(errno),
        };
        match sent.and_then(|n| write_len(thread, at, n)) {
            Ok(()) => {}
            Err(errno) if turn == 0 => return Err(errno),
            Err(_) => return Ok(turn),
        }
    }
    Ok(count)
}

/// Notes in a `struct mmsghdr` how many bytes its message had.
fn write_len<L: Messages>(thread: &Thread, at: UserPtr<L>, len: usize) -> Result<()> {
    let field = at.addr().wrapping_add(L::LEN);
    UserPtr::<u32>::new(field).write(thread.user(), &u32::try_from(len).unwrap_or(u32::MAX))
}

/// recvmmsg(2): how many messages were received. The time limit is looked at after each message, as on Linux.
pub async fn recvmmsg<L: Messages, T: Layout<TimeSpec>>(
    thread: &Thread,
    fd: Fd,
    list: UserPtr<L>,
    count: u32,
    flags: MsgFlags,
    timeout: UserPtr<T>,
) -> Result<usize> {
    let open = Open::get(thread, fd)?;
    let now = || thread.machine().clock().monotonic();
    let end = match timeout.non_null() {
        Some(timeout) => Some(now().saturating_add(timeout.load(thread.user())?.nanos()?)),
        None => None,
    };
    let count = (count as usize).min(MOST_MESSAGES);
    let mut flags = flags.0;
    let mut done = 0;
    while done < count {
        let at = list.at(done);
        let got = receive_one::<L::One>(thread, &open, at.cast(), flags & !msg::WAITFORONE).await;
        match got.and_then(|n| write_len(thread, at, n)) {
            Ok(()) => done += 1,
            Err(errno) if done == 0 => return Err(errno),
            Err(Errno::EAGAIN) => break,
            Err(errno) => {
                // What failed after some have come is returned by the next call.
                open.socket()?.common().set_error(plain(errno));
                break;
            }
        }
        if flags & msg::WAITFORONE != 0 {
            flags |= msg::DONTWAIT;
        }
        if end.is_some_and(|end| now() >= end) {
            break;
        }
    }
    if let (Some(end), Some(timeout)) = (end, timeout.non_null()) {
        timeout.store(thread.user(), &TimeSpec::from_nanos(end.saturating_sub(now())))?;
    }
    Ok(done)
}

/// An error as a program may see it later: a restart is an interruption then.
fn plain(errno: Errno) -> Errno {
    if errno == Errno::ERESTARTSYS { Errno::EINTR } else { errno }
}
