//! Clocks: clock_gettime(2) and its variants, adjtimex(2).

use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::TimeVal;
use janua_abi::linux::time::{COARSE, TICK};
use janua_abi::linux::time::{TimeSpec, TimeZone, Timex, Tms, clock};
use janua_kernel::table::{Arg, Kind};
use janua_kernel::{Errno, Result, UserPtr};
use janua_port::Nanos;
use janua_port::clock::OtherClock;

use super::cpu;
use crate::Thread;

/// A clock id as a call has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockArg(pub i32);

impl Arg for ClockArg {
    const KIND: Kind = Kind::Named("clock");
    fn decode(word: usize) -> Result<Self> {
        Ok(ClockArg(word as i32))
    }
}

/// A clock that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockId {
    Realtime {
        coarse: bool,
    },
    Monotonic {
        coarse: bool,
    },
    /// Processor time of a process; pid 0 is the caller's.
    Process {
        pid: u32,
    },
    /// Processor time of a thread of the caller's process; tid 0 is the caller.
    Thread {
        tid: u32,
    },
}

impl ClockArg {
    /// The machine's own clock of this number, for those that have one beside the main two: the vDSO serves the same ones, and
    /// both ways must tell the same time. For timers they count as the main clocks ([`ClockArg::resolve`]).
    fn other(self) -> Option<OtherClock> {
        Some(match self.0 {
            clock::MONOTONIC_RAW => OtherClock::MonotonicRaw,
            clock::MONOTONIC_COARSE => OtherClock::MonotonicCoarse,
            clock::REALTIME_COARSE => OtherClock::RealtimeCoarse,
            clock::BOOTTIME => OtherClock::Boottime,
            clock::TAI => OtherClock::Tai,
            _ => return None,
        })
    }

    /// The clock meant. EINVAL for a number that is none, for a process or thread that is not there.
    pub fn resolve(self, thread: &Thread) -> Result<ClockId> {
        Ok(match self.0 {
            clock::REALTIME | clock::REALTIME_ALARM | clock::TAI => ClockId::Realtime { coarse: false },
            clock::REALTIME_COARSE => ClockId::Realtime { coarse: true },
            clock::MONOTONIC | clock::MONOTONIC_RAW | clock::BOOTTIME | clock::BOOTTIME_ALARM => {
                ClockId::Monotonic { coarse: false }
            }
            clock::MONOTONIC_COARSE => ClockId::Monotonic { coarse: true },
            clock::PROCESS_CPUTIME_ID => ClockId::Process { pid: 0 },
            clock::THREAD_CPUTIME_ID => ClockId::Thread { tid: 0 },
            // clock_getcpuclockid(3): the number's complement, above two bits for the kind and one for "thread".
            id if id < 0 && id & 3 != 3 => {
                let number = !(id >> 3) as u32;
                let kernel = &thread.kernel;
                if id & 4 != 0 {
                    let other = |tid| kernel.thread(tid).is_some_and(|seat| seat.task.pid == thread.task.pid);
                    if number != 0 && !other(number) {
                        return Err(Errno::EINVAL);
                    }
                    ClockId::Thread { tid: number }
                } else {
                    if number != 0 && kernel.process(number).is_none_or(|task| task.ended().is_some()) {
                        return Err(Errno::EINVAL);
                    }
                    ClockId::Process { pid: number }
                }
            }
            _ => return Err(Errno::EINVAL),
        })
    }
}

impl ClockId {
    /// The clock's time. EINVAL when its process or thread has gone.
    pub fn now(self, thread: &Thread) -> Result<Nanos> {
        let clocks = thread.machine().clock();
        Ok(match self {
            ClockId::Realtime { .. } => clocks.realtime(),
            ClockId::Monotonic { .. } => clocks.monotonic(),
            ClockId::Thread { tid: 0 } => cpu::own(thread),
            ClockId::Process { pid: 0 } => cpu::of_task(&thread.task, Some(thread)),
            ClockId::Process { pid } => {
                let task = thread.kernel.process(pid).ok_or(Errno::EINVAL)?;
                cpu::of_task(&task, Some(thread))
            }
            ClockId::Thread { tid } if tid == thread.tid() => cpu::own(thread),
            ClockId::Thread { tid } => {
                let seat = thread.kernel.thread(tid).ok_or(Errno::EINVAL)?;
                cpu::of_thread(&seat)
            }
        })
    }

    /// Whether it runs only while a processor does.
    pub fn is_cpu(self) -> bool {
        matches!(self, ClockId::Process { .. } | ClockId::Thread { .. })
    }

    /// The monotonic time at which a clock that is not of processor time shows `at`.
    pub fn to_monotonic(self, thread: &Thread, at: Nanos) -> Nanos {
        match self {
            ClockId::Realtime { .. } => {
                let clocks = thread.machine().clock();
                clocks.monotonic().saturating_add(at.saturating_sub(clocks.realtime()))
            }
            _ => at,
        }
    }

