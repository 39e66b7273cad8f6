//! Contexts of asynchronous i/o: io_setup(2), io_submit(2), io_getevents(2), io_cancel(2), io_destroy(2).
//!
//! A context is a ring of events in the program's memory, which it may read by itself. What is submitted is made like the operations of other rings.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::aio::{AIO_RING_COMPAT, AIO_RING_MAGIC, AioRing, IoEvent, Iocb, KEY, RESFD, command};
use janua_abi::linux::layout::Layout;
use janua_abi::linux::mman::MAP_SHARED;
use janua_abi::linux::poll::SigSetArg;
use janua_abi::linux::time::TimeSpec;
use janua_abi::linux::uring::{Sqe, flag, op};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{IoVec, MOST};
use janua_kernel::table::{Arg, Fd};
use janua_kernel::wait::Cut;
use janua_object::OpenFile;
use janua_object::eventfd::EventFd;
use janua_object::file::flags::O_RDWR;
use janua_object::mm::MapRequest;
use janua_port::{Nanos, Prot};
use zerocopy::{FromZeros, IntoBytes};

use super::issuer::{self, Issuer};
use super::memory::{Region, pages};
use super::ring::{Ring, Shape, at};
use super::setup::{is_narrow, make};
use super::submit::{Chain, Member};
use super::turn::Turn;
use crate::fs::fd;
use crate::fs::rw::RwFlags;
use crate::thread::ThreadExt;
use crate::{Thread, mm, poll};

/// Most events that contexts are made for in all (/proc/sys/fs/aio-max-nr).
pub const MOST_EVENTS: u32 = 65536;

/// Events of a context in the count of all, until dropped.
struct Count(Arc<AtomicU32>, u32);

