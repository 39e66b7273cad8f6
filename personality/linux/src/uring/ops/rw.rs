//! Reading, writing, and waiting to be able to.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::sync::atomic::Ordering;
use core::task::Poll;

use janua_abi::linux::fcntl::rwf;
use janua_abi::linux::uring::{Sqe, cqe, flag, op, setup};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{IoVec, ReadBuf, WriteBuf};
use janua_kernel::table::Arg;
use janua_kernel::thread::work;
use janua_kernel::wait::PollTable;
use janua_object::file::flags;
use janua_object::{Events, OpenFile};
use janua_rt::Target;

use super::super::op::{Op, Reply};
use super::super::resources;
use super::super::turn::Turn;
use crate::Thread;
use crate::fs::rw::{Place, RwFlags, read_file, write_file};
use crate::poll::ALWAYS;
use crate::thread::ThreadExt;

/// Times a multishot operation goes on at once before others have their turn.
const IN_A_ROW: u32 = 32;

/// Where a transfer begins: an offset of -1 is the position, and streams know no other.
fn place(file: &OpenFile, offset: u64, len: usize) -> Result<Place> {
    if !file.ops.seekable() || offset == u64::MAX {
        return Ok(Place::Position);
    }
    if i64::try_from(offset).is_err() {
        return Err(Errno::EINVAL);
    }
    let place = Place::At(offset);
    place.check(len)?;
    Ok(place)
}

/// The scatter list of a READV or WRITEV.
fn list(op: &Op, thread: &Thread) -> Result<IoVec> {
    let (addr, count) = (op.sqe.addr as usize, op.sqe.len as usize);
    match op.ring.shape.narrow {
        true => IoVec::read(thread.user(), UserPtr::<[u32; 2]>::new(addr), count),
        false => IoVec::read(thread.user(), UserPtr::<[usize; 2]>::new(addr), count),
    }
}

/// No file here does polled i/o. EOPNOTSUPP.
fn check_polled(op: &Op) -> Result<()> {
    if op.ring.shape.has(setup::IOPOLL) { Err(Errno::EOPNOTSUPP) } else { Ok(()) }
}

fn check_registered(op: &Op) -> Result<()> {
    op.ring.resources.lock().within(op.sqe.buf_index, op.sqe.addr, op.sqe.len)
}

/// Reads, waiting for the first bytes: that the file does not let its readers wait (O_NONBLOCK) means nothing here, but RWF_NOWAIT does.
async fn read_on(thread: &Thread, file: &OpenFile, buf: &mut ReadBuf<'_>, place: Place, nowait: bool) -> Result<usize> {
    loop {
        match read_file(thread, file, buf, place, nowait).await {
            Err(Errno::EAGAIN) if !nowait && file.nonblocking() => retry(thread, file, Events::READABLE).await?,
            done => return done,
        }
    }
}

/// Writes, as [`read_on`] reads.
async fn write_on(thread: &Thread, file: &OpenFile, buf: &mut WriteBuf<'_>, place: Place, flags: RwFlags) -> Result<usize> {
    let wait = flags.0 & rwf::NOWAIT == 0 && file.nonblocking();
    loop {
        match write_file(thread, file, buf, place, flags).await {
            Err(Errno::EAGAIN) if wait => retry(thread, file, Events::WRITABLE).await?,
            done => return done,
        }
    }
}

/// IORING_OP_READ, IORING_OP_READV, IORING_OP_READ_FIXED
pub async fn read(op: &Op, thread: &Thread, file: &OpenFile) -> Reply {
    let mut whole = op.sqe.len as usize;
    let done = async {
        file.check_read()?;
        check_polled(op)?;
        let nowait = RwFlags::decode(op.sqe.op_flags as usize)?.0 & rwf::NOWAIT != 0;
        if op.sqe.opcode == op::READV {
            let list = list(op, thread)?;
            whole = list.total();
            let place = place(file, op.sqe.off, whole)?;
            let mut buf = ReadBuf::user_vec(thread.user(), &list).until(thread.work_word(), work::KILL);
            return read_on(thread, file, &mut buf, place, nowait).await;
        }
        if op.sqe.opcode == op::READ_FIXED {
            check_registered(op)?;
        }
        let place = place(file, op.sqe.off, whole)?;
        let buf = ReadBuf::user(thread.user(), op.sqe.addr as usize, whole)?;
        read_on(thread, file, &mut buf.until(thread.work_word(), work::KILL), place, nowait).await
    };
    let done = done.await;
    Reply::transfer(done, whole)
}

