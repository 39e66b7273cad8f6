//! Operations on sockets.

use janua_abi::linux::i386::net::MsgHdr32;
use janua_abi::linux::net::{MsgHdr, af, msg, sol};
use janua_abi::linux::uring::{NOTIF_USAGE_ZC_COPIED, Sqe, cqe, flag, op, sqe};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::Fd;
use janua_object::Events;

use super::super::op::{Op, Reply};
use super::super::resources;
use super::rw::{Attempt, brought, pause, retry, wait_for};
use super::{arg, place_later};
use crate::Thread;
use crate::linux::is_restart_code;
use crate::net::args::{Level, MsgFlags, Type};
use crate::net::{Open, connect as making, options, transfer};

/// Times a multishot operation goes on at once before others have their turn.
const IN_A_ROW: u32 = 32;

/// An operation on a socket, which it has had since it was submitted.
pub async fn perform(op: &Op, t: &Thread, open: &Open) -> Reply {
    match op.sqe.opcode {
        op::ACCEPT => accept(op, t, open).await,
        op::CONNECT => connect(t, &op.sqe, open).await.into(),
        op::SEND | op::SENDMSG => send(op, t, open).await,
        op::SEND_ZC | op::SENDMSG_ZC => send_and_notify(op, t, open).await,
        op::RECV | op::RECVMSG => receive(op, t, open).await,
        _ => Reply::error(Errno::EINVAL),
    }
}

/// IORING_OP_URING_CMD: a command of a socket's. EOPNOTSUPP for other files, and for what the protocol does not know.
pub fn command(t: &Thread, sqe: &Sqe) -> Result<usize> {
    let open = Open::get(t, Fd(sqe.fd)).map_err(|errno| if errno == Errno::ENOTSOCK { Errno::EOPNOTSUPP } else { errno })?;
    let socket = open.socket()?;
    // Only the protocols of IP have commands.
    if !matches!(socket.common().family, af::INET | af::INET6) {
        return Err(Errno::EOPNOTSUPP);
    }
    let (level, name) = (Level(sqe.addr as u32), (sqe.addr >> 32) as u32);
    let len = sqe.file_index as i32;
    match sqe.off as u32 {
        flag::SOCKET_SIOCINQ | flag::SOCKET_SIOCOUTQ if socket.is_listening() => Err(Errno::EINVAL),
        flag::SOCKET_SIOCINQ => Ok(socket.readable_bytes()),
        flag::SOCKET_SIOCOUTQ => Ok(socket.unsent_bytes()),
        flag::SOCKET_GETSOCKOPT if level.0 != sol::SOCKET => Err(Errno::EOPNOTSUPP),
        flag::SOCKET_GETSOCKOPT => {
            let room = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
            options::get_open(t, &open, level, name, arg(sqe.addr3)?, room).map_err(|(errno, _)| errno)
        }
        flag::SOCKET_SETSOCKOPT => options::set_open(t, &open, level, name, arg(sqe.addr3)?, len).map(|()| 0),
        _ => Err(Errno::EOPNOTSUPP),
    }
}

/// connect(2)
async fn connect(t: &Thread, sqe: &Sqe, open: &Open) -> Result<()> {
    if sqe.len != 0 || sqe.op_flags != 0 || sqe.buf_index != 0 || sqe.file_index != 0 {
        return Err(Errno::EINVAL);
    }
    let mut begun = false;
    loop {
        match making::connect_open(t, open, arg(sqe.addr)?, sqe.off as i32).await {
            Err(Errno::EINPROGRESS | Errno::EALREADY) => begun = true,
            Err(Errno::EISCONN) if begun => return Ok(()),
            other => return other,
        }
        retry(t, open.file(), Events::WRITABLE).await?;
    }
}

