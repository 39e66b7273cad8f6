//! Times: 32-bit seconds, and the structures of the calls with 64-bit seconds.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::structs;
use crate::linux::Result;
use crate::linux::layout::Layout;
use crate::linux::process::TimeVal;
use crate::linux::time::{ITimerSpec, ITimerVal, TimeSpec, Timex, Tms};

structs! {
    /// `struct old_timespec32`
    TimeSpec32 (8) { sec: i32, nsec: i32, }
    /// `struct __kernel_timespec` of a program whose `long` has 32 bits: what is behind the nanoseconds is undefined.
    TimeSpec64 (16) { sec: i64, nsec: u32, pad: u32, }
    /// `struct old_timeval32`
    TimeVal32 (8) { sec: i32, usec: i32, }
    /// `struct old_itimerspec32`
    ITimerSpec32 (16) { interval: TimeSpec32, value: TimeSpec32, }
    /// `struct __kernel_itimerspec`
    ITimerSpec64 (32) { interval: TimeSpec64, value: TimeSpec64, }
    /// `struct old_itimerval32`
    ITimerVal32 (16) { interval: TimeVal32, value: TimeVal32, }
    /// `struct compat_tms`
    Tms32 (16) { utime: i32, stime: i32, cutime: i32, cstime: i32, }
    /// `struct old_timex32`
    Timex32 (128) {
        modes: u32,
        offset: i32,
        freq: i32,
        maxerror: i32,
        esterror: i32,
        status: i32,
        constant: i32,
        precision: i32,
        tolerance: i32,
        time: TimeVal32,
        tick: i32,
        ppsfreq: i32,
        jitter: i32,
        shift: i32,
        stabil: i32,
        jitcnt: i32,
        calcnt: i32,
        errcnt: i32,
        stbcnt: i32,
        tai: i32,
        pad: [u32; 11],
    }
}

impl Layout<TimeSpec> for TimeSpec32 {
    fn load(self) -> TimeSpec {
        TimeSpec { sec: self.sec.into(), nsec: self.nsec.into() }
    }
    fn store(value: &TimeSpec) -> Result<Self> {
        Ok(TimeSpec32 { sec: value.sec as i32, nsec: value.nsec as i32 })
    }
}

impl Layout<TimeSpec> for TimeSpec64 {
    fn load(self) -> TimeSpec {
        TimeSpec { sec: self.sec, nsec: self.nsec.into() }
    }
    fn store(value: &TimeSpec) -> Result<Self> {
        Ok(TimeSpec64 { sec: value.sec, nsec: value.nsec as u32, pad: 0 })
    }
}

/// The same structures where the kernel takes a pair of words.
macro_rules! pairs {
    ($($name:ident as $wide:ident { $second:ident },)*) => {
        $(
            impl Layout<[i64; 2]> for $name {
                fn load(self) -> [i64; 2] {
                    let value: $wide = self.load();
                    [value.sec, value.$second]
                }
                fn store(value: &[i64; 2]) -> Result<Self> {
                    Layout::<$wide>::store(&$wide { sec: value[0], $second: value[1] })
                }
            }
            impl Layout<[[i64; 2]; 2]> for [$name; 2] {
                fn load(self) -> [[i64; 2]; 2] {
                    self.map(|half| half.load())
                }
                fn store(value: &[[i64; 2]; 2]) -> Result<Self> {
                    Ok([Layout::<[i64; 2]>::store(&value[0])?, Layout::<[i64; 2]>::store(&value[1])?])
                }
            }
        )*
    };
}

pairs! {
    TimeSpec32 as TimeSpec { nsec },
    TimeSpec64 as TimeSpec { nsec },
    TimeVal32 as TimeVal { usec },
}

/// A pair of seconds (utime(2)).
impl Layout<[i64; 2]> for [i32; 2] {
    fn load(self) -> [i64; 2] {
        self.map(i64::from)
    }
    fn store(value: &[i64; 2]) -> Result<Self> {
        Ok(value.map(|word| word as i32))
    }
}

/// Seconds (time(2)), a message's kind (msgsnd(2)), a file offset.
impl Layout<i64> for i32 {
    fn load(self) -> i64 {
        self.into()
    }
    fn store(value: &i64) -> Result<Self> {
        Ok(*value as i32)
    }
}

impl Layout<TimeVal> for TimeVal32 {
    fn load(self) -> TimeVal {
        TimeVal { sec: self.sec.into(), usec: self.usec.into() }
    }
    fn store(value: &TimeVal) -> Result<Self> {
        Ok(TimeVal32 { sec: value.sec as i32, usec: value.usec as i32 })
    }
}

macro_rules! timers {
    ($($name:ident for $wide:ident,)*) => {
        $(impl Layout<$wide> for $name {
            fn load(self) -> $wide {
                $wide { interval: self.interval.load(), value: self.value.load() }
            }
            fn store(value: &$wide) -> Result<Self> {
                Ok($name { interval: Layout::store(&value.interval)?, value: Layout::store(&value.value)? })
            }
        })*
    };
}

timers! {
    ITimerSpec32 for ITimerSpec,
    ITimerSpec64 for ITimerSpec,
    ITimerVal32 for ITimerVal,
}

impl Layout<Tms> for Tms32 {
    fn load(self) -> Tms {
        let [utime, stime, cutime, cstime] = [self.utime, self.stime, self.cutime, self.cstime].map(i64::from);
        Tms { utime, stime, cutime, cstime }
    }
    fn store(value: &Tms) -> Result<Self> {
        let [utime, stime, cutime, cstime] = [value.utime, value.stime, value.cutime, value.cstime].map(|ticks| ticks as i32);
        Ok(Tms32 { utime, stime, cutime, cstime })
    }
}

impl Layout<Timex> for Timex32 {
    fn load(self) -> Timex {
        Timex {
            modes: self.modes,
            offset: self.offset.into(),
            freq: self.freq.into(),
            maxerror: self.maxerror.into(),
            esterror: self.esterror.into(),
            status: self.status,
            constant: self.constant.into(),
            precision: self.precision.into(),
            tolerance: self.tolerance.into(),
            time: self.time.load(),
            tick: self.tick.into(),
            ppsfreq: self.ppsfreq.into(),
            jitter: self.jitter.into(),
            shift: self.shift,
            stabil: self.stabil.into(),
            jitcnt: self.jitcnt.into(),
            calcnt: self.calcnt.into(),
            errcnt: self.errcnt.into(),
            stbcnt: self.stbcnt.into(),
            tai: self.tai,
            ..Timex::default()
        }
    }
    fn store(value: &Timex) -> Result<Self> {
        Ok(Timex32 {
            modes: value.modes,
            offset: value.offset as i32,
            freq: value.freq as i32,
            maxerror: value.maxerror as i32,
            esterror: value.esterror as i32,
            status: value.status,
            constant: value.constant as i32,
            precision: value.precision as i32,
            tolerance: value.tolerance as i32,
            time: Layout::<TimeVal>::store(&value.time)?,
            tick: value.tick as i32,
            ppsfreq: value.ppsfreq as i32,
            jitter: value.jitter as i32,
            shift: value.shift,
            stabil: value.stabil as i32,
            jitcnt: value.jitcnt as i32,
            calcnt: value.calcnt as i32,
            errcnt: value.errcnt as i32,
            stbcnt: value.stbcnt as i32,
            tai: value.tai,
            pad: [0; 11],
        })
    }
}