impl Count {
    fn take(all: &Arc<AtomicU32>, events: u32) -> Result<Count> {
        let fits = |held: u32| held.checked_add(events).filter(|sum| *sum <= MOST_EVENTS);
        all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| Errno::EAGAIN)?;
        Ok(Count(all.clone(), events))
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// A context of a process.
pub struct Context {
    ring: Arc<Ring>,
    /// Bytes of its mapping.
    len: usize,
    _file: Arc<OpenFile>,
    _count: Count,
}

/// A process' contexts by their address, which is what programs know them by.
pub type Contexts = BTreeMap<usize, Context>;

fn find(thread: &Thread, context: usize) -> Result<Arc<Ring>> {
    thread.process().aio.lock().get(&context).map(|context| context.ring.clone()).ok_or(Errno::EINVAL)
}

/// By a process that ends, or runs another program: it has no contexts any more.
pub fn forget(thread: &Thread) {
    let contexts = core::mem::take(&mut *thread.process().aio.lock());
    contexts.values().for_each(|context| context.ring.close());
    drop(contexts);
}

/// io_setup(2)
pub fn io_setup<W: Layout<usize>>(thread: &Thread, events: u32, out: UserPtr<W>) -> Result<()> {
    let given: usize = out.load(thread.user())?;
    if given != 0 || events == 0 {
        return Err(Errno::EINVAL);
    }
    if events > MOST_EVENTS {
        return Err(Errno::EAGAIN);
    }
    let count = Count::take(&thread.kernel.rings.aio, events)?;
    // Some are set aside for each processor on Linux, which programs count on.
    let wanted = events.max(4 * thread.machine().cpus() as u32) * 2 + 2;
    let len = pages(at::AIO_EVENTS + wanted as usize * size_of::<IoEvent>());
    let completions = ((len - at::AIO_EVENTS) / size_of::<IoEvent>()) as u32;
    let shape = Shape { flags: 0, submissions: 1, completions, array: 0, narrow: is_narrow(thread), idle: 0, aio: true };
    let ring = make(thread, shape, [len, 0], [0, 0], false)?;
    let header = AioRing {
        count: completions,
        magic: AIO_RING_MAGIC,
        compat_features: AIO_RING_COMPAT,
        header_len: size_of::<AioRing>() as u32,
        ..AioRing::default()
    };
    ring.shared.from_anywhere().write(Region::Rings, 0, header.as_bytes());
    let file = OpenFile::new(ring.clone(), O_RDWR, None);
    let space = thread.process().mm().ok_or(Errno::ENOMEM)?;
    let prot = Prot { read: true, write: true, exec: false };
    let request = MapRequest { addr: 0, len, prot, flags: MAP_SHARED, file: Some(file.clone()), offset: 0 };
    let addr = space.map(request, &mm::limits(thread))?;
    ring.shared.mapped(Region::Rings, addr);
    ring.shared.from_anywhere().write(Region::Rings, 0, (addr as u32).as_bytes());
    if let Err(errno) = out.store(thread.user(), &addr) {
        let _ = space.unmap(addr, len);
        return Err(errno);
    }
    thread.process().aio.lock().insert(addr, Context { ring, len, _file: file, _count: count });
    Ok(())
}

/// io_destroy(2)
pub fn io_destroy(thread: &Thread, context: usize) -> Result<()> {
    let old = thread.process().aio.lock().remove(&context).ok_or(Errno::EINVAL)?;
    old.ring.close();
    issuer::of(thread)?.work(thread);
    if let Some(space) = thread.process().mm()
        && space.shows(context, old.len, 0, |file| file.downcast::<Ring>().is_some_and(|ring| core::ptr::eq(ring, &*old.ring)))
    {
        space.unmap(context, old.len)?;
    }
    Ok(())
}

/// A word with a sign, as the program has words.
fn signed(thread: &Thread, word: isize) -> isize {
    if is_narrow(thread) { word as i32 as isize } else { word }
}

/// io_submit(2)
pub fn io_submit<W: Layout<usize>>(thread: &Thread, context: usize, count: isize, list: UserPtr<W>) -> Result<usize> {
    let count = usize::try_from(signed(thread, count)).map_err(|_| Errno::EINVAL)?;
    let ring = find(thread, context)?;
    let issuer = issuer::of(thread)?;
    let count = count.min(ring.shape.completions as usize);
    let mut result = Ok(0);
    for at in 0..count {
        let one = list.at(at).load(thread.user()).and_then(|addr| submit_one(&issuer, thread, &ring, addr));
        if let Err(errno) = one {
            result = if at == 0 { Err(errno) } else { Ok(at) };
            break;
        }
        result = Ok(at + 1);
    }
    result
}

fn submit_one(issuer: &Arc<Issuer>, thread: &Thread, ring: &Arc<Ring>, addr: usize) -> Result<()> {
    let place = UserPtr::<Iocb>::new(addr);
    let given = place.read(thread.user())?;
    let sqe = translate(thread, ring, &given)?;
    let event = if given.flags & RESFD != 0 { Some(eventfd(thread, given.resfd)?) } else { None };
    let turn = Turn::new(issuer, thread, ring, false);
    {
        let held = ring.unreaped(&turn.access) as usize;
        let mut unfinished = ring.unfinished.lock();
        if held + unfinished.count >= ring.shape.completions as usize - 1 || !issuer.has_room() {
            return Err(Errno::EAGAIN);
        }
        unfinished.count += 1;
    }
    let key = UserPtr::<u32>::new(addr.wrapping_add(core::mem::offset_of!(Iocb, key)));
    if let Err(errno) = key.write(thread.user(), &KEY) {
        turn.finish(1);
        return Err(errno);
    }
    let member = Member { sqe, wrong: None, time: None, iocb: addr as u64, event };
    let issuer = Arc::downgrade(issuer);
    turn.begin(Chain { ring: ring.clone(), members: VecDeque::from([member]), drains: false, issuer });
    turn.end();
    Ok(())
}

fn eventfd(thread: &Thread, number: u32) -> Result<Arc<OpenFile>> {
    let file = fd::get(thread, Fd(number as i32))?;
    if file.downcast::<EventFd>().is_none() {
        return Err(Errno::EINVAL);
    }
    Ok(file)
}

/// The operation that an iocb means. What is wrong with it is returned by io_submit(2), not by an event.
fn translate(thread: &Thread, ring: &Ring, given: &Iocb) -> Result<Sqe> {
    if given.reserved != 0 || i64::try_from(given.bytes).is_err() {
        return Err(Errno::EINVAL);
    }
    let file = fd::get(thread, Fd(given.fd as i32))?;
    let base = Sqe { fd: given.fd as i32, user_data: given.data, ..Sqe::default() };
    let transfer = |opcode: u8| -> Result<Sqe> {
        match opcode {
            op::READ | op::READV => file.check_read()?,
            _ => file.check_write()?,
        }
        RwFlags::decode(given.rw_flags as usize)?;
        if given.offset < 0 {
            return Err(Errno::EINVAL);
        }
        let vector = matches!(opcode, op::READV | op::WRITEV);
        let addr = given.buf as usize;
        match (vector, ring.shape.narrow) {
            (true, false) => drop(IoVec::read(thread.user(), UserPtr::<[usize; 2]>::new(addr), given.bytes as usize)?),
            (true, true) => drop(IoVec::read(thread.user(), UserPtr::<[u32; 2]>::new(addr), given.bytes as usize)?),
            (false, _) if !thread.user().in_range(addr, given.bytes as usize) => return Err(Errno::EFAULT),
            _ => {}
        }
        let len = given.bytes.min(MOST as u64) as u32;
        Ok(Sqe { opcode, off: given.offset as u64, addr: given.buf, len, op_flags: given.rw_flags, ..base })
    };
    let nothing = given.buf == 0 && given.offset == 0 && given.bytes == 0 && given.rw_flags == 0;
    match given.opcode {
        command::PREAD => transfer(op::READ),
        command::PWRITE => transfer(op::WRITE),
        command::PREADV => transfer(op::READV),
        command::PWRITEV => transfer(op::WRITEV),
        command::FSYNC if nothing => Ok(Sqe { opcode: op::FSYNC, ..base }),
        command::FDSYNC if nothing => Ok(Sqe { opcode: op::FSYNC, op_flags: flag::FSYNC_DATASYNC, ..base }),
        command::POLL if given.buf <= 0xffff && given.offset == 0 && given.bytes == 0 && given.rw_flags == 0 => {
            Ok(Sqe { opcode: op::POLL_ADD, op_flags: given.buf as u32, ..base })
        }
        // IOCB_CMD_NOOP is a number that Linux has never had.
        _ => Err(Errno::EINVAL),
    }
}

/// io_cancel(2). The end of what is cancelled comes by an event.
pub fn io_cancel(thread: &Thread, context: usize, iocb: UserPtr<Iocb>, _result: UserPtr<IoEvent>) -> Result<()> {
    let key = UserPtr::<u32>::new(iocb.addr().wrapping_add(core::mem::offset_of!(Iocb, key)));
    if key.read(thread.user())? != KEY {
        return Err(Errno::EINVAL);
    }
    let ring = find(thread, context)?;
    let found = ring.find(1, |op| op.iocb == iocb.addr() as u64);
    match found.first() {
        Some(op) if op.cancel() => Err(Errno::EINPROGRESS),
        _ => Err(Errno::EINVAL),
    }
}

/// io_getevents(2)
pub async fn io_getevents(
    thread: &Thread,
    context: usize,
    least: isize,
    most: isize,
    events: UserPtr<IoEvent>,
    timeout: UserPtr<impl Layout<TimeSpec>>,
) -> Result<usize> {
    let deadline = deadline(thread, timeout)?;
    get_events(thread, context, (least, most), events, deadline).await
}

/// io_pgetevents(2)
pub async fn io_pgetevents(
    thread: &Thread,
    context: usize,
    least: isize,
    most: isize,
    events: UserPtr<IoEvent>,
    timeout: UserPtr<impl Layout<TimeSpec>>,
    mask: UserPtr<impl Layout<SigSetArg>>,
) -> Result<usize> {
    let deadline = deadline(thread, timeout)?;
    if let Some(mask) = mask.non_null() {
        let SigSetArg { addr, size } = mask.load(thread.user())?;
        poll::begin_mask(thread, UserPtr::new(addr as usize), size as usize)?;
    }
    let got = get_events(thread, context, (least, most), events, deadline).await;
    if got != Err(Errno::EINTR) {
        poll::end_mask(thread);
    }
    got
}

fn deadline(thread: &Thread, timeout: UserPtr<impl Layout<TimeSpec>>) -> Result<Option<Nanos>> {
    match timeout.non_null() {
        Some(timeout) => Ok(Some(poll::deadline(thread, timeout.load(thread.user())?.nanos()?))),
        None => Ok(None),
    }
}

async fn get_events(
    thread: &Thread,
    context: usize,
    (least, most): (isize, isize),
    events: UserPtr<IoEvent>,
    deadline: Option<Nanos>,
) -> Result<usize> {
    let ring = find(thread, context)?;
    let (least, most) = (signed(thread, least), signed(thread, most));
    let (Ok(least), Ok(most)) = (usize::try_from(least), usize::try_from(most)) else { return Err(Errno::EINVAL) };
    if least > most {
        return Err(Errno::EINVAL);
    }
    let mut got = 0;
    let waited = thread
        .wait_polling(deadline, |table| {
            if let Some(table) = table {
                table.add(&ring.posted);
            }
            super::errands(thread);
            match take(thread, &ring, events.at(got), most - got) {
                Ok(taken) => got += taken,
                Err(errno) if got == 0 => return Some(Err(errno)),
                Err(_) => return Some(Ok(())),
            }
            (got >= least || ring.is_closed()).then_some(Ok(()))
        })
        .await;
    match waited {
        Ok(Err(errno)) => Err(errno),
        Err(Cut::Interrupted) if got == 0 => Err(Errno::EINTR),
        _ => Ok(got),
    }
}

/// Takes events out of the ring: how many. EFAULT when the first cannot be stored.
fn take(thread: &Thread, ring: &Ring, events: UserPtr<IoEvent>, most: usize) -> Result<usize> {
    let taking = ring.submitting.lock();
    let access = ring.access(thread);
    ring.flush(&access);
    let there = (ring.unreaped(&access) as usize).min(most);
    let size = ring.shape.completions;
    let mut head = access.load(at::AIO_HEAD) % size;
    let mut done = 0;
    while done < there {
        let mut event = IoEvent::new_zeroed();
        access.read(Region::Rings, at::AIO_EVENTS + head as usize * size_of::<IoEvent>(), event.as_mut_bytes());
        match events.at(done).write(thread.user(), &event) {
            Ok(()) => {}
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        }
        head = (head + 1) % size;
        done += 1;
    }
    if done > 0 {
        access.store(at::AIO_HEAD, head);
    }
    drop(taking);
    Ok(done)
}
