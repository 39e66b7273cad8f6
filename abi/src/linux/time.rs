//! Clocks and timers: clock_gettime(2), timer_create(2), getitimer(2), adjtimex(2), times(2).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::process::TimeVal;
use super::{Errno, Result};

const SECOND: u64 = 1_000_000_000;

/// A tick, in which some interfaces count processor time (USER_HZ is 100), in nanoseconds.
pub const TICK: u64 = SECOND / 100;

/// What the coarse clocks count in (clock_getres(2)), in nanoseconds.
pub const COARSE: u64 = SECOND / 250;

/// Longest time the kernel counts with, in nanoseconds; what is longer is cut to it (about 292 years).
pub const MOST_NANOS: u64 = i64::MAX as u64;

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct TimeSpec {
    pub sec: i64,
    pub nsec: i64,
}

impl TimeSpec {
    pub fn from_nanos(nanos: u64) -> TimeSpec {
        TimeSpec { sec: (nanos / SECOND) as i64, nsec: (nanos % SECOND) as i64 }
    }

    /// Nanoseconds, at most [`MOST_NANOS`]. EINVAL for a negative time or a fraction outside a second.
    pub fn nanos(self) -> Result<u64> {
        let sec = u64::try_from(self.sec).map_err(|_| Errno::EINVAL)?;
        let nsec = u64::try_from(self.nsec).ok().filter(|&nsec| nsec < SECOND).ok_or(Errno::EINVAL)?;
        Ok(sec.saturating_mul(SECOND).saturating_add(nsec).min(MOST_NANOS))
    }
}

impl TimeVal {
    /// Nanoseconds, at most [`MOST_NANOS`]. EINVAL for a negative time or a fraction outside a second.
    pub fn nanos(self) -> Result<u64> {
        let nsec = self.usec.checked_mul(1000).ok_or(Errno::EINVAL)?;
        TimeSpec { sec: self.sec, nsec }.nanos()
    }

    /// Like [`TimeVal::nanos`], but microseconds may exceed a second (select(2)).
    pub fn nanos_carrying(self) -> Result<u64> {
        let carried = self.sec.checked_add(self.usec.div_euclid(1_000_000)).unwrap_or(i64::MAX);
        if self.usec < 0 || self.sec < 0 {
            return Err(Errno::EINVAL);
        }
        TimeVal { sec: carried, usec: self.usec % 1_000_000 }.nanos()
    }

    /// Microseconds rounded up, so that a time that is not over does not look so.
    pub fn from_nanos_up(nanos: u64) -> TimeVal {
        TimeVal::from_nanos(nanos.saturating_add(999))
    }
}

/// `struct itimerspec`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ITimerSpec {
    pub interval: TimeSpec,
    pub value: TimeSpec,
}

impl ITimerSpec {
    /// A timer with so many nanoseconds to go, and between its later expirations.
    pub fn from_nanos((value, interval): (u64, u64)) -> ITimerSpec {
        ITimerSpec { interval: TimeSpec::from_nanos(interval), value: TimeSpec::from_nanos(value) }
    }
}

/// `struct itimerval`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ITimerVal {
    pub interval: TimeVal,
    pub value: TimeVal,
}

/// `struct timezone`; obsolete, all zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct TimeZone {
    pub minutes_west: i32,
    pub dst_time: i32,
}

/// `struct tms`, in clock ticks of 10 ms.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Tms {
    pub utime: i64,
    pub stime: i64,
    pub cutime: i64,
    pub cstime: i64,
}

/// `struct timex` (adjtimex(2)).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Timex {
    pub modes: u32,
    pub _pad0: u32,
    pub offset: i64,
    pub freq: i64,
    pub maxerror: i64,
    pub esterror: i64,
    pub status: i32,
    pub _pad1: u32,
    pub constant: i64,
    pub precision: i64,
    pub tolerance: i64,
    pub time: TimeVal,
    pub tick: i64,
    pub ppsfreq: i64,
    pub jitter: i64,
    pub shift: i32,
    pub _pad2: u32,
    pub stabil: i64,
    pub jitcnt: i64,
    pub calcnt: i64,
    pub errcnt: i64,
    pub stbcnt: i64,
    pub tai: i32,
    pub _pad3: [u32; 11],
}

const _: () = assert!(size_of::<Timex>() == 208);

/// `struct sigevent`, 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SigEvent {
    pub value: u64,
    pub signo: i32,
    pub notify: i32,
    /// For SIGEV_THREAD_ID.
    pub tid: i32,
    pub _pad: [i32; 11],
}

const _: () = assert!(size_of::<SigEvent>() == 64);

/// `sigev_notify`.
pub mod sigev {
    pub const SIGNAL: i32 = 0;
    pub const NONE: i32 = 1;
    /// To the kernel the same as [`SIGNAL`]: the C library makes the thread.
    pub const THREAD: i32 = 2;
    pub const THREAD_ID: i32 = 4;
}

/// Clock ids.
pub mod clock {
    pub const REALTIME: i32 = 0;
    pub const MONOTONIC: i32 = 1;
    pub const PROCESS_CPUTIME_ID: i32 = 2;
    pub const THREAD_CPUTIME_ID: i32 = 3;
    pub const MONOTONIC_RAW: i32 = 4;
    pub const REALTIME_COARSE: i32 = 5;
    pub const MONOTONIC_COARSE: i32 = 6;
    pub const BOOTTIME: i32 = 7;
    pub const REALTIME_ALARM: i32 = 8;
    pub const BOOTTIME_ALARM: i32 = 9;
    pub const TAI: i32 = 11;

    pub const NAMES: [&str; 12] = [
        "CLOCK_REALTIME",
        "CLOCK_MONOTONIC",
        "CLOCK_PROCESS_CPUTIME_ID",
        "CLOCK_THREAD_CPUTIME_ID",
        "CLOCK_MONOTONIC_RAW",
        "CLOCK_REALTIME_COARSE",
        "CLOCK_MONOTONIC_COARSE",
        "CLOCK_BOOTTIME",
        "CLOCK_REALTIME_ALARM",
        "CLOCK_BOOTTIME_ALARM",
        "CLOCK_SGI_CYCLE",
        "CLOCK_TAI",
    ];
}

/// `clock_nanosleep` and `timer_settime`: the time is a point of the clock.
pub const TIMER_ABSTIME: u32 = 1;
/// timerfd_settime(2).
pub const TFD_TIMER_ABSTIME: u32 = 1;
pub const TFD_TIMER_CANCEL_ON_SET: u32 = 2;

/// getitimer(2).
pub mod itimer {
    pub const REAL: i32 = 0;
    pub const VIRTUAL: i32 = 1;
    pub const PROF: i32 = 2;
}
