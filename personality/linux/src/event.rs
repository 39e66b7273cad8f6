//! Files that represent events: eventfd(2), timerfd_create(2).

use alloc::sync::Arc;

use janua_abi::linux::capability::CAP_WAKE_ALARM;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::time::{ITimerSpec, TFD_TIMER_ABSTIME, TFD_TIMER_CANCEL_ON_SET, clock};
use janua_kernel::table::Fd;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::eventfd::EventFd;
use janua_object::file::flags;
use janua_object::timerfd::{TimeBase, TimerFd};
use janua_object::{File, OpenFile};

use crate::thread::ThreadExt;
use crate::time::ClockArg;
use crate::{Thread, poll};

/// EFD_SEMAPHORE.
const SEMAPHORE: u32 = 1;

/// Gives a new file the lowest free descriptor. EMFILE.
pub fn install(thread: &Thread, ops: Arc<dyn File>, flags: u32, cloexec: bool) -> Result<Fd> {
    let file = OpenFile::new(ops, flags, None);
    let limit = thread.limit(rlimit::NOFILE);
    thread.files.read().install(file, 0, cloexec, limit)
}

pub fn eventfd(thread: &Thread, initial: u32) -> Result<Fd> {
    eventfd2(thread, initial, 0)
}

pub fn eventfd2(thread: &Thread, initial: u32, flags: u32) -> Result<Fd> {
    if flags & !(SEMAPHORE | flags::O_CLOEXEC | flags::O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let counter = EventFd::new(thread.machine().clock(), u64::from(initial), flags & SEMAPHORE != 0);
    install(thread, counter, flags::O_RDWR | flags & flags::O_NONBLOCK, flags & flags::O_CLOEXEC != 0)
}

pub fn timerfd_create(thread: &Thread, id: ClockArg, flags: u32) -> Result<Fd> {
    if flags & !(flags::O_CLOEXEC | flags::O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let base = match id.0 {
        clock::MONOTONIC | clock::BOOTTIME | clock::BOOTTIME_ALARM => TimeBase::Monotonic,
        clock::REALTIME | clock::REALTIME_ALARM => TimeBase::Realtime,
        _ => return Err(Errno::EINVAL),
    };
    let alarm = matches!(id.0, clock::REALTIME_ALARM | clock::BOOTTIME_ALARM);
    if alarm && !thread.ext.cred().capable(CAP_WAKE_ALARM) {
        return Err(Errno::EPERM);
    }
    let timer = TimerFd::new(thread.machine().clock(), id.0, base);
    install(thread, timer, flags::O_RDWR | flags & flags::O_NONBLOCK, flags & flags::O_CLOEXEC != 0)
}

/// Nobody inside can set the clock, so a timer that is to be cancelled then never is.
pub fn timerfd_settime(
    thread: &Thread,
    fd: Fd,
    flags: u32,
    new: UserPtr<impl Layout<ITimerSpec>>,
    old: UserPtr<impl Layout<ITimerSpec>>,
) -> Result<()> {
    let new = new.load(thread.user())?;
    if flags & !(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) != 0 {
        return Err(Errno::EINVAL);
    }
    let (value, interval) = (new.value.nanos()?, new.interval.nanos()?);
    let file = poll::file(&thread.files.read(), fd)?;
    let timer = file.downcast::<TimerFd>().ok_or(Errno::EINVAL)?;
    let was = timer.set(value, interval, flags);
    match old.non_null() {
        Some(old) => old.store(thread.user(), &ITimerSpec::from_nanos(was)),
        None => Ok(()),
    }
}

pub fn timerfd_gettime(thread: &Thread, fd: Fd, value: UserPtr<impl Layout<ITimerSpec>>) -> Result<()> {
    let file = poll::file(&thread.files.read(), fd)?;
    let timer = file.downcast::<TimerFd>().ok_or(Errno::EINVAL)?;
    value.store(thread.user(), &ITimerSpec::from_nanos(timer.get()))
}