/// A read at an offset of a file that never makes its readers wait, into memory of the kernel's, of the read's length: bytes read. `None` where it comes to an error, or might.
pub fn read_apart(turn: &Turn<'_>, sqe: &Sqe, file: &OpenFile, into: &mut [u8]) -> Option<usize> {
    let thread = &turn.issuer.double;
    file.check_read().ok()?;
    if sqe.opcode == op::READ_FIXED {
        turn.ring.resources.lock().within(sqe.buf_index, sqe.addr, sqe.len).ok()?;
    }
    ReadBuf::user(thread.user(), sqe.addr as usize, into.len()).ok()?;
    match place(file, sqe.off, into.len()) {
        Ok(Place::At(at)) if !file.ops.may_wait() => file.ops.read(file, &thread.caller(), &mut ReadBuf::kernel(into), at).ok(),
        _ => None,
    }
}

/// IORING_OP_WRITE, IORING_OP_WRITEV, IORING_OP_WRITE_FIXED
pub async fn write(op: &Op, thread: &Thread, file: &OpenFile) -> Reply {
    let mut whole = op.sqe.len as usize;
    let done = async {
        file.check_write()?;
        check_polled(op)?;
        let flags = RwFlags::decode(op.sqe.op_flags as usize)?;
        if op.sqe.opcode == op::WRITEV {
            let list = list(op, thread)?;
            whole = list.total();
            let place = place(file, op.sqe.off, whole)?;
            let mut buf = WriteBuf::user_vec(thread.user(), &list).until(thread.work_word(), work::KILL);
            return write_on(thread, file, &mut buf, place, flags).await;
        }
        if op.sqe.opcode == op::WRITE_FIXED {
            check_registered(op)?;
        }
        let place = place(file, op.sqe.off, whole)?;
        let buf = WriteBuf::user(thread.user(), op.sqe.addr as usize, whole)?;
        write_on(thread, file, &mut buf.until(thread.work_word(), work::KILL), place, flags).await
    };
    let done = done.await;
    Reply::transfer(done, whole)
}

/// Waits until a file is ready, whatever its flags are. ECANCELED.
pub async fn wait_for(thread: &Thread, file: &OpenFile, events: u32) -> Result<()> {
    let step = |mut table: Option<&mut PollTable>| {
        if let Some(table) = &mut table {
            table.set_mask(events);
        }
        let ready = file.poll(&thread.caller(), table).bits() & events != 0;
        ready.then_some(())
    };
    thread.wait_polling(None, step).await.map_err(|_| Errno::ECANCELED)
}

/// Waits until what came to EAGAIN is worth another attempt. One that comes to it again although the file is ready lets others have their turn.
pub async fn retry(thread: &Thread, file: &OpenFile, events: Events) -> Result<()> {
    pause().await;
    wait_for(thread, file, events.bits()).await
}

