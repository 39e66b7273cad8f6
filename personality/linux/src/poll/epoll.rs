//! epoll_create(2), epoll_ctl(2), epoll_wait(2) and their variants.

use alloc::sync::Arc;

use janua_abi::linux::capability::CAP_BLOCK_SUSPEND;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::poll::{EpollEvent, epoll_ctl as ctl};
use janua_abi::linux::time::TimeSpec;
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::OpenFile;
use janua_object::epoll::{Epoll, Mode};
use janua_object::file::flags;
use janua_port::{Clock, Nanos};

use crate::event::install;
use crate::thread::ThreadExt;
use crate::{Thread, poll};

/// Most events one call may ask for.
const MOST: usize = i32::MAX as usize / size_of::<EpollEvent>();

/// The operation of epoll_ctl(2).
#[derive(Clone, Copy, Debug)]
pub struct Op(pub i32);

impl Arg for Op {
    const KIND: Kind = Kind::Named("epoll_ctl");
    fn decode(word: usize) -> Result<Self> {
        Ok(Op(word as i32))
    }
}

/// epoll_create(2): the size is a hint of old, but must be positive.
pub fn epoll_create(thread: &Thread, size: i32) -> Result<Fd> {
    if size <= 0 {
        return Err(Errno::EINVAL);
    }
    epoll_create1(thread, 0)
}

pub fn epoll_create1(thread: &Thread, flags: u32) -> Result<Fd> {
    if flags & !flags::O_CLOEXEC != 0 {
        return Err(Errno::EINVAL);
    }
    let clock: &'static dyn Clock = thread.machine().clock();
    install(thread, Epoll::new(clock), flags::O_RDWR, flags & flags::O_CLOEXEC != 0)
}

pub fn epoll_ctl(thread: &Thread, epfd: Fd, op: Op, fd: Fd, event: UserPtr<EpollEvent>) -> Result<()> {
    let event = if op.0 == ctl::DEL { EpollEvent::default() } else { event.read(thread.user())? };
    let files = thread.files.read().clone();
    let (outer, file) = (poll::file(&files, epfd)?, poll::file(&files, fd)?);
    if !file.ops.may_wait() {
        return Err(Errno::EPERM);
    }
    let epoll = outer.downcast::<Epoll>().ok_or(Errno::EINVAL)?;
    if Arc::ptr_eq(&outer, &file) {
        return Err(Errno::EINVAL);
    }
    let (mut events, data) = (event.events, event.data);
    // The flag keeps a laptop awake; without the capability it is passed over silently.
    if events & Mode::WAKEUP.bits() != 0 && !thread.ext.cred().capable(CAP_BLOCK_SUSPEND) {
        events &= !Mode::WAKEUP.bits();
    }
    match op.0 {
        ctl::ADD => epoll.add(&thread.caller(), fd.0, &file, events, data, &thread.kernel.nesting),
        ctl::MOD => epoll.modify(&thread.caller(), fd.0, &file, events, data),
        ctl::DEL => epoll.delete(fd.0, &file, &thread.kernel.nesting),
        _ => Err(Errno::EINVAL),
    }
}

/// epoll_wait(2): `timeout` in milliseconds, negative for ever.
pub async fn epoll_wait(thread: &Thread, epfd: Fd, events: UserPtr<EpollEvent>, most: i32, timeout: i32) -> Result<usize> {
    let deadline = millis(thread, timeout);
    wait(thread, epfd, events, most, deadline).await
}

pub async fn epoll_pwait(
    thread: &Thread,
    epfd: Fd,
    events: UserPtr<EpollEvent>,
    most: i32,
    timeout: i32,
    mask: UserPtr<u64>,
    mask_size: usize,
) -> Result<usize> {
    let deadline = millis(thread, timeout);
    wait_masked(thread, epfd, events, most, deadline, mask, mask_size).await
}

pub async fn epoll_pwait2(
    thread: &Thread,
    epfd: Fd,
    events: UserPtr<EpollEvent>,
    most: i32,
    timeout: UserPtr<impl Layout<TimeSpec>>,
    mask: UserPtr<u64>,
    mask_size: usize,
) -> Result<usize> {
    let deadline = match timeout.non_null() {
        Some(timeout) => Some(poll::deadline(thread, timeout.load(thread.user())?.nanos()?)),
        None => None,
    };
    wait_masked(thread, epfd, events, most, deadline, mask, mask_size).await
}

fn millis(thread: &Thread, timeout: i32) -> Option<Nanos> {
    u64::try_from(timeout).ok().map(|millis| poll::deadline(thread, millis * 1_000_000))
}

async fn wait_masked(
    thread: &Thread,
    epfd: Fd,
    events: UserPtr<EpollEvent>,
    most: i32,
    deadline: Option<Nanos>,
    mask: UserPtr<u64>,
    mask_size: usize,
) -> Result<usize> {
    poll::begin_mask(thread, mask, mask_size)?;
    let result = wait(thread, epfd, events, most, deadline).await;
    if result != Err(Errno::EINTR) {
        poll::end_mask(thread);
    }
    result
}

/// Hands on to another waiter when its own wait ends, in whatever way.
struct PassOn(Arc<OpenFile>);

impl Drop for PassOn {
    fn drop(&mut self) {
        if let Some(epoll) = self.0.downcast::<Epoll>() {
            epoll.pass_on();
        }
    }
}

async fn wait(thread: &Thread, epfd: Fd, events: UserPtr<EpollEvent>, most: i32, deadline: Option<Nanos>) -> Result<usize> {
    let file = PassOn(poll::file(&thread.files.read(), epfd)?);
    let most = usize::try_from(most).ok().filter(|most| (1..=MOST).contains(most)).ok_or(Errno::EINVAL)?;
    if !thread.user().is_user(events.addr(), most * size_of::<EpollEvent>()) {
        return Err(Errno::EFAULT);
    }
    let epoll = file.0.downcast::<Epoll>().ok_or(Errno::EINVAL)?;
    let collect = |table: Option<&mut _>| {
        let (mut at, mut fault) = (0, false);
        let count = epoll.collect(&thread.caller(), most, table, &mut |bits, data| {
            fault = events.at(at).write(thread.user(), &EpollEvent { events: bits, data }).is_err();
            at += 1;
            !fault
        });
        match count {
            0 if fault => Some(Err(Errno::EFAULT)),
            0 => None,
            count => Some(Ok(count)),
        }
    };
    if deadline == Some(0) {
        return collect(None).unwrap_or(Ok(0));
    }
    match thread.wait_polling(deadline, collect).await {
        Ok(result) => result,
        Err(Cut::TimedOut) => Ok(0),
        // Never made again, even with SA_RESTART (signal(7)).
        Err(Cut::Interrupted) => Err(Errno::EINTR),
    }
}
