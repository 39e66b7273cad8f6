//! timerfd_create(2): a timer to wait on.
//!
//! Nothing runs when a timer expires. Expiries are counted when somebody looks, and who waits asks its [`PollTable`] for the
//! time of the next one; setting the timer wakes all waiters, who then ask for the new time.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::{Clock, Nanos};
use janua_rt::{Mutex, WaitQueue};

use crate::Caller;
use crate::file::{Events, File, OpenFile};
use crate::vfs::Attr;

/// Against which clock a timer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBase {
    Monotonic,
    Realtime,
}

impl TimeBase {
    /// The clock's time.
    pub fn now(self, clock: &dyn Clock) -> Nanos {
        match self {
            TimeBase::Monotonic => clock.monotonic(),
            TimeBase::Realtime => clock.realtime(),
        }
    }

    /// The monotonic time at which this clock will show `at`, as long as nobody sets it.
    pub fn to_monotonic(self, clock: &dyn Clock, at: Nanos) -> Nanos {
        match self {
            TimeBase::Monotonic => at,
            TimeBase::Realtime => clock.monotonic().saturating_add(at.saturating_sub(clock.realtime())),
        }
    }
}

/// A timer's progress, in the time of its own clock; for every kind of timer that counts expiries when looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The next expiry; `None` is disarmed.
    pub next: Option<Nanos>,
    /// Time between expiries, 0 for a timer that expires once.
    pub interval: Nanos,
    /// Expiries nobody has taken yet.
    pub expired: u64,
}

impl Progress {
    /// Counts what has expired by `now`.
    pub fn settle(&mut self, now: Nanos) {
        let Some(next) = self.next.filter(|&next| next <= now) else { return };
        // A timer without an interval expires once and has no next time.
        let more = (now - next).checked_div(self.interval);
        let count = more.unwrap_or(0).saturating_add(1);
        self.expired = self.expired.saturating_add(count);
        self.next = more.and(count.checked_mul(self.interval)).and_then(|spent| next.checked_add(spent));
    }

    /// Time until the next expiry (0 when disarmed, never 0 when armed) and the interval.
    pub fn remaining(&self, now: Nanos) -> (Nanos, Nanos) {
        (self.next.map_or(0, |next| next.saturating_sub(now).max(1)), self.interval)
    }
}

/// TFD_TIMER_ABSTIME.
pub const ABSOLUTE: u32 = 1;
/// TFD_IOC_SET_TICKS: puts back expiries that were taken, for who restores a program.
const SET_TICKS: u32 = 0x4008_5400;

/// A timer as /proc/PID/fdinfo shows it.
pub struct Shown {
    /// CLOCK_*.
    pub clock: i32,
    pub flags: u32,
    pub expired: u64,
    /// Time to the next expiry and between them, nanoseconds.
    pub remaining: (Nanos, Nanos),
}

/// A timer file.
pub struct TimerFd {
    clock: &'static dyn Clock,
    /// The clock's number (CLOCK_*), as it was asked for.
    id: i32,
    base: TimeBase,
    progress: Mutex<Progress>,
    /// Flags of the last setting.
    flags: AtomicU32,
    queue: WaitQueue,
}

impl TimerFd {
    pub fn new(clock: &'static dyn Clock, id: i32, base: TimeBase) -> Arc<TimerFd> {
        Arc::new(TimerFd { clock, id, base, progress: Mutex::default(), flags: AtomicU32::new(0), queue: WaitQueue::new() })
    }

    /// Arms the timer to expire in `value` ns, or when its clock shows `value` with [`ABSOLUTE`] in `flags`; a zero value disarms.
    /// Returns the old remaining time and interval.
    pub fn set(&self, value: Nanos, interval: Nanos, flags: u32) -> (Nanos, Nanos) {
        let absolute = flags & ABSOLUTE != 0;
        self.flags.store(flags, Ordering::Relaxed);
        let old = {
            let mut progress = self.progress.lock();
            let now = self.base.now(self.clock);
            progress.settle(now);
            let old = progress.remaining(now);
            let next = if absolute { value } else { now.saturating_add(value) };
            *progress = Progress { next: (value != 0).then_some(next), interval, expired: 0 };
            old
        };
        // Not readiness, but a new time to look at.
        self.queue.wake_all();
        old
    }

    /// All there is to see.
    pub fn shown(&self) -> Shown {
        let remaining = self.get();
        let expired = self.progress.lock().expired;
        Shown { clock: self.id, flags: self.flags.load(Ordering::Relaxed), expired, remaining }
    }

    /// Remaining time and interval.
    pub fn get(&self) -> (Nanos, Nanos) {
        let mut progress = self.progress.lock();
        let now = self.base.now(self.clock);
        progress.settle(now);
        progress.remaining(now)
    }
}

impl File for TimerFd {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        if buf.left() < 8 {
            return Err(Errno::EINVAL);
        }
        let expired = {
            let mut progress = self.progress.lock();
            progress.settle(self.base.now(self.clock));
            core::mem::take(&mut progress.expired)
        };
        if expired == 0 {
            return Err(Errno::EAGAIN);
        }
        buf.put(&expired.to_ne_bytes())
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, mut table: Option<&mut PollTable>) -> Events {
        if let Some(table) = &mut table {
            table.add(&self.queue);
        }
        let mut progress = self.progress.lock();
        progress.settle(self.base.now(self.clock));
        if let Some(table) = table {
            table.wake_at(progress.next.map(|next| self.base.to_monotonic(self.clock, next)));
        }
        if progress.expired > 0 { Events::IN } else { Events::empty() }
    }

    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        if request != SET_TICKS {
            return Err(Errno::ENOTTY);
        }
        let expired = UserPtr::<u64>::new(arg).read(caller.user())?;
        if expired == 0 {
            return Err(Errno::EINVAL);
        }
        self.progress.lock().expired = expired;
        self.queue.wake(Events::IN.bits());
        Ok(0)
    }

    /// There is no position, and moving it is no error.
    fn seek(&self, _file: &OpenFile, _offset: i64, _whence: u32) -> Result<u64> {
        Ok(0)
    }

    fn attr(&self) -> Result<Attr> {
        Ok(crate::anon::attr(self.clock))
    }

    fn label(&self) -> String {
        String::from("anon_inode:[timerfd]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shot_expires_once() {
        let mut timer = Progress { next: Some(10), interval: 0, expired: 0 };
        timer.settle(9);
        assert_eq!((timer.expired, timer.remaining(9)), (0, (1, 0)));
        timer.settle(100);
        assert_eq!((timer.expired, timer.next, timer.remaining(100)), (1, None, (0, 0)));
        timer.settle(200);
        assert_eq!(timer.expired, 1);
    }

    #[test]
    fn interval_counts_what_was_missed_and_keeps_its_phase() {
        let mut timer = Progress { next: Some(10), interval: 5, expired: 0 };
        timer.settle(10);
        assert_eq!((timer.expired, timer.next), (1, Some(15)));
        timer.settle(27);
        assert_eq!((timer.expired, timer.next), (4, Some(30)));
    }

    #[test]
    fn an_expiry_beyond_the_end_of_time_disarms() {
        let mut timer = Progress { next: Some(1), interval: u64::MAX - 1, expired: 0 };
        timer.settle(5);
        assert_eq!((timer.expired, timer.next), (1, Some(u64::MAX)));
        timer.settle(u64::MAX);
        assert_eq!((timer.expired, timer.next), (2, None));
    }
}