/// Lets others have their turn.
pub async fn pause() {
    let mut paused = false;
    poll_fn(|cx| {
        if core::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// What one attempt with a buffer of a group came to, and whether there is another to be made.
pub struct Attempt {
    pub reply: Reply,
    pub again: bool,
}

/// The end of a completion that has brought something: with `multi` it is posted and there is more to come, if there is room for it.
pub fn brought(op: &Op, result: usize, flags: u32, multi: bool) -> Attempt {
    let posted = multi && op.post_more(result as i64, flags | cqe::MORE);
    Attempt { reply: Reply { flags, ..Reply::value(result) }, again: posted }
}

/// IORING_OP_READ with a buffer of a group, IORING_OP_READ_MULTISHOT
pub async fn read_selected(op: &Op, thread: &Thread, file: &OpenFile) -> Reply {
    let multi = op.sqe.opcode == op::READ_MULTISHOT;
    let mut row = 0;
    loop {
        match try_read(op, thread, file, multi).await {
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

async fn try_read(op: &Op, thread: &Thread, file: &OpenFile, multi: bool) -> Result<Attempt> {
    file.check_read()?;
    if multi && !file.ops.may_wait() {
        return Err(Errno::EBADFD);
    }
    loop {
        if file.ops.may_wait() {
            wait_for(thread, file, Events::READABLE.bits()).await?;
        }
        let taken = resources::take(&op.ring.resources, thread, op.sqe.buf_index, op.sqe.len as usize)?;
        let flags = cqe::BUFFER | u32::from(taken.id) << cqe::BUFFER_SHIFT;
        // As on Linux a read that cannot begin has used its buffer up, and says which.
        let refused = |errno| Attempt { reply: Reply { flags, ..Reply::error(errno) }, again: false };
        let place = match place(file, op.sqe.off, taken.len) {
            Ok(place) => place,
            Err(errno) => return Ok(refused(errno)),
        };
        let mut buf = match ReadBuf::user(thread.user(), taken.addr, taken.len) {
            Ok(buf) => buf.until(thread.work_word(), work::KILL),
            Err(errno) => return Ok(refused(errno)),
        };
        match read_file(thread, file, &mut buf, place, true).await {
            Ok(0) => {
                resources::give_back(&op.ring.resources, &taken);
                return Ok(Attempt { reply: Reply { failed: op.sqe.len != 0, ..Reply::value(0) }, again: false });
            }
            Ok(n) => return Ok(brought(op, n, flags, multi)),
            Err(Errno::EAGAIN) if file.ops.may_wait() => {
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

/// IORING_OP_POLL_ADD. One that goes on looks whenever it is woken, not as long as something is ready.
pub async fn poll(op: &Op, thread: &Thread, file: Arc<OpenFile>) -> Reply {
    if file.flags() & flags::O_PATH != 0 {
        return Reply::error(Errno::EBADF);
    }
    op.terms.lock().events = op.sqe.op_flags;
    let multi = op.sqe.len & flag::POLL_ADD_MULTI != 0;
    if multi {
        op.ring.polls.store(true, Ordering::SeqCst);
    }
    let mut table: Option<(u32, PollTable)> = None;
    poll_fn(move |cx| {
        if thread.interrupted() {
            return Poll::Ready(Reply::error(Errno::ECANCELED));
        }
        let events = op.terms.lock().events | ALWAYS;
        // Registered first, so that what happens meanwhile wakes it once more.
        if table.as_ref().is_none_or(|(mask, table)| *mask != events || table.timed().is_some()) {
            let mut fresh = PollTable::new(Target::Task(cx.waker().clone()), events);
            file.poll(&thread.caller(), Some(&mut fresh));
            if let Some(Some(at)) = fresh.timed() {
                thread.wake_at(at);
            }
            table = Some((events, fresh));
        }
        let ready = file.poll(&thread.caller(), None).bits() & events;
        let goes_on = multi && !op.fed.load(Ordering::SeqCst);
        if ready != 0 && !(goes_on && op.post_more(i64::from(ready), cqe::MORE)) {
            return Poll::Ready(Reply::value(ready as usize));
        }
        Poll::Pending
    })
    .await
}

/// IORING_OP_POLL_REMOVE: gives a poll up, or changes what it waits for.
pub fn poll_remove(turn: &Turn<'_>, sqe: &Sqe) -> Result<usize> {
    let update = sqe.len;
    let known = flag::POLL_UPDATE_EVENTS | flag::POLL_UPDATE_USER_DATA | flag::POLL_ADD_MULTI;
    if sqe.buf_index != 0 || sqe.file_index != 0 || update & !known != 0 || update == flag::POLL_ADD_MULTI {
        return Err(Errno::EINVAL);
    }
    let new_data = update & flag::POLL_UPDATE_USER_DATA != 0;
    let new_events = update & flag::POLL_UPDATE_EVENTS != 0;
    if !new_data && sqe.off != 0 || !new_events && sqe.op_flags != 0 {
        return Err(Errno::EINVAL);
    }
    let found = turn.ring.find(1, |op| op.sqe.opcode == op::POLL_ADD && op.user_data() == sqe.addr);
    let op = found.first().ok_or(Errno::ENOENT)?;
    if update == 0 {
        return if op.cancel() { Ok(0) } else { Err(Errno::EALREADY) };
    }
    {
        let mut terms = op.terms.lock();
        if new_events {
            terms.events = sqe.op_flags;
        }
        if new_data {
            terms.user_data = sqe.off;
        }
    }
    op.wake_up();
    Ok(0)
}