/// accept4(2), once or again and again.
async fn accept(op: &Op, t: &Thread, open: &Open) -> Reply {
    let Sqe { addr, off: len, op_flags, ioprio, .. } = op.sqe;
    let known = flag::ACCEPT_MULTISHOT | flag::ACCEPT_DONTWAIT | flag::ACCEPT_POLL_FIRST;
    let multi = ioprio & flag::ACCEPT_MULTISHOT != 0;
    let one_slot = op.sqe.file_index != 0 && op.sqe.file_index != flag::FILE_INDEX_ALLOC;
    if op.sqe.len != 0 || op.sqe.buf_index != 0 || ioprio & !known != 0 || multi && one_slot {
        return Reply::error(Errno::EINVAL);
    }
    let wait = ioprio & flag::ACCEPT_DONTWAIT == 0;
    let mut row = 0;
    loop {
        let made = async {
            if !wait {
                let ready = open.file().poll(&crate::thread::ThreadExt::caller(t), None);
                if !ready.intersects(Events::READABLE) {
                    return Err(Errno::EAGAIN);
                }
            }
            let (addr, len): (UserPtr<u8>, UserPtr<i32>) = (arg(addr)?, arg(len)?);
            loop {
                match making::accept_open(t, open, addr, len, Type(op_flags)).await {
                    Err(Errno::EAGAIN) if wait => retry(t, open.file(), Events::READABLE).await?,
                    made => return place_later(op, made?),
                }
            }
        };
        match made.await {
            Ok(made) if multi && op.post_more(made as i64, cqe::MORE) => {}
            other => return other.into(),
        }
        row += 1;
        if row % IN_A_ROW == 0 {
            pause().await;
        }
    }
}

/// sendto(2), sendmsg(2). No signal comes of a broken connection.
async fn send(op: &Op, t: &Thread, open: &Open) -> Reply {
    if op.sqe.ioprio & !flag::RECVSEND_POLL_FIRST != 0 {
        return Reply::error(Errno::EINVAL);
    }
    ended(op, send_once(op, t, open).await)
}

/// The same, with a completion of its own for the time from which the program may use the memory again. It is copied: that time has come.
async fn send_and_notify(op: &Op, t: &Thread, open: &Open) -> Reply {
    if op.sqe.ioprio & flag::RECVSEND_FIXED_BUF != 0
        && let Err(errno) = op.ring.resources.lock().within(op.sqe.buf_index, op.sqe.addr, op.sqe.len)
    {
        return Reply::error(errno);
    }
    // Linux has such transfers by IP alone.
    let by_ip = open.socket().map(|socket| matches!(socket.common().family, af::INET | af::INET6));
    let sent = match by_ip {
        Ok(true) => ended(op, send_once(op, t, open).await),
        Ok(false) => Reply::error(Errno::EOPNOTSUPP),
        Err(errno) => Reply::error(errno),
    };
    notified(op, sent)
}

/// The two completions of a send that is over, or that had no socket.
pub fn notified(op: &Op, sent: Reply) -> Reply {
    let interrupted =
        op.is_cancelled() && (sent.result == Errno::EINTR.as_result() as i64 || is_restart_code(sent.result as isize));
    let result = if interrupted { Errno::ECANCELED.as_result() as i64 } else { sent.result };
    // Whether there was room for it in the ring or not, the second is behind it.
    op.post_more(result, cqe::MORE);
    let reports = op.sqe.ioprio & flag::SEND_ZC_REPORT_USAGE != 0;
    let usage = if reports { i64::from(NOTIF_USAGE_ZC_COPIED as i32) } else { 0 };
    Reply { result: usage, flags: cqe::NOTIF, ..sent }
}

async fn send_once(op: &Op, t: &Thread, open: &Open) -> Result<usize> {
    let Sqe { off: to, addr, len, op_flags, file_index, .. } = op.sqe;
    let flags = MsgFlags(op_flags | msg::NOSIGNAL);
    let wait = op_flags & msg::DONTWAIT == 0;
    loop {
        let done = match (op.sqe.opcode, op.ring.shape.narrow) {
            // The length of the address is in the lower half.
            (op::SEND | op::SEND_ZC, _) => {
                let to_len = i32::from(file_index as u16);
                transfer::sendto_open(t, open, (arg(addr)?, len as usize), flags, arg(to)?, to_len).await
            }
            (_, true) => transfer::sendmsg_open(t, open, UserPtr::<MsgHdr32>::new(addr as usize), flags).await,
            (_, false) => transfer::sendmsg_open(t, open, UserPtr::<MsgHdr>::new(addr as usize), flags).await,
        };
        match done {
            Err(Errno::EAGAIN) if wait => retry(t, open.file(), Events::WRITABLE).await?,
            done => return done,
        }
    }
}

/// The end of a transfer: with MSG_WAITALL one that brought less has failed.
fn ended(op: &Op, done: Result<usize>) -> Reply {
    let all = op.sqe.op_flags & msg::WAITALL != 0 && matches!(op.sqe.opcode, op::SEND | op::SEND_ZC | op::RECV);
    if all { Reply::transfer(done, op.sqe.len as usize) } else { done.into() }
}