    fn resolution(self) -> Nanos {
        match self {
            ClockId::Realtime { coarse: true } | ClockId::Monotonic { coarse: true } => COARSE,
            _ => 1,
        }
    }
}

pub fn clock_gettime(thread: &Thread, id: ClockArg, time: UserPtr<impl Layout<TimeSpec>>) -> Result<()> {
    let now = match id.other() {
        Some(other) => thread.machine().clock().other(other),
        None => id.resolve(thread)?.now(thread)?,
    };
    time.store(thread.user(), &TimeSpec::from_nanos(now))
}

pub fn clock_getres(thread: &Thread, id: ClockArg, resolution: UserPtr<impl Layout<TimeSpec>>) -> Result<()> {
    let nanos = id.resolve(thread)?.resolution();
    match resolution.non_null() {
        Some(place) => place.store(thread.user(), &TimeSpec::from_nanos(nanos)),
        None => Ok(()),
    }
}

/// The time of day is the machine's: nobody inside may set it.
pub fn clock_settime(thread: &Thread, id: ClockArg, time: UserPtr<impl Layout<TimeSpec>>) -> Result<()> {
    if id.0 != clock::REALTIME {
        return Err(Errno::EINVAL);
    }
    time.load(thread.user())?.nanos()?;
    Err(Errno::EPERM)
}

pub fn gettimeofday(thread: &Thread, time: UserPtr<impl Layout<TimeVal>>, zone: UserPtr<TimeZone>) -> Result<()> {
    if let Some(time) = time.non_null() {
        time.store(thread.user(), &TimeVal::from_nanos(thread.machine().clock().realtime()))?;
    }
    match zone.non_null() {
        Some(zone) => zone.write(thread.user(), &TimeZone::default()),
        None => Ok(()),
    }
}

pub fn settimeofday(thread: &Thread, time: UserPtr<impl Layout<TimeVal>>, zone: UserPtr<TimeZone>) -> Result<()> {
    if let Some(time) = time.non_null() {
        time.load(thread.user())?.nanos()?;
    }
    if let Some(zone) = zone.non_null() {
        zone.read(thread.user())?;
    }
    Err(Errno::EPERM)
}

pub fn time(thread: &Thread, place: UserPtr<impl Layout<i64>>) -> Result<i64> {
    let seconds = (thread.machine().clock().realtime() / 1_000_000_000) as i64;
    if let Some(place) = place.non_null() {
        place.store(thread.user(), &seconds)?;
    }
    Ok(seconds)
}

/// times(2): ticks since the kernel started, and since some time before (Linux counts from five minutes before).
pub fn times(thread: &Thread, place: UserPtr<impl Layout<Tms>>) -> Result<i64> {
    if let Some(place) = place.non_null() {
        let own = cpu::usage_of_task(&thread.task, Some(thread));
        let children = thread.task.usage.children.get();
        let ticks = |nanos: Nanos| (nanos / TICK) as i64;
        let times = Tms {
            utime: ticks(own.user),
            stime: ticks(own.system),
            cutime: ticks(children.user),
            cstime: ticks(children.system),
        };
        place.store(thread.user(), &times)?;
    }
    let up = thread.machine().clock().monotonic().saturating_sub(thread.kernel.booted);
    Ok((up / TICK) as i64)
}

/// STA_UNSYNC, and the result that goes with it: nobody disciplines this clock.
const STA_UNSYNC: i32 = 0x40;
const TIME_ERROR: usize = 5;

/// adjtimex(2): what a clock that is left to itself reports. EPERM for a change.
pub fn adjtimex(thread: &Thread, state: UserPtr<impl Layout<Timex>>) -> Result<usize> {
    /// ADJ_OFFSET_SS_READ: reads what is left of an adjustment.
    const SS_READ: u32 = 0xa001;
    let asked = state.load(thread.user())?;
    if asked.modes != 0 && asked.modes != SS_READ {
        return Err(Errno::EPERM);
    }
    let now = thread.machine().clock().realtime();
    let answer = Timex {
        modes: asked.modes,
        maxerror: 16_000_000,
        esterror: 16_000_000,
        status: STA_UNSYNC,
        constant: 2,
        precision: 1,
        tolerance: 500 << 16,
        time: TimeVal::from_nanos(now),
        tick: 10_000,
        ..Timex::default()
    };
    state.store(thread.user(), &answer)?;
    Ok(TIME_ERROR)
}

pub fn clock_adjtime(thread: &Thread, id: ClockArg, state: UserPtr<impl Layout<Timex>>) -> Result<usize> {
    match id.0 {
        clock::REALTIME => adjtimex(thread, state),
        // Clocks that exist but cannot be adjusted.
        _ => id.resolve(thread).and(Err(Errno::EOPNOTSUPP)),
    }
}
