//! nanosleep(2) and clock_nanosleep(2).

use janua_abi::linux::layout::Layout;
use janua_abi::linux::time::{TIMER_ABSTIME, TimeSpec, clock};
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result, UserPtr};
use janua_port::Nanos;

use super::clock::{ClockArg, ClockId};
use super::service::SAMPLE;
use crate::restart::{self, Restart};
use crate::{Thread, poll};

/// Where a sleep that is interrupted stores what was left, and in which layout.
#[derive(Clone, Copy, Debug)]
pub struct Remaining {
    place: usize,
    store: fn(&Thread, usize, Nanos) -> Result<()>,
}

impl Remaining {
    /// It is not wanted.
    const NONE: Remaining = Remaining { place: 0, store: |_, _, _| Ok(()) };

    fn at<L: Layout<TimeSpec>>(place: UserPtr<L>) -> Remaining {
        let store = |thread: &Thread, place, nanos| UserPtr::<L>::new(place).store(thread.user(), &TimeSpec::from_nanos(nanos));
        Remaining { place: place.addr(), store }
    }

    fn store(self, thread: &Thread, nanos: Nanos) -> Result<()> {
        if self.place == 0 { Ok(()) } else { (self.store)(thread, self.place, nanos) }
    }
}

/// nanosleep(2).
pub async fn nanosleep(
    thread: &Thread,
    time: UserPtr<impl Layout<TimeSpec>>,
    remaining: UserPtr<impl Layout<TimeSpec>>,
) -> Result<usize> {
    let nanos = time.load(thread.user())?.nanos()?;
    let deadline = thread.machine().clock().monotonic().saturating_add(nanos);
    go_on(thread, deadline, Remaining::at(remaining)).await
}

/// clock_nanosleep(2): returns the error as any call does; the C library turns the sign.
pub async fn clock_nanosleep(
    thread: &Thread,
    id: ClockArg,
    flags: u32,
    time: UserPtr<impl Layout<TimeSpec>>,
    remaining: UserPtr<impl Layout<TimeSpec>>,
) -> Result<usize> {
    match id.0 {
        clock::REALTIME_COARSE | clock::MONOTONIC_COARSE | clock::MONOTONIC_RAW | clock::THREAD_CPUTIME_ID => {
            return Err(Errno::EOPNOTSUPP);
        }
        _ => {}
    }
    let clock = id.resolve(thread)?;
    let nanos = time.load(thread.user())?.nanos()?;
    let absolute = flags & TIMER_ABSTIME != 0;
    let remaining = if absolute { Remaining::NONE } else { Remaining::at(remaining) };
    match clock {
        ClockId::Thread { .. } => Err(Errno::EINVAL),
        ClockId::Process { .. } => {
            let until = if absolute { nanos } else { clock.now(thread)?.saturating_add(nanos) };
            let result = cpu_go_on(thread, clock, until, remaining).await;
            if absolute { no_hand(result) } else { result }
        }
        _ if absolute => {
            let deadline = clock.to_monotonic(thread, nanos);
            match thread.sleep_until(deadline).await {
                Ok(()) => Ok(0),
                Err(_) => Err(Errno::ERESTARTNOHAND),
            }
        }
        _ => {
            let deadline = thread.machine().clock().monotonic().saturating_add(nanos);
            go_on(thread, deadline, remaining).await
        }
    }
}

/// A call that names a point of time is made again as it is.
fn no_hand(result: Result<usize>) -> Result<usize> {
    result.map_err(|errno| if errno == Errno::ERESTART_RESTARTBLOCK { Errno::ERESTARTNOHAND } else { errno })
}

/// Sleeps until `deadline` (monotonic); also after a restart. What is left goes to `remaining` when interrupted.
pub async fn go_on(thread: &Thread, deadline: Nanos, remaining: Remaining) -> Result<usize> {
    match thread.sleep_until(deadline).await {
        Ok(()) => Ok(0),
        Err(_) => {
            remaining.store(thread, poll::remaining(thread, deadline))?;
            Err(restart::later(thread, Restart::Sleep { deadline, remaining }))
        }
    }
}

/// Sleeps until a clock of processor time shows `until`; also after a restart.
pub async fn cpu_go_on(thread: &Thread, clock: ClockId, until: Nanos, remaining: Remaining) -> Result<usize> {
    loop {
        let now = clock.now(thread)?;
        if now >= until {
            return Ok(0);
        }
        // The process uses at most so many processors' time at once.
        let processors = thread.machine().cpus().max(1) as Nanos;
        let step = ((until - now) / processors).max(SAMPLE);
        let look = thread.machine().clock().monotonic().saturating_add(step);
        match thread.wait_until::<()>(Some(look), 0, |_| (), || None).await {
            Err(Cut::Interrupted) => {
                remaining.store(thread, until.saturating_sub(clock.now(thread)?))?;
                return Err(restart::later(thread, Restart::CpuSleep { clock, until, remaining }));
            }
            Ok(()) | Err(Cut::TimedOut) => {}
        }
    }
}