/// recvfrom(2), recvmsg(2), once or again and again.
async fn receive(op: &Op, t: &Thread, open: &Open) -> Reply {
    let Sqe { len, op_flags, ioprio, .. } = op.sqe;
    let multi = ioprio & flag::RECV_MULTISHOT != 0;
    let selects = op.sqe.flags & sqe::BUFFER_SELECT != 0;
    if ioprio & !(flag::RECVSEND_POLL_FIRST | flag::RECV_MULTISHOT) != 0
        || multi && (!selects || op_flags & msg::WAITALL != 0 || op.sqe.opcode == op::RECV && len != 0)
    {
        return Reply::error(Errno::EINVAL);
    }
    if !selects {
        return ended(op, receive_once(op, t, open).await);
    }
    let mut row = 0;
    loop {
        match try_receive(op, t, open, multi).await {
            Ok(Attempt { reply, again: false }) => return reply,
            Ok(_) => {}
            Err(errno) => return Reply::error(errno),
        }
        row += 1;
        if row % IN_A_ROW == 0 {
            pause().await;
        }
    }
}

async fn receive_once(op: &Op, t: &Thread, open: &Open) -> Result<usize> {
    let Sqe { addr, len, op_flags, .. } = op.sqe;
    let (flags, wait) = (MsgFlags(op_flags), op_flags & msg::DONTWAIT == 0);
    loop {
        let done = match (op.sqe.opcode, op.ring.shape.narrow) {
            (op::RECV, _) => transfer::recv_open(t, open, (arg(addr)?, len as usize), flags).await,
            (_, true) => transfer::receive_one(t, open, UserPtr::<MsgHdr32>::new(addr as usize), flags.0).await,
            (_, false) => transfer::receive_one(t, open, UserPtr::<MsgHdr>::new(addr as usize), flags.0).await,
        };
        match done {
            Err(Errno::EAGAIN) if wait => retry(t, open.file(), Events::READABLE).await?,
            done => return done,
        }
    }
}

async fn try_receive(op: &Op, t: &Thread, open: &Open, multi: bool) -> Result<Attempt> {
    let Sqe { len, op_flags, buf_index, .. } = op.sqe;
    let wait = op_flags & msg::DONTWAIT == 0;
    loop {
        if wait {
            wait_for(t, open.file(), Events::READABLE.bits()).await?;
        }
        let message = op.sqe.opcode == op::RECVMSG;
        let want = match (message, op.ring.shape.narrow) {
            (false, _) => len as usize,
            _ if multi => 0,
            (_, true) => transfer::wanted(t, UserPtr::<MsgHdr32>::new(op.sqe.addr as usize))?,
            (_, false) => transfer::wanted(t, UserPtr::<MsgHdr>::new(op.sqe.addr as usize))?,
        };
        let taken = resources::take(&op.ring.resources, t, buf_index, want)?;
        let flags = MsgFlags(op_flags | msg::DONTWAIT);
        let into = (taken.addr, taken.len);
        let received = match (message, op.ring.shape.narrow) {
            (false, _) => {
                let received = transfer::recv_open(t, open, into, flags).await;
                received.map(|count| (count, count > 0))
            }
            (_, true) => {
                let at = UserPtr::<MsgHdr32>::new(op.sqe.addr as usize);
                transfer::recvmsg_into(t, open, at, into, flags, multi).await
            }
            (_, false) => {
                let at = UserPtr::<MsgHdr>::new(op.sqe.addr as usize);
                transfer::recvmsg_into(t, open, at, into, flags, multi).await
            }
        };
        match received {
            Ok((0, _)) => {
                resources::give_back(&op.ring.resources, &taken);
                return Ok(Attempt { reply: Reply::value(0), again: false });
            }
            Ok((n, some)) => {
                let flags = cqe::BUFFER | u32::from(taken.id) << cqe::BUFFER_SHIFT;
                // An empty message ends it.
                return Ok(brought(op, n, flags, multi && some));
            }
            Err(Errno::EAGAIN) if wait => {
                resources::give_back(&op.ring.resources, &taken);
                pause().await;
            }
            Err(errno) => {
                resources::give_back(&op.ring.resources, &taken);
                return Err(errno);
            }
        }
    }
}
